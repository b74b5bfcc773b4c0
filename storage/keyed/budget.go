package keyed

import (
	"sync/atomic"
	"unsafe"
)

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
