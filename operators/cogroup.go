package operators

import (
	"errors"
	"fmt"

	"github.com/heddle-stream/heddle/internal/codec"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/window"
)

// CoGroup collects the items of two streams by key and window, and gives them to a function
// when the window fires: a join of windows. The slices are valid during the call.
func CoGroup[K comparable, L, R, O any](left Keyed[K, L], right Keyed[K, R], name string, w Windows, f func(key K, w Span, left []L, right []R, emit func(O))) Stream[O] {
	j := left.job
	j.sameJob(name, right.job)
	lefts, err := codec.Derive[L]()
	j.fail(name, err)
	rights, err := codec.Derive[R]()
	j.fail(name, err)
	if !w.aligned() {
		j.fail(name, errors.New("windows of one key each are not there for two streams"))
	}
	j.b.Vertex(plan.ID(name), plan.Join, &coGroupOp[K, L, R, O]{
		windowed: newWindowed[K, O](j, name, w), leftKey: left.key, rightKey: right.key, lefts: lefts, rights: rights, f: f,
	})
	j.b.Edge(left.id, plan.ID(name), 0, plan.Shuffle)
	j.b.Edge(right.id, plan.ID(name), 1, plan.Shuffle)
	return Stream[O]{j, plan.ID(name)}
}

type coGroupOp[K comparable, L, R, O any] struct {
	windowed[K, O]
	leftKey  func(*L) K
	rightKey func(*R) K
	lefts    codec.Codec[L]
	rights   codec.Codec[R]
	f        func(K, Span, []L, []R, func(O))
}

// Access returns how the windows are written and read.
func (op *coGroupOp[K, L, R, O]) Access() plan.AccessPattern { return plan.Aligned }

func (op *coGroupOp[K, L, R, O]) hashOf(port int) any {
	if port == 0 {
		return func(item *L) uint64 { return op.keys.hash(op.leftKey(item)) }
	}
	return func(item *R) uint64 { return op.keys.hash(op.rightKey(item)) }
}

// Values of a window begin with the side that they are of.
const (
	sideLeft byte = iota
	sideRight
)

func (op *coGroupOp[K, L, R, O]) build(t *task, out any) []any {
	c, to := t.counters(), out.(inlet[O])
	store := t.lists(shapeOf[K]() + " " + shapeOf[L]() + " " + shapeOf[R]())
	windows, fired := newAligned(op.w, t), Block[O]{}
	left, right := collecting[L]{codec: op.lefts}, collecting[R]{codec: op.rights}
	t.atEnd(func(watermark int64) error {
		return windows.fire(watermark, c, func(f *firing) error {
			rank := uint64(0)
			emit := func(r O) { fired.put(r, f.at, rank) }
			err := store.Each(f.units, func(hash uint64, kb []byte, values window.Values) error {
				if f.skips(kb) {
					return nil
				}
				rank = hash
				k, err := op.keys.decode(kb)
				left.items, right.items = left.items[:0], right.items[:0]
				for i := 0; i < values.Len() && err == nil; i++ {
					switch v := values.At(i); {
					case len(v) == 0:
						err = fmt.Errorf("a value without a side")
					case v[0] == sideLeft:
						err = left.add(v[1:])
					default:
						err = right.add(v[1:])
					}
				}
				if err != nil {
					return err
				}
				op.f(k, f.w, left.items, right.items, emit)
				return flushFull(&fired, c, to)
			})
			return errors.Join(err, flush(&fired, c, to))
		}, store.Drop)
	})
	return []any{
		appending(op.leftKey, &op.keys, sideOf(sideLeft, &op.lefts), windows, store, c),
		appending(op.rightKey, &op.keys, sideOf(sideRight, &op.rights), windows, store, c),
	}
}

// sideOf returns what makes values of one of two streams.
func sideOf[T any](side byte, items *codec.Codec[T]) func(dst []byte, item *T) []byte {
	return func(dst []byte, item *T) []byte { return items.Append(append(dst, side), item) }
}
