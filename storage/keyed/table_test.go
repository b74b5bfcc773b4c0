package keyed

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// batchOn runs one batch on a table and on a map: each access adds to its key,
// deletes it, or only touches it.
func batchOn(t *rapid.T, table *Table[string, int64], model map[string]int64) {
	keys := rapid.SliceOfN(rapid.IntRange(0, 40), 0, 60).Draw(t, "keys")
	byShard := make([][]Entry[string], table.ShardCount())
	for i, k := range keys {
		key := fmt.Sprint("key", k)
		h := table.Hash(key)
		si := table.Shard(h)
		byShard[si] = append(byShard[si], Entry[string]{h, uint32(i), key})
	}
	table.Begin(len(keys))
	slot := uint32(0)
	type final struct{ slots []uint32 }
	finals := make([]final, len(byShard))
	for si, entries := range byShard {
		table.Resolve(si, entries, 100, slot)
		lastOf := map[uint32]uint32{}
		seen := map[string]uint32{}
		for i, e := range entries {
			at := slot + uint32(i)
			row := table.Rows[at]
			if table.At(row).Key != e.Key || table.IDs[at] != 100+e.ID {
				t.Fatalf("slot %d has row of %q and access %d", at, table.At(row).Key, table.IDs[at])
			}
			if prev, again := seen[e.Key]; again && table.Prev[at] != prev || !again && table.Prev[at] != None {
				t.Fatalf("%q: the access before is %d", e.Key, table.Prev[at])
			}
			seen[e.Key] = table.IDs[at]
			if act(t, table, model, e.Key, at, lastOf[row], seen) {
				lastOf[row] = at + 1
			}
		}
		for _, at := range lastOf {
			finals[si].slots = append(finals[si].slots, at-1)
		}
		slot += uint32(len(entries))
	}
	for si := range finals {
		table.Install(si, finals[si].slots)
		table.Reclaim(si)
	}
}

// act draws what the access does; last is the slot plus one of the version
// before, or 0. It reports whether a version was written.
func act(t *rapid.T, table *Table[string, int64], model map[string]int64, key string, at, last uint32, _ map[string]uint32) bool {
	was, ok := int64(0), false
	if last > 0 {
		was, ok = table.Ver[last-1], table.Has[last-1]
	} else if rec := table.At(table.Rows[at]); rec.Present() {
		was, ok = rec.Val, true
	}
	if want, there := model[key]; there != ok || there && want != was {
		t.Fatalf("%q is %d, %v; the model has %d, %v", key, was, ok, want, there)
	}
	switch rapid.IntRange(0, 2).Draw(t, "act") {
	case 0:
		table.Ver[at], table.Has[at] = was+1, true
		model[key] = was + 1
	case 1:
		table.Ver[at], table.Has[at] = 0, false
		delete(model, key)
	default:
		return false
	}
	return true
}

func TestBatchesAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, model := New[string, int64](), map[string]int64{}
		for i := range rapid.IntRange(0, 30).Draw(t, "loaded") {
			table.Load(fmt.Sprint("key", i), int64(i))
			model[fmt.Sprint("key", i)] = int64(i)
		}
		for range rapid.IntRange(1, 8).Draw(t, "batches") {
			batchOn(t, table, model)
			got := map[string]int64{}
			for k, v := range table.All() {
				got[k] = *v
			}
			if len(got) != len(model) || table.Len() != len(model) {
				t.Fatalf("%d rows, the model has %d", len(got), len(model))
			}
			for k, v := range model {
				if got[k] != v {
					t.Fatalf("%q is %d, the model has %d", k, got[k], v)
				}
				if rec, row := table.Find(k); row == None || rec.Key != k {
					t.Fatalf("%q is not found", k)
				}
			}
		}
	})
}

// Keys that are asked for and never written must not stay.
func TestAbsentKeysAreReclaimed(t *testing.T) {
	table := New[uint64, int64]()
	for batch := range uint64(100) {
		table.Begin(64)
		slot := uint32(0)
		byShard := make([][]Entry[uint64], table.ShardCount())
		for i := range uint64(64) {
			k := batch*64 + i
			h := table.Hash(k)
			byShard[table.Shard(h)] = append(byShard[table.Shard(h)], Entry[uint64]{h, uint32(i), k})
		}
		for si, entries := range byShard {
			table.Resolve(si, entries, 0, slot)
			slot += uint32(len(entries))
			table.Reclaim(si)
		}
	}
	if n := table.RowsAllocated(); n > 64*4 {
		t.Errorf("%d rows exist after 100 batches of 64 reads", n)
	}
	if n := table.Len(); n != 0 {
		t.Errorf("%d rows hold a value", n)
	}
}

func TestEpochsStartAgain(t *testing.T) {
	table := New[uint64, int64]()
	table.Load(1, 5)
	table.epoch = epochMax - 2
	h := table.Hash(1)
	for range 4 {
		table.Begin(1)
		table.Resolve(int(table.Shard(h)), []Entry[uint64]{{h, 7, 1}}, 0, 0)
		if table.Prev[0] != None {
			t.Fatalf("an access of another batch (%d) is taken for one of this", table.Prev[0])
		}
	}
}

func TestRangeFindsRowsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := NewOrdered[int16, int64]()
		keys := rapid.SliceOfDistinct(rapid.Int16(), func(k int16) int16 { return k }).Draw(t, "keys")
		for _, k := range keys {
			table.Load(k, int64(k))
		}
		lo, hi := rapid.Int16().Draw(t, "lo"), rapid.Int16().Draw(t, "hi")
		var want, got []int16
		for _, k := range keys {
			if cmp.Compare(k, lo) >= 0 && k < hi {
				want = append(want, k)
			}
		}
		slices.Sort(want)
		for _, row := range table.Range(nil, lo, hi) {
			got = append(got, table.At(row).Key)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("range [%d, %d) is %v, expected %v", lo, hi, got, want)
		}
	})
}
