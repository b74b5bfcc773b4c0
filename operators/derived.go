package operators

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// What follows is made of other operators, for those who would write it again and again.

// Deduplicate hands on the first item of each key, in the order in which they come, and others only when
// keep has passed in event time since the last one of the key that was handed on; 0 for never.
func Deduplicate[K comparable, T any](k Keyed[K, T], name string, keep time.Duration) Stream[T] {
	type seen struct {
		any bool
		at  int64
	}
	return Fold(k, name, func(_ K, s *seen, item *T, at int64, emit func(T)) {
		if !s.any || keep > 0 && at-s.at >= int64(keep) {
			s.any, s.at = true, at
			emit(*item)
		}
	})
}

// Ranked is an item with its place, from 1.
type Ranked[T any] struct {
	Rank int64
	Item T
}

// TopN keeps the n best items of each key so far, and hands on an item that is among them when it
// comes, with its place: behind those that are as good. Less orders items, the best one first.
func TopN[K comparable, T any](k Keyed[K, T], name string, n int, less func(a, b *T) int) Stream[Ranked[T]] {
	if n < 1 {
		k.job.fail(name, fmt.Errorf("the best %d items: 1 or more is needed", n))
	}
	return Fold(k, name, func(_ K, best *[]T, item *T, _ int64, emit func(Ranked[T])) {
		at, _ := slices.BinarySearchFunc(*best, item, func(have T, item *T) int {
			if less(&have, item) <= 0 {
				return -1
			}
			return 1
		})
		if at < n {
			*best = slices.Insert(*best, at, *item)
			*best = (*best)[:min(len(*best), n)]
			emit(Ranked[T]{int64(at + 1), *item})
		}
	})
}

// Top hands on the n best items of each key and window when it fires, the best one first, those
// that are as good in the order in which they came.
func Top[K comparable, T any](k Keyed[K, T], name string, w Windows, n int, less func(a, b *T) int) Stream[Ranked[T]] {
	return Process(k, name, w, func(_ K, _ Span, items []T, emit func(Ranked[T])) {
		slices.SortStableFunc(items, func(a, b T) int { return less(&a, &b) })
		for i := range min(n, len(items)) {
			emit(Ranked[T]{int64(i + 1), items[i]})
		}
	})
}

// Quantile is an exact quantile of the values of a key in a window.
type Quantile[K comparable, V cmp.Ordered] struct {
	Key   K
	W     Span
	Q     float64
	N     int64 // values
	Value V
}

// Quantiles finds exact quantiles of a value, 0 the least and 1 the greatest one, 0.5 the median: the least
// value that so large a part of all does not exceed.
func Quantiles[K comparable, T any, V cmp.Ordered](k Keyed[K, T], name string, w Windows, value func(item *T) V, qs ...float64) Stream[Quantile[K, V]] {
	for _, q := range qs {
		if !(q >= 0 && q <= 1) {
			k.job.fail(name, fmt.Errorf("a quantile of %v: 0 to 1 is needed", q))
		}
	}
	return Process(k, name, w, func(key K, w Span, items []T, emit func(Quantile[K, V])) {
		values := make([]V, len(items))
		for i := range items {
			values[i] = value(&items[i])
		}
		slices.Sort(values)
		for _, q := range qs {
			emit(Quantile[K, V]{key, w, q, int64(len(values)), values[quantileAt(q, len(values))]})
		}
	})
}

// quantileAt returns the place of a quantile among n sorted values.
func quantileAt(q float64, n int) int {
	at := int(q * float64(n))
	if float64(at) == q*float64(n) { // so many values are the part itself
		at--
	}
	return min(max(at, 0), n-1)
}
