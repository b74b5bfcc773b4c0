package keyed

import (
	"unsafe"

	"github.com/heddle-stream/heddle/internal/arena"
)

const epochMax = 1<<32 - 1

// Prepare has the system provide the memory of the marks, which loading a table
// does not touch, so that the first batch need not wait for it.
func (t *Table[K, V]) Prepare() {
	const page = 4096 / unsafe.Sizeof(touch{})
	for i := range t.shards[:t.count] {
		for j := uintptr(0); j < uintptr(len(t.shards[i].marks)); j += page {
			t.shards[i].marks[j] = touch{}
		}
	}
}

// Begin starts a batch with the given number of slots. Versions of the batch
// before are gone. One goroutine.
func (t *Table[K, V]) Begin(slots int) {
	if t.pointers {
		clear(t.Ver) // or what the batch before computed stays alive
		clear(t.base)
	}
	if t.copies {
		t.base = arena.Resize(t.base, slots)
		t.was = arena.Resize(t.was, slots)
	}
	t.Ver = arena.Resize(t.Ver, slots)
	t.Has = arena.Resize(t.Has, slots)
	t.Rows = arena.Resize(t.Rows, slots)
	t.Prev = arena.Resize(t.Prev, slots)
	t.IDs = arena.Resize(t.IDs, slots)
	if t.epoch++; t.epoch == epochMax {
		t.restartEpochs()
	}
}

// restartEpochs forgets which batch touched which row, which nobody needs
// between batches, so that batch numbers can start again.
func (t *Table[K, V]) restartEpochs() {
	t.epoch = 1
	for i := range t.shards[:t.count] {
		clear(t.shards[i].marks)
	}
}

// Resolve maps the accesses of one shard to rows, absent ones made as needed,
// and chains them: Rows, Prev and IDs at slot+i belong to entries[i], whose
// access is base+entries[i].ID. Within a shard, calls come in event order.
func (t *Table[K, V]) Resolve(si int, entries []Entry[K], base, slot uint32) {
	if t.spill != nil {
		t.recallAll(si, entries)
	}
	s := &t.shards[si]
	rows, prev, ids := t.Rows[slot:], t.Prev[slot:], t.IDs[slot:]
	epoch := t.epoch
	for i := range entries {
		if i+ahead < len(entries) {
			at := s.home(entries[i+ahead].Hash)
			arena.Prefetch(unsafe.Pointer(&s.recs[at]))
			arena.Prefetch(unsafe.Pointer(&s.marks[at]))
		}
		e := &entries[i]
		local := s.home(e.Hash)
		local = local&^inBucket | (local+s.recs[local].differs(e.Hash))&inBucket
		if !s.recs[local].is(e.Hash, e.Key) {
			local = t.ensure(si, e.Hash, e.Key)
		}
		rows[i] = local<<shardBits | uint32(si)
		mark := &s.marks[local]
		prev[i] = mark.last
		if mark.epoch != epoch {
			prev[i] = None
		}
		id := base + e.ID
		mark.epoch, mark.last = epoch, id
		ids[i] = id
		if t.copies {
			at := slot + uint32(i)
			t.base[at], t.was[at] = s.recs[local].Val, s.recs[local].Present()
		}
	}
}

// Before returns what the row of a slot held before the batch.
func (t *Table[K, V]) Before(slot uint32) (*V, bool) {
	if t.copies {
		return &t.base[slot], t.was[slot]
	}
	if t.Rows[slot] == None {
		return nil, false
	}
	rec := t.At(t.Rows[slot])
	return &rec.Val, rec.Present()
}

// Place gives a slot the row, with what that held before the batch.
func (t *Table[K, V]) Place(slot, row uint32) {
	t.Rows[slot] = row
	if t.copies {
		rec := t.At(row)
		t.base[slot], t.was[slot] = rec.Val, rec.Present()
	}
}

// Displace takes the row from a slot: what it sees is absent.
func (t *Table[K, V]) Displace(slot uint32) {
	t.Rows[slot] = None
	if t.copies {
		var zero V
		t.base[slot], t.was[slot] = zero, false
	}
}

// Fetch has the processor fetch the record of a key that will be looked up soon.
func (t *Table[K, V]) Fetch(key K) {
	var hash uint32
	if t.hash.kind == hashWord4 { // see Ensure
		hash = t.hash.word(uint64(*(*uint32)(unsafe.Pointer(&key))))
	} else {
		hash = t.hash.sum(key)
	}
	s := &t.shards[t.Shard(hash)]
	arena.Prefetch(unsafe.Pointer(&s.recs[s.home(hash)]))
}

// Rowed maps accesses of any shard to rows without chaining them; rows[i]
// belongs to entries[i]. It serves ordered tables.
func (t *Table[K, V]) Rowed(entries []Entry[K], rows []uint32) {
	if t.spill != nil {
		t.recallAll(0, entries) // an ordered table has one shard
	}
	for i := range entries {
		if i+ahead < len(entries) {
			h := entries[i+ahead].Hash
			s := &t.shards[t.Shard(h)]
			arena.Prefetch(unsafe.Pointer(&s.recs[s.home(h)]))
		}
		e := &entries[i]
		si := t.Shard(e.Hash)
		s := &t.shards[si]
		local := s.home(e.Hash)
		local = local&^inBucket | (local+s.recs[local].differs(e.Hash))&inBucket
		if !s.recs[local].is(e.Hash, e.Key) {
			local = t.ensure(int(si), e.Hash, e.Key)
		}
		rows[i] = local<<shardBits | si
	}
}

// Touch makes the access the last one on the row and returns the one before it
// in this batch, or None: for accesses whose key is known only while the batch
// executes, and for ordered tables.
func (t *Table[K, V]) Touch(row, access uint32) (prev uint32) {
	mark := &t.shards[row&(Shards-1)].marks[row>>shardBits]
	prev = None
	if mark.epoch == t.epoch {
		prev = mark.last
	}
	*mark = touch{t.epoch, access}
	return prev
}

// Install makes the version of each slot the value of its row. The rows of one
// call belong to one shard and are distinct.
func (t *Table[K, V]) Install(si int, slots []uint32) {
	s := &t.shards[si]
	for i, slot := range slots {
		if i+ahead < len(slots) {
			arena.Prefetch(unsafe.Pointer(&s.recs[t.Rows[slots[i+ahead]]>>shardBits]))
		}
		local := t.Rows[slot] >> shardBits
		rec := &s.recs[local]
		if t.Has[slot] {
			s.changing(local)
			rec.Val = t.Ver[slot]
			rec.SetPresent(true)
			continue
		}
		if rec.Present() {
			s.changing(local)
			rec.SetPresent(false)
			var zero V
			rec.Val = zero
			s.fresh = append(s.fresh, rec.Key)
		}
	}
}

// Reclaim ends a batch for a shard: it frees the rows that were made or emptied
// since the last call and hold no value (absent reads, aborted inserts, deletes)
// and makes room for new ones. Rows move.
func (t *Table[K, V]) Reclaim(si int) {
	if t.spill != nil {
		t.weigh(si) // values may have grown where they are
	}
	if !t.reclaimable(si) {
		return
	}
	s := &t.shards[si]
	for _, key := range s.fresh {
		// A row may be listed twice, made and emptied in one batch.
		if local, ok := s.find(t.hash.sum(key), key); ok && !s.recs[local].Present() {
			t.discard(s, local)
		}
	}
	clear(s.fresh) // keys may hold strings
	s.fresh = s.fresh[:0]
	t.settle(si)
}

// reclaimable reports whether Reclaim has something to do.
func (t *Table[K, V]) reclaimable(si int) bool {
	s := &t.shards[si]
	return len(s.fresh) > 0 || t.spill != nil && (s.used >= s.full || len(s.late) > 0 || t.pressed(si))
}

// ReclaimAll is Reclaim for all shards.
func (t *Table[K, V]) ReclaimAll() {
	const often = 16 // there are many calls in a batch
	t.groups++
	for i := range t.shards[:t.count] {
		if t.spill != nil && t.groups%often == 0 || t.reclaimable(i) {
			t.Reclaim(i)
		}
	}
}

// discard removes a row that holds nothing.
func (t *Table[K, V]) discard(s *shard[K, V], local uint32) {
	s.removed(local)
	if t.order != nil {
		t.order.tree.Delete(s.recs[local].Key)
	}
	s.take(local)
}

// take removes a row from memory.
func (s *shard[K, V]) take(local uint32) {
	if local <= s.mask {
		s.drop(local)
		return
	}
	delete(s.late, s.recs[local].Key)
	s.recs[local] = Record[K, V]{}
}

// Emptied notes that a row lost its value outside of Install, so that the next
// Reclaim of its shard looks at it.
func (t *Table[K, V]) Emptied(row uint32) {
	s := &t.shards[row&(Shards-1)]
	s.fresh = append(s.fresh, s.recs[row>>shardBits].Key)
}

// Restart empties the slots of the batch, to be given out again by Chain.
func (t *Table[K, V]) Restart() {
	t.Rows, t.IDs, t.Prev = t.Rows[:0], t.IDs[:0], t.Prev[:0]
	t.base, t.was = t.base[:0], t.was[:0]
}

// Chain gives the access the next slot, on a row that is known already.
func (t *Table[K, V]) Chain(row, access uint32) {
	t.Rows = append(t.Rows, row)
	t.IDs = append(t.IDs, access)
	t.Prev = append(t.Prev, t.Touch(row, access))
	if t.copies {
		rec := t.At(row)
		t.base, t.was = append(t.base, rec.Val), append(t.was, rec.Present())
	}
}

// Fit makes a version slot for each chained access and returns their number.
func (t *Table[K, V]) Fit() int {
	t.Ver = arena.Resize(t.Ver, len(t.Rows))
	t.Has = arena.Resize(t.Has, len(t.Rows))
	return len(t.Rows)
}
