package operators

import (
	"math"

	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/window"
)

// Split returns an operator that aggregates what comes to a partition with one batch, and
// another one that aggregates these parts. It pays where many items have few keys; windows
// of which each key has its own, whose bounds depend on all items, are not split.
func (op *aggregateOp[K, T, A, R]) Split() (before, behind any, ok bool) {
	if !op.w.aligned() || op.w.lateness > 0 {
		return nil, nil, false
	}
	unit := op.w.SliceNanos()
	if unit == 0 {
		unit = op.w.size
	}
	before = &partialOp[K, T, A]{keys: op.keys, key: op.key, agg: op.agg, unit: unit, offset: op.w.offset}
	behind = &aggregateOp[K, partialOf[K, A], A, R]{
		windowed: op.windowed, key: func(p *partialOf[K, A]) K { return p.key }, result: op.result, all: op.all,
		agg: Aggregator[partialOf[K, A], A]{
			Add:   func(acc *A, p *partialOf[K, A]) { op.agg.Merge(acc, &p.acc) },
			Merge: op.agg.Merge,
		},
	}
	return before, behind, true
}

// partialOf is what some items of one key come to, which all belong to the same windows.
type partialOf[K comparable, A any] struct {
	key K
	acc A
}

// partialWindows is how many windows, about, parts are collected of.
const partialWindows = 8

type partialOp[K comparable, T, A any] struct {
	emits[partialOf[K, A]]
	keys         keyCodec[K]
	key          func(*T) K
	agg          Aggregator[T, A]
	unit, offset int64
}

// Utility operators of this package tell what they are for.
func (op *partialOp[K, T, A]) String() string { return "partial aggregation" }

var _ plan.Splitter = (*aggregateOp[int, int, int, int])(nil)

func (op *partialOp[K, T, A]) partial() {}

func (op *partialOp[K, T, A]) build(t *task, out any) []any {
	c, to := t.counters(), out.(inlet[partialOf[K, A]])
	o := t.storeOptions()
	o.Limit, o.Shared, o.Keep = window.LimitMin, 0, false // of a batch there is not much, and its keys have nothing in common
	store := window.NewAccumulators(o, width[A](), func(into, from []byte) { op.agg.Merge(as[A](into), as[A](from)) })
	t.uses(store, &o)
	made, key, last := Block[partialOf[K, A]]{}, []byte(nil), Span{}
	flushAll := func() error {
		for _, u := range store.Windows() {
			err := store.Each([]Span{u}, func(_ uint64, kb, acc []byte) error {
				k, err := op.keys.decode(kb)
				if err != nil {
					return err
				}
				made.add(partialOf[K, A]{k, *as[A](acc)}, u.Start)
				return flushFull(&made, c, to)
			})
			if err == nil {
				err = store.Drop(u)
			}
			if err != nil {
				return err
			}
		}
		return flush(&made, c, to)
	}
	t.atEnd(func(int64) error { return flushAll() })
	open := 0 // windows
	return []any{inlet[T](taker[T](func(b *Block[T]) error {
		c.In.Add(int64(len(b.Items)))
		for i := range b.Items {
			item := &b.Items[i]
			if b.missed(i) != math.MinInt64 {
				c.Late.Add(1)
				continue
			}
			if at := b.Times[i]; at < last.Start || at >= last.End {
				// Parts may go on whenever they like: of many windows there is not much in each.
				if open++; open > partialWindows {
					if err := flushAll(); err != nil {
						return err
					}
					open = 1
				}
				start := floor(at-op.offset, op.unit) + op.offset
				last = Span{Start: start, End: start + op.unit}
			}
			k := op.key(item)
			key = op.keys.append(key[:0], &k)
			acc, _, err := store.At(last, op.keys.hash(k), key)
			if err != nil {
				return err
			}
			op.agg.Add(as[A](acc), item)
		}
		return nil
	}))}
}
