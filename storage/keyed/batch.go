package keyed

import "github.com/heddle-stream/heddle/internal/arena"

// epochMax is the last batch number that fits beside the presence bit.
const epochMax = 1<<31 - 1

// Begin starts a batch with the given number of slots. Versions of the batch
// before are gone. One goroutine.
func (t *Table[K, V]) Begin(slots int) {
	if t.pointers {
		clear(t.Ver) // or what the batch before computed stays alive
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
	for i := range t.shards {
		recs := t.shards[i].recs
		for j := range recs {
			recs[j].epoch &= 1
		}
	}
}

// Resolve maps the accesses of one shard to rows, absent ones made as needed,
// and chains them: Rows, Prev and IDs at slot+i belong to entries[i], whose
// access is base+entries[i].ID. Within a shard, calls come in event order.
func (t *Table[K, V]) Resolve(si int, entries []Entry[K], base, slot uint32) {
	s := &t.shards[si]
	rows, prev, ids := t.Rows[slot:], t.Prev[slot:], t.IDs[slot:]
	stamp := t.epoch << 1
	for len(entries) > 0 {
		n := min(len(entries), group)
		var found [group]uint32
		s.probe(entries[:n], &found)
		for i := range entries[:n] {
			e := &entries[i]
			local := found[i] - 1
			if found[i] == 0 || s.recs[local].Key != e.Key {
				local = t.ensure(s, e.Hash, e.Key)
			}
			rec := &s.recs[local]
			rows[i] = local<<t.bits | uint32(si)
			if rec.epoch&^1 == stamp {
				prev[i] = rec.last
			} else {
				prev[i] = None
				rec.epoch = stamp | rec.epoch&1
			}
			rec.last = base + e.ID
			ids[i] = base + e.ID
		}
		entries, rows, prev, ids = entries[n:], rows[n:], prev[n:], ids[n:]
	}
}

// probe finds for each entry the first row whose hash matches, plus one, or 0.
// It touches only the index, so that the misses of a group overlap.
func (s *shard[K, V]) probe(entries []Entry[K], found *[group]uint32) {
	index, mask := s.index, s.mask
	for i := range entries {
		h := entries[i].Hash
		at := h & mask
		e := index[at]
		for e.row != 0 && e.hash != h {
			at = (at + 1) & mask
			e = index[at]
		}
		found[i&(group-1)] = e.row
	}
}

// Rowed maps accesses of any shard to rows without chaining them; rows[i]
// belongs to entries[i]. It serves the serial strategy.
func (t *Table[K, V]) Rowed(entries []Entry[K], rows []uint32) {
	for len(entries) > 0 {
		n := min(len(entries), group)
		var found [group]uint32
		for i := range entries[:n] {
			h := entries[i].Hash
			s := &t.shards[t.Shard(h)]
			at := h & s.mask
			e := s.index[at]
			for e.row != 0 && e.hash != h {
				at = (at + 1) & s.mask
				e = s.index[at]
			}
			found[i] = e.row
		}
		for i := range entries[:n] {
			e := &entries[i]
			si := t.Shard(e.Hash)
			s := &t.shards[si]
			local := found[i] - 1
			if found[i] == 0 || s.recs[local].Key != e.Key {
				local = t.ensure(s, e.Hash, e.Key)
			}
			rows[i] = local<<t.bits | si
		}
		entries, rows = entries[n:], rows[n:]
	}
}

// Touch makes the access the last one on the row and returns the one before it
// in this batch, or None: for accesses whose key is known only while the batch
// executes, and for ordered tables.
func (t *Table[K, V]) Touch(row, access uint32) (prev uint32) {
	rec := t.At(row)
	stamp := t.epoch << 1
	prev = None
	if rec.epoch&^1 == stamp {
		prev = rec.last
	}
	rec.epoch = stamp | rec.epoch&1
	rec.last = access
	return prev
}

// Install makes the version of each slot the value of its row. The rows of one
// call belong to one shard and are distinct.
func (t *Table[K, V]) Install(si int, slots []uint32) {
	s := &t.shards[si]
	for _, slot := range slots {
		local := t.Rows[slot] >> t.bits
		rec := &s.recs[local]
		if t.Has[slot] {
			rec.Val = t.Ver[slot]
			rec.epoch |= 1
			continue
		}
		if rec.epoch&1 != 0 {
			rec.SetPresent(false)
			var zero V
			rec.Val = zero
			s.fresh = append(s.fresh, local)
		}
	}
}

// Reclaim frees the rows of a shard that were made or emptied since the last
// call and hold no value: absent reads, aborted inserts, deletes.
func (t *Table[K, V]) Reclaim(si int) {
	s := &t.shards[si]
	for _, local := range s.fresh {
		// A row may be listed twice, made and emptied in one batch: once dropped
		// it is marked, so that the second mention passes over it.
		if rec := &s.recs[local]; !rec.Present() && rec.epoch != dropped {
			t.drop(s, local)
			rec.epoch = dropped
		}
	}
	s.fresh = s.fresh[:0]
}

// dropped marks a free row. Its presence bit is clear and no batch has the number.
const dropped = epochMax << 1

// Emptied notes that a row lost its value outside of Install, so that the next
// Reclaim of its shard looks at it.
func (t *Table[K, V]) Emptied(row uint32) {
	s := &t.shards[row&(1<<t.bits-1)]
	s.fresh = append(s.fresh, row>>t.bits)
}

// Restart empties the slots of the batch, to be given out again by Chain.
func (t *Table[K, V]) Restart() {
	t.Rows, t.IDs, t.Prev = t.Rows[:0], t.IDs[:0], t.Prev[:0]
}

// Chain gives the access the next slot, on a row that is known already.
func (t *Table[K, V]) Chain(row, access uint32) {
	t.Rows = append(t.Rows, row)
	t.IDs = append(t.IDs, access)
	t.Prev = append(t.Prev, t.Touch(row, access))
}

// Fit makes a version slot for each chained access and returns their number.
func (t *Table[K, V]) Fit() int {
	t.Ver = arena.Resize(t.Ver, len(t.Rows))
	t.Has = arena.Resize(t.Has, len(t.Rows))
	return len(t.Rows)
}
