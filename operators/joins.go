package operators

import (
	"fmt"
	"time"
)

// within is the items of one side of a join that may still meet one of the other side.
type within[T any] struct{ items []timed[T] }

// since forgets the items before a time.
func (w *within[T]) since(at int64) {
	n := 0
	for n < len(w.items) && w.items[n].at < at {
		n++
	}
	w.items = w.items[n:]
}

// IntervalJoin gives each pair of a left and a right item of one key to a function, if the right
// one's time is between lower and upper behind the left one's, both included. A result has the
// later time of both.
func IntervalJoin[K comparable, L, R, O any](left Keyed[K, L], right Keyed[K, R], name string, lower, upper time.Duration, f func(key K, l *L, r *R, emit func(O))) Stream[O] {
	type both struct {
		lefts  within[L]
		rights within[R]
	}
	if lower > upper {
		left.job.fail(name, fmt.Errorf("an interval from %v to %v", lower, upper))
	}
	lo, hi := clampSpan(lower), clampSpan(upper)
	keep := time.Duration(max(hi, -lo, 1))
	// What comes later is not earlier than this: items that can meet nothing of it go.
	forget := func(s *both, at int64) {
		s.lefts.since(at - hi)
		s.rights.since(at + lo)
	}
	return Meet(left, right, name, keep, func(key K, s *both, l *L, at int64, emit func(O)) {
		forget(s, at)
		for i := range s.rights.items {
			if r := &s.rights.items[i]; r.at >= at+lo && r.at <= at+hi {
				f(key, l, &r.item, emit)
			}
		}
		s.lefts.items = append(s.lefts.items, timed[L]{at: at, item: *l})
	}, func(key K, s *both, r *R, at int64, emit func(O)) {
		forget(s, at)
		for i := range s.lefts.items {
			if l := &s.lefts.items[i]; l.at >= at-hi && l.at <= at-lo {
				f(key, &l.item, r, emit)
			}
		}
		s.rights.items = append(s.rights.items, timed[R]{at: at, item: *r})
	})
}

// clampSpan returns ns that can be added to any time: for ever is 73 years.
func clampSpan(d time.Duration) int64 { return min(max(int64(d), -sizeMax), sizeMax) }

// RegularJoin gives each pair of a left and a right item of one key to a function, as long as
// neither is older than the retention when the other one comes; a very long one is for ever.
func RegularJoin[K comparable, L, R, O any](left Keyed[K, L], right Keyed[K, R], name string, retention time.Duration, f func(key K, l *L, r *R, emit func(O))) Stream[O] {
	return IntervalJoin(left, right, name, -retention, retention, f)
}

// TemporalJoin gives each left item to a function, with the last right item of its key at
// that time, or nil when there was none: a row as it was.
func TemporalJoin[K comparable, L, R, O any](left Keyed[K, L], right Keyed[K, R], name string, f func(key K, l *L, r *R, emit func(O))) Stream[O] {
	type latest struct {
		known bool
		item  R
	}
	return Meet(left, right, name, 0, func(key K, s *latest, l *L, _ int64, emit func(O)) {
		if s.known {
			f(key, l, &s.item, emit)
		} else {
			f(key, l, nil, emit)
		}
	}, func(_ K, s *latest, r *R, _ int64, _ func(O)) {
		s.known, s.item = true, *r
	})
}
