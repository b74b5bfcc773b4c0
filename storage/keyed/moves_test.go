package keyed

import (
	"fmt"
	"maps"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
)

// TestRowsMoveOnlyBetweenBatches runs random batches on a table and on a map: rows must stay where
// they are until a batch ends, chains must link accesses of equal keys, and what
// is installed must be what is found.
func TestRowsMoveOnlyBetweenBatches(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("plain ", seed), func(t *testing.T) { runBatches(t, New[uint32, int](), seed, func(k uint32) uint32 { return k }) })
		t.Run(fmt.Sprint("text ", seed), func(t *testing.T) {
			runBatches(t, New[string, int](), seed, func(k uint32) string { return fmt.Sprint(k) })
		})
		t.Run(fmt.Sprint("ordered ", seed), func(t *testing.T) {
			runBatches(t, NewOrdered[uint32, int](), seed, func(k uint32) uint32 { return k })
		})
		if seed >= 8 { // those below take longer
			continue
		}
		t.Run(fmt.Sprint("larger than memory ", seed), func(t *testing.T) {
			table := New[uint32, int]()
			log := limitWords(table, 30_000)
			runBatches(t, table, seed, func(k uint32) uint32 { return k })
			if n := table.Traffic(); n.Come == 0 || n.Gone < n.Come || log.moved == 0 {
				t.Fatalf("%d rows went into the log, %d came back, %d were moved there: this tests nothing", n.Gone, n.Come, log.moved)
			}
		})
		t.Run(fmt.Sprint("ordered, larger than memory ", seed), func(t *testing.T) {
			table := NewOrdered[uint32, int]()
			limitWords(table, 30_000)
			runBatches(t, table, seed, func(k uint32) uint32 { return k })
			if n := table.Traffic(); n.Come == 0 {
				t.Fatal("no row came back from the log: this tests nothing")
			}
		})
		t.Run(fmt.Sprint("text, larger than memory ", seed), func(t *testing.T) {
			table := New[string, int]()
			limitText(table, 30_000)
			runBatches(t, table, seed, func(k uint32) string { return fmt.Sprint(k) })
			if n := table.Traffic(); n.Come == 0 {
				t.Fatal("no row came back from the log: this tests nothing")
			}
		})
	}
}

func runBatches[K comparable](t *testing.T, table *Table[K, int], seed uint64, key func(uint32) K) {
	r := rng.New(seed, 0)
	model := map[K]int{}
	// One tracker takes what changes after every batch. The other one cuts from time to
	// time and then takes piece by piece, while rows change, what they were at the cut.
	shadow, slow, atCut := map[K]int{}, map[K]int{}, map[K]int{}
	due, anew := false, false
	often, seldom := table.Track(), table.Track()
	for k := range uint32(r.IntN(300)) {
		table.Load(key(k), int(k))
		model[key(k)] = int(k)
	}
	for batch := range 40 {
		table.Tidy()
		keys := make([]K, 1+r.IntN(1500))
		space := 1 + r.Uint32N(3000)
		for i := range keys {
			keys[i] = key(r.Uint32N(space))
		}
		if r.IntN(2) == 0 {
			runChained(t, table, r, model, keys)
		} else {
			runInPlace(table, r, model, keys)
		}
		checkEqual(t, table, model)
		table.Cut(often)
		takeGone(table, often, shadow)
		for si := range table.ShardCount() {
			takeAll(table, often, si, shadow)
		}
		if !maps.Equal(shadow, model) {
			t.Fatalf("batch %d: by its changes the table has %d keys, the model %d, or they differ", batch, len(shadow), len(model))
		}
		if !due && r.IntN(3) == 0 {
			if anew || r.IntN(4) == 0 {
				table.ChangeAll(seldom)
			}
			anew = false
			table.Cut(seldom)
			due, atCut = true, maps.Clone(model)
			takeGone(table, seldom, slow)
		}
		if due && r.IntN(2) == 0 {
			for si := range table.ShardCount() {
				take(table, seldom, si, r.IntN(3), r.IntN(50), slow)
			}
			if r.IntN(3) == 0 {
				for si := range table.ShardCount() {
					takeAll(table, seldom, si, slow)
				}
				if due = false; !maps.Equal(slow, atCut) {
					t.Fatalf("batch %d: by its changes the table had %d keys at the cut, the model %d, or they differ", batch, len(slow), len(atCut))
				}
				if r.IntN(3) == 0 { // somebody else asks, who knows of nothing
					table.Untrack(seldom)
					seldom, anew = table.Track(), true
					clear(slow)
				}
			}
		}
	}
}

func takeGone[K comparable](table *Table[K, int], tracker Tracker, to map[K]int) {
	table.TakeGone(tracker, func(key *K) { delete(to, *key) })
}

func takeAll[K comparable](table *Table[K, int], tracker Tracker, shard int, to map[K]int) {
	for at := 0; at >= 0; {
		at = take(table, tracker, shard, at, 10, to)
	}
}

// take applies what changed.
func take[K comparable](table *Table[K, int], tracker Tracker, shard, at, limit int, to map[K]int) int {
	return table.Take(tracker, shard, at, limit, func(key *K, v *int) { to[*key] = *v })
}

// runChained takes a batch through Resolve and Install.
func runChained[K comparable](t *testing.T, table *Table[K, int], r *rng.RNG, model map[K]int, keys []K) {
	shards := make([][]Entry[K], table.ShardCount())
	for i, k := range keys {
		h := table.Hash(k)
		shards[table.Shard(h)] = append(shards[table.Shard(h)], Entry[K]{h, uint32(i), k})
	}
	table.Begin(len(keys))
	slot := uint32(0)
	for si, entries := range shards {
		from, last := slot, map[K]uint32{}
		half := len(entries) / 2
		table.Resolve(si, entries[:half], 0, slot)
		table.Resolve(si, entries[half:], 0, slot+uint32(half))
		for i, e := range entries {
			want, ok := last[e.Key]
			if !ok {
				want = None
			}
			s := from + uint32(i)
			if table.Prev[s] != want || table.IDs[s] != e.ID || table.At(table.Rows[s]).Key != e.Key {
				t.Fatalf("entry %d of shard %d: previous %d, want %d; key %v, want %v", i, si, table.Prev[s], want, table.At(table.Rows[s]).Key, e.Key)
			}
			last[e.Key] = e.ID
			table.Ver[s], table.Has[s] = r.Int(), r.IntN(3) > 0
		}
		slot += uint32(len(entries))
		installLast(table, r, model, si, from, entries, last)
	}
}

func installLast[K comparable](table *Table[K, int], r *rng.RNG, model map[K]int, si int, from uint32, entries []Entry[K], last map[K]uint32) {
	var slots []uint32
	for i, e := range entries {
		s := from + uint32(i)
		if last[e.Key] != e.ID || r.IntN(4) == 0 { // or all its writers aborted
			continue
		}
		slots = append(slots, s)
		delete(model, e.Key)
		if table.Has[s] {
			model[e.Key] = table.Ver[s]
		}
	}
	table.Install(si, slots)
	table.Reclaim(si)
}

// runInPlace changes rows as a serial run does.
func runInPlace[K comparable](table *Table[K, int], r *rng.RNG, model map[K]int, keys []K) {
	for _, k := range keys {
		rec, row := table.Ensure(k)
		switch r.IntN(3) {
		case 0:
			table.Changing(row)
			rec.Val = r.Int()
			rec.SetPresent(true)
			model[k] = rec.Val
		case 1:
			table.Changing(row)
			rec.Val = 0
			rec.SetPresent(false)
			table.Emptied(row)
			delete(model, k)
		}
	}
	for si := range table.ShardCount() {
		table.Reclaim(si)
	}
}

func checkEqual[K comparable](t *testing.T, table *Table[K, int], model map[K]int) {
	t.Helper()
	got := map[K]int{}
	for k, v := range table.All() {
		got[k] = *v
	}
	if !maps.Equal(got, model) {
		t.Fatalf("the table holds %d keys, the model %d, or they differ", len(got), len(model))
	}
	if n := table.RowsAllocated(); n != len(model) {
		t.Fatalf("%d rows for %d keys", n, len(model))
	}
	for k, v := range model {
		if got, ok := table.Get(k); !ok || got != v {
			t.Fatalf("key %v has %d, %v; %d is right", k, got, ok, v)
		}
	}
	if table.Limited() { // to find them would bring all into memory
		checkLimit(t, table)
		return
	}
	for k, v := range model {
		if rec, row := table.Find(k); rec == nil || rec.Val != v || table.At(row) != rec {
			t.Fatalf("key %v is not found", k)
		}
	}
}
