package operators

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/heddle-stream/heddle/internal/arena"
	"github.com/heddle-stream/heddle/internal/codec"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/window"
)

// Aggregator computes a value of type A from items as they come. A has a fixed size and holds
// no pointers, and its zero value stands for no items. Merging has to be associative and
// commutative.
type Aggregator[T, A any] struct {
	Add   func(acc *A, item *T)
	Merge func(into, from *A)
}

// Aggregate computes a value for each key and window while items come, and what is made of it
// when the window fires.
func Aggregate[K comparable, T, A, R any](k Keyed[K, T], name string, w Windows, agg Aggregator[T, A], result func(key K, w Span, acc *A) R) Stream[R] {
	gap, err := gapOf[T](&w)
	k.job.fail(name, err)
	op := &aggregateOp[K, T, A, R]{windowed: newWindowed[K, R](k.job, name, w), key: k.key, all: k.all, gap: gap, agg: agg, result: result}
	if n := width[A](); n > window.WidthMax {
		k.job.fail(name, fmt.Errorf("%T, which is aggregated into, has %d bytes: at most %d are allowed", *new(A), n, window.WidthMax))
	}
	if arena.HasPointers[A]() {
		k.job.fail(name, fmt.Errorf("%T, which is aggregated into, holds pointers", *new(A)))
	}
	return add[T, R](k.Stream, name, plan.Window, plan.Shuffle, op)
}

// windowed is what operators with windows have in common.
type windowed[K comparable, R any] struct {
	emits[R]
	w    Windows
	keys keyCodec[K]
}

func newWindowed[K comparable, R any](j *Job, name string, w Windows) windowed[K, R] {
	keys, err := newKeyCodec[K]()
	j.fail(name, err)
	j.fail(name, w.check())
	return windowed[K, R]{w: w, keys: keys}
}

func (op *windowed[K, R]) byTime() bool { return true }

func (op *windowed[K, R]) allowsLate() bool { return op.w.lateness > 0 }

// SliceNanos returns the length of slices of which all windows consist, or 0.
func (op *windowed[K, R]) SliceNanos() int64 { return op.w.SliceNanos() }

// HoldsWindows tells that the operator keeps contents of windows in memory.
func (op *windowed[K, R]) HoldsWindows() {}

type aggregateOp[K comparable, T, A, R any] struct {
	windowed[K, R]
	key    func(*T) K
	all    bool // items have one key
	gap    func(*T) int64
	agg    Aggregator[T, A]
	result func(K, Span, *A) R
}

func (op *aggregateOp[K, T, A, R]) EqualTo(other any) bool {
	o, ok := other.(*aggregateOp[K, T, A, R])
	return ok && op.w == o.w && same(op.key, o.key) && same(op.agg.Add, o.agg.Add) && same(op.agg.Merge, o.agg.Merge) && same(op.result, o.result)
}

// OneKey reports that all items have the same key.
func (op *aggregateOp[K, T, A, R]) OneKey() bool { return op.all }

// Access returns how the windows are written and read.
func (op *aggregateOp[K, T, A, R]) Access() plan.AccessPattern { return op.w.access(true) }

// CanAccess reports whether the windows can be kept in a store for another way to write and read them: as
// lists, if items are of a plain type.
func (op *aggregateOp[K, T, A, R]) CanAccess(by plan.AccessPattern) bool {
	_, err := codec.Derive[T]()
	return by == op.Access() || err == nil && by == op.w.access(false)
}

// asList returns the operator that keeps all items and aggregates them when a window fires.
func (op *aggregateOp[K, T, A, R]) asList() *processOp[K, T, R] {
	items, err := codec.Derive[T]()
	if err != nil {
		panic("heddle: " + err.Error()) // CanAccess was asked
	}
	return &processOp[K, T, R]{windowed: op.windowed, key: op.key, all: op.all, gap: op.gap, items: items, f: func(k K, w Span, items []T, emit func(R)) {
		var acc A
		for i := range items {
			op.agg.Add(&acc, &items[i])
		}
		emit(op.result(k, w, &acc))
	}}
}

func (op *aggregateOp[K, T, A, R]) hashOf(int) any {
	return func(item *T) uint64 { return op.keys.hash(op.key(item)) }
}

// width is the size of A in whole words.
func width[A any]() int { return int(unsafe.Sizeof(*new(A))+7) &^ 7 }

func (op *aggregateOp[K, T, A, R]) merge(into, from []byte) {
	op.agg.Merge(as[A](into), as[A](from))
}

// as looks at bytes of a store, which are aligned there, as what they hold.
func as[A any](bytes []byte) *A { return (*A)(unsafe.Pointer(unsafe.SliceData(bytes))) }

func (op *aggregateOp[K, T, A, R]) build(t *task, out any) []any {
	c, to := t.counters(), out.(inlet[R])
	if a := plan.Access.Of(t.stage.e.g, t.vertex); a == plan.Aligned || a == plan.Unaligned {
		return op.asList().build(t, out)
	}
	if !op.w.aligned() {
		return []any{op.buildOwn(t, c, to)}
	}
	store := t.accumulators(width[A](), op.merge, shapeOf[K]()+" "+shapeOf[A]())
	windows, key, fired := newAligned(op.w, t), []byte(nil), Block[R]{}
	t.atEnd(func(watermark int64) error {
		return windows.fire(watermark, c, func(f *firing) error {
			err := store.Each(f.units, func(hash uint64, kb, acc []byte) error {
				k, err := op.keys.decode(kb)
				if err != nil || f.skips(kb) {
					return err
				}
				fired.put(op.result(k, f.w, as[A](acc)), f.at, hash)
				return flushFull(&fired, c, to)
			})
			return errors.Join(err, flush(&fired, c, to))
		}, store.Drop)
	})
	put := func(u Span, hash uint64, key []byte, item *T) error {
		acc, _, err := store.At(u, hash, key)
		if err == nil {
			op.agg.Add(as[A](acc), item)
		}
		return err
	}
	return []any{inlet[T](taker[T](func(b *Block[T]) error {
		c.In.Add(int64(len(b.Items)))
		for i := range b.Items {
			item := &b.Items[i]
			k := op.key(item)
			key = op.keys.append(key[:0], &k)
			for _, u := range windows.unitsOf(b.Times[i], b.missed(i), c) {
				if err := put(u, b.Hashes[i], key, item); err != nil {
					return err
				}
			}
			for _, u := range windows.missed {
				key, item, hash := slices.Clone(key), *item, b.Hashes[i]
				windows.later(u, key, func() error { return put(u, hash, key, &item) })
			}
		}
		return nil
	}))}
}

// flush hands on what was put out so far.
func flush[R any](b *Block[R], c *Counters, to inlet[R]) error {
	if len(b.Items) == 0 {
		return nil
	}
	c.Out.Add(int64(len(b.Items)))
	err := to.take(b)
	b.clear()
	return err
}

// flushFull does so when it is a whole block.
func flushFull[R any](b *Block[R], c *Counters, to inlet[R]) error {
	if len(b.Items) < blockItems {
		return nil
	}
	return flush(b, c, to)
}

// buildOwn aggregates into windows of which each key has its own.
func (op *aggregateOp[K, T, A, R]) buildOwn(t *task, c *Counters, to inlet[R]) any {
	store, total := t.unaligned(width[A](), op.merge, shapeOf[A]()), make([]byte, width[A]())
	put := func(id uint32, expected int64, item *T) error {
		acc, _, err := store.At(id, expected)
		if err == nil {
			op.agg.Add(as[A](acc), item)
		}
		return err
	}
	fire := func(k K, w Span, parts [][]byte, emit func(R)) error {
		copy(total, parts[0])
		for _, p := range parts[1:] {
			op.merge(total, p)
		}
		emit(op.result(k, w, as[A](total)))
		return nil
	}
	return owning[K, T, R]{&op.windowed, op.key, op.gap, store, put, fire}.build(t, c, to)
}
