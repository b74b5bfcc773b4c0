package keyed

import "math/bits"

// Tracker names somebody who wants to know which rows changed since it asked last.
type Tracker int

// changed is what of a shard changed for one tracker: rows by their numbers, which
// move along with the rows, and the keys of rows that are no more.
type changed[K comparable] struct {
	rows []uint64 // a bit for each row
	gone []K
}

// Track makes the table remember which rows change from now on. At the beginning
// none has. Only between batches.
func (t *Table[K, V]) Track() Tracker {
	t.tracked = true
	for i := range t.shards {
		s := &t.shards[i]
		s.changes = append(s.changes, changed[K]{rows: make([]uint64, words(len(s.recs)))})
	}
	return Tracker(len(t.shards[0].changes) - 1)
}

func words(rows int) int { return (rows + 63) / 64 }

// Changed notes that the value of a row changed, or that it lost its value. What
// Install and Load do is noted by themselves.
func (t *Table[K, V]) Changed(row uint32) {
	if t.tracked {
		t.shards[row&(1<<t.bits-1)].change(row >> t.bits)
	}
}

func (s *shard[K, V]) change(local uint32) {
	for i := range s.changes {
		s.changes[i].rows[local>>6] |= 1 << (local & 63)
	}
}

// moved takes the marks of a row to its new place.
func (s *shard[K, V]) moved(from, to uint32) {
	for i := range s.changes {
		rows := s.changes[i].rows
		bit := rows[from>>6] >> (from & 63) & 1
		rows[from>>6] &^= 1 << (from & 63)
		rows[to>>6] = rows[to>>6]&^(1<<(to&63)) | bit<<(to&63)
	}
}

// removed notes that a row is no more, for trackers that have yet to hear of its
// last change.
func (s *shard[K, V]) removed(local uint32) {
	for i := range s.changes {
		c := &s.changes[i]
		if c.rows[local>>6]>>(local&63)&1 != 0 {
			c.rows[local>>6] &^= 1 << (local & 63)
			c.gone = append(c.gone, s.recs[local].Key)
		}
	}
}

// reach makes room for the marks of so many rows.
func (s *shard[K, V]) reach(rows int) {
	for i := range s.changes {
		c := &s.changes[i]
		for len(c.rows) < words(rows) {
			c.rows = append(c.rows, 0)
		}
	}
}

// ChangeAll marks every row that holds a value as changed. Only between batches.
func (t *Table[K, V]) ChangeAll(tracker Tracker) {
	for i := range t.shards {
		s := &t.shards[i]
		for j := range s.recs {
			if s.recs[j].Present() {
				s.changes[tracker].rows[j>>6] |= 1 << (j & 63)
			}
		}
	}
}

// Changes returns how many rows a tracker has yet to hear of, in time proportional
// to a sixty-fourth of the rows.
func (t *Table[K, V]) Changes(tracker Tracker) int {
	n := 0
	for i := range t.shards {
		c := &t.shards[i].changes[tracker]
		n += len(c.gone)
		for _, w := range c.rows {
			n += bits.OnesCount64(w)
		}
	}
	return n
}

// TakeChanges yields the changed rows of a shard from word number at of its marks
// on, 64 rows a word, keys that are gone first and with a nil value. It stops behind
// the word with which it has yielded limit rows and returns the number of the next
// one, -1 when there is none. What it yields is no longer changed. Only between
// batches; different shards may be taken from in parallel.
func (t *Table[K, V]) TakeChanges(tracker Tracker, shard, at, limit int, yield func(key *K, v *V)) (next int) {
	s := &t.shards[shard]
	c := &s.changes[tracker]
	for i := range c.gone {
		yield(&c.gone[i], nil)
	}
	limit -= len(c.gone)
	clear(c.gone) // keys may hold strings
	c.gone = c.gone[:0]
	for ; at < len(c.rows); at++ {
		w := c.rows[at]
		if w == 0 {
			continue
		}
		if limit <= 0 {
			return at
		}
		c.rows[at] = 0
		for ; w != 0; w &= w - 1 {
			r := &s.recs[at<<6+bits.TrailingZeros64(w)]
			limit--
			if r.Present() {
				yield(&r.Key, &r.Val)
			} else {
				yield(&r.Key, nil)
			}
		}
	}
	return -1
}
