package keyed

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/heddle-stream/heddle/internal/arena"
	"github.com/heddle-stream/heddle/internal/clock"
)

// Log keeps rows in byte form, outside of memory. Append, Read and Free may be called
// from several goroutines, for different rows.
type Log interface {
	// Append adds rows, which stand in data one behind the other and end at the given
	// offsets, and sets their addresses: above 0 and below AddressMax.
	Append(data []byte, ends []int, addresses []uint64) error
	// Row returns the row at an address, in memory of the caller.
	Row(address uint64, buf *[]byte) ([]byte, error)
	// Read yields the rows at addresses in ascending order; buf is the caller's memory.
	Read(addresses []uint64, buf *[]byte, yield func(i int, row []byte) error) error
	// Free gives up a row of so many bytes.
	Free(address uint64, row int)
	// Each yields all rows, those that are given up perhaps included.
	Each(yield func(address uint64, row []byte) error) error
	// Compact moves rows, if that frees much.
	Compact(there func(address uint64, row []byte) bool, moved func(row []byte, from, to uint64)) error
	// Size returns the bytes it takes.
	Size() int64
	// Close frees everything.
	Close() error
}

// Budget is the memory that tables share for their rows: places of records, with what
// those refer to, and the index of rows in the log.
type Budget struct {
	limit  int64
	tables int64
	used   atomic.Int64
}

// NewBudget returns a budget of so many bytes.
func NewBudget(bytes int64) *Budget { return &Budget{limit: bytes} }

// Used returns how many bytes the tables take.
func (b *Budget) Used() int64 { return b.used.Load() }

// spilling is what a table that may have rows in a log has besides.
type spilling[K comparable, V any] struct {
	budget *Budget
	log    Log
	append func(dst []byte, key *K, v *V) []byte
	decode func(src []byte, key *K, v *V) error
	keys   func(*K) int          // bytes that a key refers to, nil when it cannot
	vals   func(*V) int          // and a value
	held   atomic.Int64          // bytes of the budget
	places atomic.Int64          // of all shards
	failed atomic.Pointer[error] // the first of the log's errors
	shards [Shards]spilled[K, V]
}

// spilled is what a shard of such a table has besides.
type spilled[K comparable, V any] struct {
	cold    cold
	hand    uint32 // where the search for rows to go stands
	outside int64  // bytes that records refer to, as the budget has them
	sampled uint32 // the place looked at last for that
	fits    uint32
	come    int // rows so far
	gone    int
	nanos   int64 // that took, by samples where rows come one by one

	victims []victim[K]
	data    []byte
	ends    []int
	wanted  []uint64
	buf     []byte
	key     K // of the row in hand
	val     V
	_       [64]byte
}

// victim is a row on its way into the log.
type victim[K comparable] struct {
	key  K
	hash uint32
}

// Limit makes the table keep rows in memory as far as the budget allows, and the others in
// the log, in the byte form that the functions give and take. Not while a batch runs.
func (t *Table[K, V]) Limit(b *Budget, log Log, encode func(dst []byte, key *K, v *V) []byte, decode func(src []byte, key *K, v *V) error) {
	p := &spilling[K, V]{budget: b, log: log, append: encode, decode: decode, keys: arena.Outside[K](), vals: arena.Outside[V]()}
	t.spill = p
	b.tables++
	for i := range t.shards[:t.count] {
		p.shards[i].cold.marks = make([][]marks, len(t.shards[i].changes))
		p.charge(t.placesBytes(int(t.shards[i].mask) + 1))
		p.places.Add(int64(t.shards[i].mask) + 1)
	}
	for i := range t.shards[:t.count] {
		t.weigh(i)
		t.settle(i)
	}
}

// Limited reports whether rows may be in a log.
func (t *Table[K, V]) Limited() bool { return t.spill != nil }

// Traffic tells of the rows in the log: how many there are now, how many went there and
// came back so far, how many bytes it takes, and how much time moving rows took, summed over
// those who did it.
type Traffic struct {
	Rows, Gone, Come int
	Bytes, Nanos     int64
}

// Add adds that of another table.
func (n *Traffic) Add(other Traffic) {
	n.Rows += other.Rows
	n.Gone += other.Gone
	n.Come += other.Come
	n.Bytes += other.Bytes
	n.Nanos += other.Nanos
}

// Traffic returns that of the table. Between batches.
func (t *Table[K, V]) Traffic() (sum Traffic) {
	if t.spill == nil {
		return sum
	}
	for i := range t.shards[:t.count] {
		z := &t.spill.shards[i]
		sum.Add(Traffic{Rows: z.cold.used, Gone: z.gone, Come: z.come, Nanos: z.nanos})
	}
	sum.Bytes = t.spill.log.Size()
	return sum
}

// LogErr returns the first error of the log. After one the table is not whole: what could
// not be read was taken to be absent.
func (t *Table[K, V]) LogErr() error {
	if t.spill == nil {
		return nil
	}
	if err := t.spill.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// CloseLog frees the log, and the rows in it with it.
func (t *Table[K, V]) CloseLog() error {
	if t.spill == nil {
		return nil
	}
	for i := range t.spill.shards {
		c := &t.spill.shards[i].cold
		t.spill.charge(-c.bytes())
		c.clear()
	}
	return t.spill.log.Close()
}

// Tidy has the log free what rows left behind. Between batches, one goroutine.
func (t *Table[K, V]) Tidy() {
	if t.spill == nil {
		return
	}
	cold := func(row []byte, address uint64) (c *cold, at uint32, ok bool) {
		var key K
		var v V
		if !t.spill.decoded(row, &key, &v) {
			return nil, 0, false
		}
		hash := t.hash.sum(key)
		c = &t.spill.shards[t.Shard(hash)].cold
		at, ok = c.at(hash, address)
		return c, at, ok
	}
	t.spill.fail(t.spill.log.Compact(
		func(address uint64, row []byte) bool {
			_, _, ok := cold(row, address)
			return ok
		},
		func(row []byte, from, to uint64) {
			if c, at, ok := cold(row, from); ok {
				c.slots[at] = c.slots[at]&^addressMask | to
			}
		}))
}

func (p *spilling[K, V]) fail(err error) {
	if err != nil {
		p.failed.CompareAndSwap(nil, &err)
	}
}

// decoded decodes a row, and takes it to be damaged if that fails.
func (p *spilling[K, V]) decoded(row []byte, key *K, v *V) bool {
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

// placesBytes returns how much memory so many places take.
func (t *Table[K, V]) placesBytes(places int) int64 {
	return int64(places) * int64(unsafe.Sizeof(Record[K, V]{})+unsafe.Sizeof(touch{}))
}

// charge takes bytes from the budget, or gives them back.
func (p *spilling[K, V]) charge(bytes int64) {
	p.held.Add(bytes)
	p.budget.used.Add(bytes)
}

// mayGrow reports whether a shard can have so many places more. There is enough for all of
// them to do so; or there is some left, or the table has less than its share, and others
// will have to do with less. Then no shard gets ahead of the others.
func (t *Table[K, V]) mayGrow(si, places int) bool {
	p, b, more := t.spill, t.spill.budget, t.placesBytes(places)
	if b.used.Load()+more*int64(t.count) <= b.limit {
		return true
	}
	return t.lead(si) <= 0 && (b.used.Load()+more <= b.limit || p.held.Load()+more <= b.limit/b.tables)
}

// lead returns how many places the shard has more than they have on average.
func (t *Table[K, V]) lead(si int) int {
	return int(t.shards[si].mask) + 1 - int(t.spill.places.Load())/t.count
}

// pressed reports whether a shard has to do with less.
func (t *Table[K, V]) pressed(si int) bool {
	p, b := t.spill, t.spill.budget
	return b.used.Load() > b.limit && p.held.Load() > b.limit/b.tables && t.lead(si) >= 0
}

// fit gives all rows of a shard places, as far as the budget allows; others go into the
// log, those first that nobody looked for since the last but one time that rows went.
func (t *Table[K, V]) fit(si int) {
	s, z, p := &t.shards[si], &t.spill.shards[si], t.spill
	const often = 64 // while rows are loaded, each is a call
	if z.fits++; z.fits%often == 0 {
		t.weigh(si)
	}
	rows, now := s.used+len(s.late), int(s.mask)+1
	places := now
	for !roomyFor[K, V](rows, places) {
		places *= 2
	}
	for places > now && !t.mayGrow(si, places-now) {
		places /= 2
	}
	if t.pressed(si) {
		over := float64(p.budget.used.Load()) / float64(p.budget.limit)
		t.evict(si, int(float64(rows)*min(0.75, 1/over)))
		if rows = s.used + len(s.late); rows <= now/2 && now > placesMin {
			places = now / 2
		}
	}
	if rows > places/8*7 {
		t.evict(si, places/4*3)
	}
	if rows = s.used + len(s.late); rows > places/8*7 { // the log takes no more
		for !roomyFor[K, V](rows, places) {
			places *= 2
		}
	}
	if places == now && len(s.recs) == now {
		return
	}
	s.relay(places)
	z.hand &= s.mask
	p.places.Add(int64(places - now))
	p.charge(t.placesBytes(places) - t.placesBytes(now))
}

// weigh tells the budget about how much memory it is that records refer to, by a sample.
func (t *Table[K, V]) weigh(si int) {
	const sample = 16
	s, z, p := &t.shards[si], &t.spill.shards[si], t.spill
	if p.keys == nil && p.vals == nil {
		return
	}
	n, bytes := 0, 0
	for range min(len(s.recs), 4*sample) {
		if z.sampled++; z.sampled > s.mask {
			z.sampled = 0
		}
		r := &s.recs[z.sampled]
		if !r.Present() {
			continue
		}
		if p.keys != nil {
			bytes += p.keys(&r.Key)
		}
		if p.vals != nil {
			bytes += p.vals(&r.Val)
		}
		if n++; n == sample {
			break
		}
	}
	if n == 0 {
		n = 1
	}
	now := int64(s.used+len(s.late)) * int64(bytes) / int64(n)
	p.charge(now - z.outside)
	z.outside = now
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
			z.data = p.append(z.data, &r.Key, &r.Val)
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

// leave writes the victims to the log, takes them out of memory, and reports whether
// that worked.
func (t *Table[K, V]) leave(si int) bool {
	s, z, p := &t.shards[si], &t.spill.shards[si], t.spill
	z.wanted = slices.Grow(z.wanted[:0], len(z.ends))[:len(z.ends)]
	if err := p.log.Append(z.data, z.ends, z.wanted); err != nil {
		p.fail(err)
		for _, v := range z.victims {
			if local, ok := s.find(v.hash, v.key); ok {
				s.recs[local].SetPresent(true)
			}
		}
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
