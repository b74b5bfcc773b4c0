package keyed

import (
	"fmt"
	"slices"

	"github.com/heddle-stream/heddle/internal/clock"
)

// victim is a row on its way into the log.
type victim[K comparable] struct {
	key  K
	hash uint32
}

// evict moves rows of a shard into the log until so many are left in memory.
func (t *Table[K, V]) evict(si, left int) {
	s, z, p := &t.shards[si], &t.spill.shards[si], t.spill
	if p.failed.Load() != nil {
		return
	}
	began := clock.NowNanos()
	defer func() { z.nanos += clock.NowNanos() - began }()
	const atOnce = 1 << 20 // bytes
	for n := s.used + len(s.late) - left; n > 0; {
		z.data, z.ends, z.victims = z.data[:0], z.ends[:0], z.victims[:0]
		for len(z.victims) < n && len(z.data) < atOnce {
			r := t.victim(si)
			if r == nil {
				break
			}
			if z.data = p.encoded(z.data, r); p.failed.Load() != nil {
				t.stay(si)
				return
			}
			z.ends = append(z.ends, len(z.data))
			z.victims = append(z.victims, victim[K]{r.Key, t.hash.sum(r.Key)})
			r.SetPresent(false) // so that it is not chosen again
		}
		if len(z.victims) == 0 || !t.leave(si) {
			return
		}
		n -= len(z.victims)
	}
}

// victim returns a row that can do without memory: the next from the hand on that nobody
// looked for since the hand came by. This is the clock algorithm (Corbató, 1968), with the
// state of a record as its bit, so that a look-up of a row in use does nothing for it.
//
// The hand jumps from bucket to bucket, far enough that it empties all parts of the table
// alike: if it went place by place, those before it would be crowded and searches there long.
func (t *Table[K, V]) victim(si int) *Record[K, V] {
	s, z := &t.shards[si], &t.spill.shards[si]
	const golden = 0x9e3779b9
	for range 2*len(s.recs) + 1 {
		if z.hand++; z.hand >= uint32(len(s.recs)) {
			z.hand = 0
		}
		at := z.hand
		if at <= s.mask {
			at = (at&^inBucket*golden | at&inBucket) & s.mask
		}
		r := &s.recs[at]
		switch r.tag & tagState {
		case rowIdle:
			return r
		case rowPresent:
			r.tag |= rowIdle
		}
	}
	return nil
}

// encoded adds the byte form of a row. A user's codec that panics is an error of the log.
func (p *spilling[K, V]) encoded(dst []byte, r *Record[K, V]) (out []byte) {
	defer func() {
		if v := recover(); v != nil {
			p.fail(fmt.Errorf("rows on disk: the codec panicked at key %v: %v", r.Key, v))
			out = dst
		}
	}()
	return p.append(dst, &r.Key, &r.Val)
}

// stay lets the victims be rows as before.
func (t *Table[K, V]) stay(si int) {
	s, z := &t.shards[si], &t.spill.shards[si]
	for _, v := range z.victims {
		if local, ok := s.find(v.hash, v.key); ok {
			s.recs[local].SetPresent(true)
		}
	}
}

// leave writes the victims to the log, takes them out of memory, and reports whether
// that worked.
func (t *Table[K, V]) leave(si int) bool {
	s, z, p := &t.shards[si], &t.spill.shards[si], t.spill
	z.wanted = slices.Grow(z.wanted[:0], len(z.ends))[:len(z.ends)]
	if err := p.log.Append(z.data, z.ends, z.wanted); err != nil {
		p.fail(err)
		t.stay(si)
		return false
	}
	c := &z.cold
	for i, v := range z.victims {
		for c.full() {
			before := c.bytes()
			c.grow()
			p.charge(c.bytes() - before)
		}
		at := c.add(v.hash, z.wanted[i])
		local, _ := s.find(v.hash, v.key)
		for k := range s.changes {
			m := &s.changes[k].marks[local>>6]
			c.marks[k][at>>6].clear(at)
			c.marks[k][at>>6].add(m.of(local), at)
			m.clear(local)
		}
		s.take(local)
	}
	z.gone += len(z.victims)
	t.weigh(si)
	clear(z.victims) // keys may hold strings
	return true
}
