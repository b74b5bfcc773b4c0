package operators

import (
	"errors"

	"github.com/heddle-stream/heddle/internal/codec"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/window"
)

// CoGroup collects the items of two streams by key and window, and gives them to a function
// when the window fires: a join of windows. The slices are valid during the call. Sessions are of the items of
// both, which come to them in the order of their times.
func CoGroup[K comparable, L, R, O any](left Keyed[K, L], right Keyed[K, R], name string, w Windows, f func(key K, w Span, left []L, right []R, emit func(O))) Stream[O] {
	j := left.job
	j.sameJob(name, right.job)
	lefts, err := codec.Derive[L]()
	j.fail(name, err)
	rights, err := codec.Derive[R]()
	j.fail(name, err)
	if w.kind == counting || w.gapBy != nil {
		j.fail(name, errors.New("of two streams there are no windows by how many items there are, and no sessions whose gap each item says"))
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
func (op *coGroupOp[K, L, R, O]) Access() plan.AccessPattern { return op.w.access(false) }

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
	if !op.w.aligned() {
		return op.buildOwn(t, c, to)
	}
	store := t.lists(shapeOf[K]() + " " + shapeOf[L]() + " " + shapeOf[R]())
	windows, fired, both := newAligned(op.w, t), Block[O]{}, op.collecting()
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
				both.clear()
				for i := 0; i < values.Len() && err == nil; i++ {
					err = both.add(values.At(i))
				}
				if err != nil {
					return err
				}
				op.f(k, f.w, both.left.items, both.right.items, emit)
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

// bothSides is the items of a window.
type bothSides[L, R any] struct {
	left  collecting[L]
	right collecting[R]
}

func (op *coGroupOp[K, L, R, O]) collecting() *bothSides[L, R] {
	return &bothSides[L, R]{collecting[L]{codec: op.lefts}, collecting[R]{codec: op.rights}}
}

func (b *bothSides[L, R]) clear() { b.left.items, b.right.items = b.left.items[:0], b.right.items[:0] }

func (b *bothSides[L, R]) add(value []byte) error {
	switch {
	case len(value) == 0:
		return errors.New("a value without a side")
	case value[0] == sideLeft:
		return b.left.add(value[1:])
	}
	return b.right.add(value[1:])
}

// buildOwn collects windows of which each key has its own. Items come to them in the order of their times: as
// they come would be, of two streams, as batches have it.
func (op *coGroupOp[K, L, R, O]) buildOwn(t *task, c *Counters, to inlet[O]) []any {
	store := t.unaligned(0, nil, shapeOf[L]()+" "+shapeOf[R]())
	sessions, fired, both, waiting := newSessions(&op.w, store, t, &op.keys), Block[O]{}, op.collecting(), &two[L, R]{}
	put := func(k K, at int64, value []byte) error {
		s, err := sessions.at(k, op.keys.hash(k), at, op.w.gap)
		if err != nil {
			return err
		}
		return store.Append(s.id, s.span.End, value)
	}
	lefts, rights, value := sideOf(sideLeft, &op.lefts), sideOf(sideRight, &op.rights), []byte(nil)
	t.atEnd(func(watermark int64) error {
		err := waiting.each(watermark, func(l *timed[L]) error {
			value = lefts(value[:0], &l.item)
			return put(op.leftKey(&l.item), l.at, value)
		}, func(r *timed[R]) error {
			value = rights(value[:0], &r.item)
			return put(op.rightKey(&r.item), r.at, value)
		})
		if err != nil {
			return err
		}
		return sessions.fire(watermark, &op.keys, c, func(s *sessionOf[K], contents []byte) error {
			both.clear()
			for v := range window.Contents(contents) {
				if err := both.add(v); err != nil {
					return err
				}
			}
			op.f(s.key, s.span, both.left.items, both.right.items, func(o O) { fired.put(o, lastInstant(s.span.End), s.hash) })
			return flushFull(&fired, c, to)
		}, func() error { return flush(&fired, c, to) })
	})
	return waiting.inlets(t, c)
}
