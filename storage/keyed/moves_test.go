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
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("plain ", seed), func(t *testing.T) { runBatches(t, New[uint32, int](), seed, func(k uint32) uint32 { return k }) })
		t.Run(fmt.Sprint("text ", seed), func(t *testing.T) {
			runBatches(t, New[string, int](), seed, func(k uint32) string { return fmt.Sprint(k) })
		})
		t.Run(fmt.Sprint("ordered ", seed), func(t *testing.T) {
			runBatches(t, NewOrdered[uint32, int](), seed, func(k uint32) uint32 { return k })
		})
	}
}

func runBatches[K comparable](t *testing.T, table *Table[K, int], seed uint64, key func(uint32) K) {
	r := rng.New(seed, 0)
	model := map[K]int{}
	// One tracker takes what changes after every batch, one from time to time and
	// piece by piece: what they are told is all that happens.
	shadow, slow := map[K]int{}, map[K]int{}
	often, seldom := table.Track(), table.Track()
	for k := range uint32(r.IntN(300)) {
		table.Load(key(k), int(k))
		model[key(k)] = int(k)
	}
	for batch := range 12 {
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
		for si := range table.ShardCount() {
			take(table, often, si, 0, 1<<30, shadow)
			take(table, seldom, si, r.IntN(3), r.IntN(50), slow)
		}
		if !maps.Equal(shadow, model) {
			t.Fatalf("batch %d: by its changes the table has %d keys, the model %d, or they differ", batch, len(shadow), len(model))
		}
		if batch == 5 {
			table.ChangeAll(seldom)
			clear(slow)
		}
	}
	for si := range table.ShardCount() {
		take(table, seldom, si, 0, 1<<30, slow)
	}
	if !maps.Equal(slow, model) || table.Changes(seldom) != 0 {
		t.Fatalf("by its changes the table has %d keys, the model %d, or they differ; %d changes are left", len(slow), len(model), table.Changes(seldom))
	}
}

// take applies what changed.
func take[K comparable](table *Table[K, int], tracker Tracker, shard, at, limit int, to map[K]int) {
	table.TakeChanges(tracker, shard, at, limit, func(key *K, v *int) {
		if v == nil {
			delete(to, *key)
		} else {
			to[*key] = *v
		}
	})
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
			rec.Val = r.Int()
			rec.SetPresent(true)
			table.Changed(row)
			model[k] = rec.Val
		case 1:
			rec.Val = 0
			rec.SetPresent(false)
			table.Emptied(row)
			table.Changed(row)
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
		if rec, row := table.Find(k); rec == nil || rec.Val != v || table.At(row) != rec {
			t.Fatalf("key %v is not found", k)
		}
	}
}
