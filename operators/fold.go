package operators

import (
	"github.com/heddle-stream/heddle/internal/image"
	"github.com/heddle-stream/heddle/plan"
)

// Fold keeps a state for each key, for ever, and gives it to a function with each item of the
// key, in the order in which items come. States are in memory.
func Fold[K comparable, T, S, R any](k Keyed[K, T], name string, f func(key K, state *S, item *T, time int64, emit func(R))) Stream[R] {
	keys, err := newKeyCodec[K]()
	k.job.fail(name, err)
	return add[T, R](k.Stream, name, plan.Keyed, plan.Shuffle, &foldOp[K, T, S, R]{key: k.key, all: k.all, keys: keys, f: f})
}

type foldOp[K comparable, T, S, R any] struct {
	emits[R]
	key  func(*T) K
	all  bool // items have one key
	keys keyCodec[K]
	f    func(K, *S, *T, int64, func(R))
}

func (op *foldOp[K, T, S, R]) EqualTo(other any) bool {
	o, ok := other.(*foldOp[K, T, S, R])
	return ok && same(op.key, o.key) && same(op.f, o.f)
}

// OneKey reports that all items have the same key.
func (op *foldOp[K, T, S, R]) OneKey() bool { return op.all }

func (op *foldOp[K, T, S, R]) byTime() bool { return true }

func (op *foldOp[K, T, S, R]) hashOf(int) any {
	return func(item *T) uint64 { return op.keys.hash(op.key(item)) }
}

// folds are the states of a partition, in the order in which their keys came.
type folds[K comparable, S any] struct {
	index map[K]uint32
	all   [][]foldOf[K, S] // pieces of equal size, so that states stay where they are
}

type foldOf[K comparable, S any] struct {
	key   K
	state S
}

const foldBits = 6 // of the number of a state within its piece

// of returns the state of a key, which may be new.
func (x *folds[K, S]) of(k K) *S {
	i, ok := x.index[k]
	if !ok {
		i = uint32(len(x.index))
		x.index[k] = i
		if i>>foldBits == uint32(len(x.all)) {
			x.all = append(x.all, make([]foldOf[K, S], 1<<foldBits))
		}
		x.all[i>>foldBits][i&(1<<foldBits-1)].key = k
	}
	return &x.all[i>>foldBits][i&(1<<foldBits-1)].state
}

func (op *foldOp[K, T, S, R]) build(t *task, out any) []any {
	c, to, made := t.counters(), out.(inlet[R]), Block[R]{}
	states, time, rank := &folds[K, S]{index: map[K]uint32{}}, int64(0), uint64(0)
	states.last(t, &op.keys)
	emit := func(r R) { made.put(r, time, rank) }
	return []any{inlet[T](taker[T](func(b *Block[T]) error {
		c.In.Add(int64(len(b.Items)))
		for i := range b.Items {
			k := op.key(&b.Items[i])
			s := states.of(k)
			time, rank = b.Times[i], b.Hashes[i]
			op.f(k, s, &b.Items[i], time, emit)
			if err := flushFull(&made, c, to); err != nil {
				return err
			}
		}
		return flush(&made, c, to)
	}))}
}

// last makes the states last.
func (x *folds[K, S]) last(t *task, keys *keyCodec[K]) {
	c := codecOf[S](t.stage.e, t.vertex, "its state")
	t.lasts("states "+shapeOf[K]()+" "+shapeOf[S](), func(w *image.Writer) error {
		for i := range uint32(len(x.index)) {
			s := &x.all[i>>foldBits][i&(1<<foldBits-1)]
			keys.put(w, &s.key)
			putValue(w, &c, &s.state)
			w.Item()
		}
		return nil
	}, func(r *image.Reader) error {
		for r.Item() {
			getValue(r, &c, x.of(keys.get(r)))
		}
		return nil
	})
}
