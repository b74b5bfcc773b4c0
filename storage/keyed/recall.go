package keyed

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/heddle-stream/heddle/internal/arena"
	"github.com/heddle-stream/heddle/internal/clock"
)

// decoded decodes a row, and takes it to be damaged if that fails.
func (p *spilling[K, V]) decoded(row []byte, key *K, v *V) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			p.fail(fmt.Errorf("rows on disk: the codec panicked: %v", r))
			ok = false
		}
	}()
	var none V
	*v = none // or a codec might use memory again that another row has
	if err := p.decode(row, key, v); err != nil {
		p.fail(fmt.Errorf("rows on disk: %w", err))
		return false
	}
	return true
}

// find returns the slot of a key in a shard's index and the size of its row, decoded into
// k and v, and false if there is none. Others may do so at the same time, with other memory.
func (p *spilling[K, V]) find(c *cold, hash uint32, key K, k *K, v *V, buf *[]byte) (at uint32, size int, found bool) {
	for at, ok := c.next(hash, hash); ok; at, ok = c.next(at+1, hash) {
		row, err := p.log.Row(c.slots[at]&addressMask, buf)
		if p.fail(err); err == nil && p.decoded(row, k, v) && *k == key {
			return at, len(row), true
		}
	}
	return 0, 0, false
}

// Get returns the value of a key. It changes nothing: where nobody else does, it may be
// called from any goroutine.
func (t *Table[K, V]) Get(key K) (v V, ok bool) {
	hash := t.hash.sum(key)
	s := &t.shards[t.Shard(hash)]
	if local, ok := s.find(hash, key); ok {
		rec := &s.recs[local]
		return rec.Val, rec.Present()
	}
	if t.spill == nil {
		return v, false
	}
	var buf []byte
	var k K
	c := &t.spill.shards[t.Shard(hash)].cold
	if _, _, ok = t.spill.find(c, hash, key, &k, &v, &buf); !ok {
		var none V
		v = none
	}
	return v, ok
}

// recall brings the row of a key back into memory, if the log has it, and reports whether
// it did. It is in no place yet.
func (t *Table[K, V]) recall(si int, hash uint32, key K) (local uint32, ok bool) {
	const sample = 16
	z := &t.spill.shards[si]
	if _, ok := z.cold.next(hash, hash); !ok {
		return 0, false
	}
	began, timed := int64(0), z.come%sample == 0
	if timed {
		began = clock.NowNanos()
	}
	at, size, ok := t.spill.find(&z.cold, hash, key, &z.key, &z.val, &z.buf)
	if ok {
		local = t.enter(si, at, hash, size)
	}
	if timed {
		z.nanos += sample * (clock.NowNanos() - began)
	}
	return local, ok
}

// enter puts the row in hand, which has a slot of the index, into memory.
func (t *Table[K, V]) enter(si int, at, hash uint32, size int) uint32 {
	s, z := &t.shards[si], &t.spill.shards[si]
	local := s.place(hash, z.key)
	r := &s.recs[local]
	r.Key, r.Val, r.tag = z.key, z.val, hash&^tagState|rowPresent
	for i := range s.changes {
		m := &s.changes[i].marks[local>>6]
		m.clear(local)
		m.add(z.cold.marks[i][at>>6].of(at), local)
	}
	t.spill.log.Free(z.cold.slots[at]&addressMask, size)
	z.cold.remove(at)
	z.come++
	return local
}

// recallAll brings all rows back into memory that entries want, reading them in the order
// in which they stand.
func (t *Table[K, V]) recallAll(si int, entries []Entry[K]) {
	s, z := &t.shards[si], &t.spill.shards[si]
	if z.cold.used == 0 {
		return
	}
	began := clock.NowNanos()
	z.wanted = z.wanted[:0]
	for i := range entries {
		if i+ahead < len(entries) {
			hash := entries[i+ahead].Hash
			arena.Prefetch(unsafe.Pointer(&s.recs[s.home(hash)]))
			arena.Prefetch(unsafe.Pointer(&z.cold.slots[hash&z.cold.mask]))
		}
		e := &entries[i]
		if local, ok := s.find(e.Hash, e.Key); ok {
			s.recs[local].use()
			continue
		}
		for at, ok := z.cold.next(e.Hash, e.Hash); ok; at, ok = z.cold.next(at+1, e.Hash) {
			z.wanted = append(z.wanted, z.cold.slots[at]&addressMask)
		}
	}
	slices.Sort(z.wanted)
	z.wanted = slices.Compact(z.wanted)
	t.spill.fail(t.spill.log.Read(z.wanted, &z.buf, func(i int, row []byte) error {
		if !t.spill.decoded(row, &z.key, &z.val) {
			return *t.spill.failed.Load()
		}
		hash := t.hash.sum(z.key)
		if at, ok := z.cold.at(hash, z.wanted[i]); ok {
			t.enter(si, at, hash, len(row))
		}
		return nil
	}))
	z.nanos += clock.NowNanos() - began
}

// takeCold yields rows in the log that are due, about limit of them, and reports whether
// some are left.
func (t *Table[K, V]) takeCold(tracker Tracker, si, limit int, yield func(key *K, v *V)) (more bool) {
	z := &t.spill.shards[si]
	due := &t.shards[si].changes[tracker].coldAt
	m := z.cold.marks[tracker]
	z.wanted = z.wanted[:0]
	for range m { // around, because rows may have come to where nothing was due
		*due %= len(m)
		w := &m[*due]
		for ; w.due != 0 && len(z.wanted) < limit; w.due &= w.due - 1 {
			if slot := z.cold.slots[*due<<6+bits.TrailingZeros64(w.due)]; slot != 0 {
				z.wanted = append(z.wanted, slot&addressMask)
			}
		}
		if len(z.wanted) >= limit {
			break
		}
		*due++
	}
	if len(z.wanted) == 0 {
		return false
	}
	slices.Sort(z.wanted)
	t.spill.fail(t.spill.log.Read(z.wanted, &z.buf, func(_ int, row []byte) error {
		if !t.spill.decoded(row, &z.key, &z.val) {
			return *t.spill.failed.Load()
		}
		yield(&z.key, &z.val)
		return nil
	}))
	return true
}

// errStop ends the reading of a log that nobody wants any more of.
var errStop = errors.New("stop")

// allCold yields the rows that are in the log.
func (t *Table[K, V]) allCold(yield func(*K, *V) bool) {
	if t.spill == nil {
		return
	}
	var key K
	var v V
	err := t.spill.log.Each(func(address uint64, row []byte) error {
		if !t.spill.decoded(row, &key, &v) {
			return *t.spill.failed.Load()
		}
		hash := t.hash.sum(key)
		if _, ok := t.spill.shards[t.Shard(hash)].cold.at(hash, address); ok && !yield(&key, &v) {
			return errStop
		}
		return nil
	})
	if !errors.Is(err, errStop) {
		t.spill.fail(err)
	}
}
