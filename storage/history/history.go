package history

import (
	"cmp"
	"iter"
	"slices"
	"sort"
)

// Version is a value that a key had from an event on.
type Version[V any] struct {
	Seq  int64 // number of the event in the run
	Time int64 // its event time, 0 where there is none
	Val  V
	Gone bool // the key had no value from then on
}

// Held is what a key held, or nothing.
type Held[V any] struct {
	Val V
	Ok  bool
}

// Totals keeps a running total beside each series of a shard, one for each fold.
type Totals[V any] interface {
	// Appended adds a version at the end of series i, whose first one has begun anew
	// when fresh is set; v is nil when the key is gone.
	Appended(shard int, i uint32, v *V, fresh bool)
	// Dropped takes n versions off the front of series i.
	Dropped(shard int, i uint32, n int)
	// Undone leaves the first versions of series i, of which there may be less.
	Undone(shard int, i uint32, left int)
}

// History holds the series of a table. Shards may be appended to by different
// goroutines at the same time; while nobody appends, anybody may read.
type History[K comparable, V any] struct {
	shards []shard[K, V]
	totals []Totals[V]
}

type shard[K comparable, V any] struct {
	index  map[K]uint32
	series []series[K, V]
	free   []uint32 // series without a key
	log    queue[entry]
	loose  int // versions at the end of the log that are not in order yet
	_      [64]byte
}

type entry struct {
	seq, time int64
	series    uint32
}

type series[K comparable, V any] struct {
	key K
	queue[Version[V]]
	before Held[V] // what the key held before the first of them
}

// queue is a slice that is taken from at its front.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) live() []T { return q.items[q.head:] }

// drop takes n items off the front. Memory is moved together when half of it is
// gone, so that an item is moved once on average.
func (q *queue[T]) drop(n int) {
	var none T
	for i := q.head; i < q.head+n; i++ {
		q.items[i] = none // it may hold memory
	}
	q.head += n
	if q.head*2 >= len(q.items) {
		left := copy(q.items, q.items[q.head:])
		clear(q.items[left:])
		q.items, q.head = q.items[:left], 0
	}
}

// New returns an empty history with the given number of shards.
func New[K comparable, V any](shards int) *History[K, V] {
	h := &History[K, V]{shards: make([]shard[K, V], shards)}
	for i := range h.shards {
		h.shards[i].index = map[K]uint32{}
	}
	return h
}

// Add makes t keep totals of what is appended from now on.
func (h *History[K, V]) Add(t Totals[V]) { h.totals = append(h.totals, t) }

// Append adds versions of a key, oldest first, all newer than those of the key
// before. What it held before them counts when there are none. Between two calls of
// Expire keys may come in any order.
func (h *History[K, V]) Append(si int, key K, before Held[V], versions ...Version[V]) {
	s := &h.shards[si]
	i, ok := s.index[key]
	if !ok {
		i = s.fresh(key)
	}
	if len(s.series[i].live()) == 0 {
		s.series[i].before = before
	}
	for _, v := range versions {
		if n := len(s.series[i].live()); v.Gone && !h.Before(si, i, n).Ok {
			continue // it was gone before
		}
		fresh := len(s.series[i].live()) == 0
		s.series[i].items = append(s.series[i].items, v)
		s.log.items = append(s.log.items, entry{v.Seq, v.Time, i})
		s.loose++
		if h.totals != nil {
			val := &v.Val
			if v.Gone {
				val = nil
			}
			h.total(si, i, val, fresh)
		}
	}
	if len(s.series[i].live()) == 0 { // not after a panic, which has released it
		s.release(i)
	}
}

// total adds the version that was appended last to all totals. If one of them
// panics, the version is taken back.
func (h *History[K, V]) total(si int, i uint32, v *V, fresh bool) {
	done := false
	defer func() {
		if !done {
			h.undo(si)
		}
	}()
	for _, t := range h.totals {
		t.Appended(si, i, v, fresh)
	}
	done = true
}

// release makes a series without versions one of no key.
func (s *shard[K, V]) release(i uint32) {
	one := &s.series[i]
	delete(s.index, one.key)
	var none K
	one.key, one.before = none, Held[V]{}
	s.free = append(s.free, i)
}

func (s *shard[K, V]) fresh(key K) uint32 {
	var i uint32
	if n := len(s.free); n > 0 {
		i, s.free = s.free[n-1], s.free[:n-1]
	} else {
		i = uint32(len(s.series))
		s.series = append(s.series, series[K, V]{})
	}
	s.series[i].key = key
	s.index[key] = i
	return i
}

// Forget takes back what was appended since the last Expire.
func (h *History[K, V]) Forget() {
	for si := range h.shards {
		s := &h.shards[si]
		for s.loose > 0 {
			h.undo(si)
		}
	}
}

// undo takes back what was appended last to a shard.
func (h *History[K, V]) undo(si int) {
	s := &h.shards[si]
	last := len(s.log.items) - 1
	i := s.log.items[last].series
	s.log.items = s.log.items[:last]
	s.loose--
	one := &s.series[i]
	one.items = one.items[:len(one.items)-1]
	for _, t := range h.totals {
		t.Undone(si, i, len(one.live()))
	}
	if len(one.live()) == 0 {
		s.release(i)
	}
}

// Expire forgets the versions from before the sequence number and before the
// time.
func (h *History[K, V]) Expire(seq, time int64) {
	for si := range h.shards {
		h.expire(si, seq, time)
	}
}

func (h *History[K, V]) expire(si int, seq, time int64) {
	s := &h.shards[si]
	loose := s.log.items[len(s.log.items)-s.loose:]
	slices.SortStableFunc(loose, func(a, b entry) int { return cmp.Compare(a.seq, b.seq) })
	s.loose = 0
	n := 0
	for _, e := range s.log.live() {
		if e.seq >= seq || e.time >= time {
			break
		}
		n++
		one := &s.series[e.series]
		first := &one.live()[0]
		one.before = Held[V]{first.Val, !first.Gone}
		one.drop(1)
		for _, t := range h.totals {
			t.Dropped(si, e.series, 1)
		}
		if len(one.live()) == 0 {
			s.release(e.series)
		}
	}
	s.log.drop(n)
}

// Last returns the newest version of a key, or nil.
func (h *History[K, V]) Last(si int, key K) *Version[V] {
	versions, _ := h.Series(si, key)
	if len(versions) == 0 {
		return nil
	}
	return &versions[len(versions)-1]
}

// Series returns the versions of a key, oldest first, and the number of its
// series. They are valid until the next Append or Expire.
func (h *History[K, V]) Series(si int, key K) ([]Version[V], uint32) {
	s := &h.shards[si]
	i, ok := s.index[key]
	if !ok {
		return nil, 0
	}
	return s.series[i].live(), i
}

// Before returns what a key held before the n-th of the versions that Series gives for it.
func (h *History[K, V]) Before(si int, i uint32, n int) Held[V] {
	one := &h.shards[si].series[i]
	if n == 0 {
		return one.before
	}
	v := &one.live()[n-1]
	return Held[V]{v.Val, !v.Gone}
}

// SinceSeq returns how many versions are older than the sequence number.
func SinceSeq[V any](versions []Version[V], seq int64) int {
	return sort.Search(len(versions), func(i int) bool { return versions[i].Seq >= seq })
}

// SinceTime returns how many versions are older than the time.
func SinceTime[V any](versions []Version[V], time int64) int {
	return sort.Search(len(versions), func(i int) bool { return versions[i].Time >= time })
}

// Kept is a version with what the key held before it.
type Kept[V any] struct {
	*Version[V]
	Before Held[V]
	First  bool // of the key's
}

// All yields each key with its versions, oldest first, which are valid during the
// step. Keys come in no particular order.
func (h *History[K, V]) All() iter.Seq2[K, Kept[V]] {
	return func(yield func(K, Kept[V]) bool) {
		for si := range h.shards {
			for key, i := range h.shards[si].index {
				live := h.shards[si].series[i].live()
				for n := range live {
					if !yield(key, Kept[V]{&live[n], h.Before(si, i, n), n == 0}) {
						return
					}
				}
			}
		}
	}
}

// Fresh yields what was appended since the last Expire, the versions of a key oldest
// first.
func (h *History[K, V]) Fresh() iter.Seq2[K, Kept[V]] {
	return func(yield func(K, Kept[V]) bool) {
		for i := range h.shards {
			s := &h.shards[i]
			for _, e := range s.log.items[len(s.log.items)-s.loose:] {
				one := &s.series[e.series]
				live := one.live()
				at := SinceSeq(live, e.seq)
				if !yield(one.key, Kept[V]{&live[at], h.Before(i, e.series, at), at == 0}) {
					return
				}
			}
		}
	}
}

// Len returns the number of versions kept.
func (h *History[K, V]) Len() int {
	n := 0
	for i := range h.shards {
		n += len(h.shards[i].log.live())
	}
	return n
}

// Reset forgets everything.
func (h *History[K, V]) Reset() {
	for i := range h.shards {
		h.expire(i, 1<<63-1, 1<<63-1)
	}
}
