package operators

import (
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-stream/heddle/internal/codec"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/window"
)

// Process collects the items of each key and window, and gives all of them to a function when
// the window fires. The slice is valid during the call. Items are kept as bytes: T has to be of a
// plain type.
func Process[K comparable, T, R any](k Keyed[K, T], name string, w Windows, f func(key K, w Span, items []T, emit func(R))) Stream[R] {
	items, err := codec.Derive[T]()
	k.job.fail(name, err)
	gap, err := gapOf[T](&w)
	k.job.fail(name, err)
	op := &processOp[K, T, R]{windowed: newWindowed[K, R](k.job, name, w), key: k.key, all: k.all, gap: gap, items: items, f: f}
	return add[T, R](k.Stream, name, plan.Window, plan.Shuffle, op)
}

type processOp[K comparable, T, R any] struct {
	windowed[K, R]
	key   func(*T) K
	all   bool // items have one key
	gap   func(*T) int64
	items codec.Codec[T]
	f     func(K, Span, []T, func(R))
}

func (op *processOp[K, T, R]) EqualTo(other any) bool {
	o, ok := other.(*processOp[K, T, R])
	return ok && op.w == o.w && same(op.key, o.key) && same(op.f, o.f)
}

// OneKey reports that all items have the same key.
func (op *processOp[K, T, R]) OneKey() bool { return op.all }

// Access returns how the windows are written and read.
func (op *processOp[K, T, R]) Access() plan.AccessPattern { return op.w.access(false) }

// CanAccess reports whether the windows can be kept in a store for another way to write and read them.
func (op *processOp[K, T, R]) CanAccess(by plan.AccessPattern) bool { return by == op.Access() }

func (op *processOp[K, T, R]) hashOf(int) any {
	return func(item *T) uint64 { return op.keys.hash(op.key(item)) }
}

// collecting puts together the items of one key and window.
type collecting[T any] struct {
	codec codec.Codec[T]
	items []T
}

func (c *collecting[T]) add(value []byte) error {
	var item T
	rest, err := c.codec.Decode(value, &item)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes behind an item", len(rest))
	}
	c.items = append(c.items, item)
	return err
}

func (op *processOp[K, T, R]) build(t *task, out any) []any {
	c, to := t.counters(), out.(inlet[R])
	if !op.w.aligned() {
		return []any{op.buildOwn(t, c, to)}
	}
	store := t.lists(shapeOf[K]() + " " + shapeOf[T]())
	windows, fired, items := newAligned(op.w, t), Block[R]{}, collecting[T]{codec: op.items}
	t.atEnd(func(watermark int64) error {
		return windows.fire(watermark, c, func(f *firing) error {
			rank := uint64(0)
			emit := func(r R) { fired.put(r, f.at, rank) }
			err := store.Each(f.units, func(hash uint64, kb []byte, values window.Values) error {
				if f.skips(kb) {
					return nil
				}
				rank = hash
				k, err := op.keys.decode(kb)
				items.items = items.items[:0]
				for i := 0; i < values.Len() && err == nil; i++ {
					err = items.add(values.At(i))
				}
				if err != nil {
					return err
				}
				op.f(k, f.w, items.items, emit)
				return flushFull(&fired, c, to)
			})
			return errors.Join(err, flush(&fired, c, to))
		}, store.Drop)
	})
	return []any{appending(op.key, &op.keys, op.items.Append, windows, store, c)}
}

// appending is the inlet of an operator that keeps lists of items, each as value makes it.
func appending[K comparable, T any](keyOf func(*T) K, keys *keyCodec[K], valueOf func(dst []byte, item *T) []byte, windows *aligned, store window.ListStore, c *Counters) any {
	var key, value []byte
	return inlet[T](taker[T](func(b *Block[T]) error {
		c.In.Add(int64(len(b.Items)))
		for i := range b.Items {
			k := keyOf(&b.Items[i])
			key, value = keys.append(key[:0], &k), valueOf(value[:0], &b.Items[i])
			for _, u := range windows.unitsOf(b.Times[i], b.missed(i), c) {
				if err := store.Append(u, b.Hashes[i], key, value); err != nil {
					return err
				}
			}
			for _, u := range windows.missed {
				key, value, hash := slices.Clone(key), slices.Clone(value), b.Hashes[i]
				windows.later(u, key, func() error { return store.Append(u, hash, key, value) })
			}
		}
		return nil
	}))
}

// buildOwn collects windows of which each key has its own.
func (op *processOp[K, T, R]) buildOwn(t *task, c *Counters, to inlet[R]) any {
	store, value, items := t.unaligned(0, nil, shapeOf[T]()), []byte(nil), collecting[T]{codec: op.items}
	put := func(id uint32, expected int64, item *T) error {
		value = op.items.Append(value[:0], item)
		return store.Append(id, expected, value)
	}
	fire := func(k K, w Span, parts [][]byte, emit func(R)) error {
		items.items = items.items[:0]
		for _, contents := range parts {
			for value := range window.Contents(contents) {
				if err := items.add(value); err != nil {
					return err
				}
			}
		}
		op.f(k, w, items.items, emit)
		return nil
	}
	return owning[K, T, R]{&op.windowed, op.key, op.gap, store, put, fire}.build(t, c, to)
}
