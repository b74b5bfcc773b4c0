package keyed

import (
	"fmt"
	"math/bits"
)

// Tracker names somebody who wants to know which rows changed since it asked last.
type Tracker int

// changed is what of a shard changed for one tracker.
type changed[K comparable, V any] struct {
	marks []marks // of 64 rows each, by their numbers; they move along with the rows
	gone  []K     // keys whose rows are no more since the last cut

	dueGone []K             // those before the last cut
	copies  []rowCopy[K, V] // due rows that have changed since, as they were at the cut
	coldAt  int             // where to look on for due rows in the log
}

// marks are bits of rows. Places that hold no row may have some, too.
type marks struct {
	rows uint64 // changed since the last cut
	due  uint64 // changed before the last cut and not taken yet
}

type rowCopy[K comparable, V any] struct {
	key K
	val V
}

// Track makes the table remember which rows change from now on. At the beginning
// none has. Only between batches.
func (t *Table[K, V]) Track() Tracker {
	t.tracked = true
	for i := range t.shards[:t.count] {
		s := &t.shards[i]
		s.changes = append(s.changes, changed[K, V]{marks: make([]marks, words(len(s.recs)))})
		if t.spill != nil {
			c := &t.spill.shards[i].cold
			before := c.bytes()
			c.marks = append(c.marks, make([]marks, words(len(c.slots))))
			t.spill.charge(c.bytes() - before)
		}
	}
	return Tracker(len(t.shards[0].changes) - 1)
}

// Untrack forgets a tracker, which must be the one that began last. Only between batches.
func (t *Table[K, V]) Untrack(tracker Tracker) {
	if last := len(t.shards[0].changes) - 1; int(tracker) != last {
		panic(fmt.Sprintf("tracker %d of a table ends before tracker %d, which began later", tracker, last))
	}
	for i := range t.shards[:t.count] {
		s := &t.shards[i]
		s.changes[tracker] = changed[K, V]{} // it may hold memory
		s.changes = s.changes[:tracker]
		if t.spill != nil {
			c := &t.spill.shards[i].cold
			before := c.bytes()
			c.marks = c.marks[:tracker]
			t.spill.charge(c.bytes() - before)
		}
	}
	t.tracked = tracker > 0
}

func words(rows int) int { return (rows + 63) / 64 }

// Changing notes that the value of a row is about to change, or that the row is about
// to lose it. What Install and Load do is noted by themselves.
func (t *Table[K, V]) Changing(row uint32) {
	if t.tracked {
		t.shards[row&(Shards-1)].changing(row >> shardBits)
	}
}

func (s *shard[K, V]) changing(local uint32) {
	word, bit := local>>6, uint64(1)<<(local&63)
	for i := range s.changes {
		c := &s.changes[i]
		m := &c.marks[word]
		m.rows |= bit
		if m.due&bit != 0 {
			m.due &^= bit
			if r := &s.recs[local]; r.Present() {
				c.copies = append(c.copies, rowCopy[K, V]{r.Key, r.Val})
			}
		}
	}
}

// moved takes the marks of a row to its new place.
func (s *shard[K, V]) moved(from, to uint32) {
	for i := range s.changes {
		m := s.changes[i].marks
		was := m[from>>6].of(from)
		m[from>>6].clear(from)
		m[to>>6].clear(to)
		m[to>>6].add(was, to)
	}
}

// of returns the marks of a row in the lowest bits.
func (m *marks) of(local uint32) marks {
	return marks{m.rows >> (local & 63) & 1, m.due >> (local & 63) & 1}
}

func (m *marks) add(one marks, local uint32) {
	m.rows |= one.rows << (local & 63)
	m.due |= one.due << (local & 63)
}

func (m *marks) clear(local uint32) {
	m.rows &^= 1 << (local & 63)
	m.due &^= 1 << (local & 63)
}

// removed notes that a row is no more, for trackers that have yet to hear of its
// last change.
func (s *shard[K, V]) removed(local uint32) {
	for i := range s.changes {
		c := &s.changes[i]
		if m := &c.marks[local>>6]; m.of(local).rows != 0 {
			m.clear(local)
			c.gone = append(c.gone, s.recs[local].Key)
		}
	}
}

// reach makes room for the marks of so many rows.
func (s *shard[K, V]) reach(rows int) {
	for i := range s.changes {
		c := &s.changes[i]
		for len(c.marks) < words(rows) {
			c.marks = append(c.marks, marks{})
		}
	}
}

// relaid takes the marks of a row from a layout before to its place in this one.
func (s *shard[K, V]) relaid(before []changed[K, V], from, to uint32) {
	for i := range before {
		s.changes[i].marks[to>>6].add(before[i].marks[from>>6].of(from), to)
	}
}

// ChangeAll marks every row as changed. Only just before a cut.
func (t *Table[K, V]) ChangeAll(tracker Tracker) {
	for i := range t.shards[:t.count] {
		for _, all := range t.marksOf(tracker, i) {
			for j := range all {
				all[j].rows = ^uint64(0)
			}
		}
	}
}

// marksOf returns the marks of a shard's rows, in memory and in the log.
func (t *Table[K, V]) marksOf(tracker Tracker, si int) [2][]marks {
	out := [2][]marks{t.shards[si].changes[tracker].marks}
	if t.spill != nil {
		out[1] = t.spill.shards[si].cold.marks[tracker]
	}
	return out
}

// Cut makes what changed so far due to be taken, as it is now. What was due before
// is taken already. Only between batches; takes time proportional to a sixty-fourth
// of the rows.
func (t *Table[K, V]) Cut(tracker Tracker) {
	for i := range t.shards[:t.count] {
		for _, all := range t.marksOf(tracker, i) {
			for j := range all {
				all[j] = marks{due: all[j].rows}
			}
		}
		c := &t.shards[i].changes[tracker]
		c.gone, c.dueGone, c.coldAt = c.dueGone[:0], c.gone, 0
	}
}

// TakeGone yields the keys that were gone at the cut, though some of them may have
// come back before it. They come before what Take yields.
func (t *Table[K, V]) TakeGone(tracker Tracker, yield func(key *K)) {
	for i := range t.shards[:t.count] {
		c := &t.shards[i].changes[tracker]
		for j := range c.dueGone {
			yield(&c.dueGone[j])
		}
		clear(c.dueGone) // keys may hold strings
		c.dueGone = c.dueGone[:0]
	}
}

// Take yields the due rows of a shard as they were at the cut, from word number at
// of its marks on, 64 rows a word. It stops behind the word with which it has yielded
// limit rows and returns where to go on; -1 when nothing of the shard is due. Only
// between batches; different shards may be taken from in parallel.
func (t *Table[K, V]) Take(tracker Tracker, shard, at, limit int, yield func(key *K, v *V)) (next int) {
	s := &t.shards[shard]
	c := &s.changes[tracker]
	for ; at < len(c.marks); at++ {
		w := c.marks[at].due
		if w == 0 {
			continue
		}
		if limit <= 0 {
			return at
		}
		c.marks[at].due = 0
		for ; w != 0; w &= w - 1 {
			row := at<<6 + bits.TrailingZeros64(w)
			if row < len(s.recs) && s.recs[row].Present() {
				limit--
				yield(&s.recs[row].Key, &s.recs[row].Val)
			}
		}
	}
	for len(c.copies) > 0 {
		if limit <= 0 {
			return len(c.marks)
		}
		last := &c.copies[len(c.copies)-1]
		limit--
		yield(&last.key, &last.val)
		*last = rowCopy[K, V]{} // it may hold memory
		c.copies = c.copies[:len(c.copies)-1]
	}
	if t.spill != nil {
		if limit <= 0 || t.takeCold(tracker, shard, limit, yield) {
			return len(c.marks)
		}
	}
	// Rows may have moved to where the marks were looked at already.
	for i := range c.marks {
		if c.marks[i].due != 0 {
			return i
		}
	}
	c.copies = nil
	return -1
}
