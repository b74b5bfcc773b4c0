package operators

import (
	"cmp"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/internal/image"
	"github.com/heddle-stream/heddle/plan"
)

// Meet keeps a state for each key, to which the items of two streams come in the order of their
// event times, at one time those of the right stream first and then as they come: an item waits until the
// watermark has passed it. What the functions emit has the time of the item. A state to
// which nothing came for keep is forgotten, never if keep is 0. States are in memory. Joins
// without windows are made of it.
func Meet[K comparable, L, R, S, O any](left Keyed[K, L], right Keyed[K, R], name string, keep time.Duration,
	onLeft func(key K, s *S, l *L, at int64, emit func(O)), onRight func(key K, s *S, r *R, at int64, emit func(O)),
) Stream[O] {
	j := left.job
	j.sameJob(name, right.job)
	keys, err := newKeyCodec[K]()
	j.fail(name, err)
	op := &meetOp[K, L, R, S, O]{keys: keys, leftKey: left.key, rightKey: right.key, keep: int64(keep), onLeft: onLeft, onRight: onRight}
	j.b.Vertex(plan.ID(name), plan.Join, op)
	j.b.Edge(left.id, plan.ID(name), 0, plan.Shuffle)
	j.b.Edge(right.id, plan.ID(name), 1, plan.Shuffle)
	return Stream[O]{j, plan.ID(name)}
}

type meetOp[K comparable, L, R, S, O any] struct {
	emits[O]
	keys     keyCodec[K]
	leftKey  func(*L) K
	rightKey func(*R) K
	keep     int64
	onLeft   func(K, *S, *L, int64, func(O))
	onRight  func(K, *S, *R, int64, func(O))
}

func (op *meetOp[K, L, R, S, O]) byTime() bool { return true }

func (op *meetOp[K, L, R, S, O]) hashOf(port int) any {
	if port == 0 {
		return func(item *L) uint64 { return op.keys.hash(op.leftKey(item)) }
	}
	return func(item *R) uint64 { return op.keys.hash(op.rightKey(item)) }
}

// met is the state of a key, and when something came to it last.
type met[S any] struct {
	state S
	last  int64
}

// meeting is what a partition has.
type meeting[K comparable, L, R, S any] struct {
	two[L, R]
	states map[K]*met[S]
	swept  int64
}

func (op *meetOp[K, L, R, S, O]) build(t *task, out any) []any {
	c, to, made := t.counters(), out.(inlet[O]), Block[O]{}
	m := &meeting[K, L, R, S]{states: map[K]*met[S]{}}
	m.last(t, &op.keys)
	now, rank := int64(0), uint64(0)
	emit := func(o O) { made.put(o, now, rank) }
	t.atEnd(func(watermark int64) error {
		err := m.each(watermark, func(l *timed[L]) error {
			k := op.leftKey(&l.item)
			now, rank = l.at, op.keys.hash(k)
			op.onLeft(k, m.of(k, now, op.keep), &l.item, now, emit)
			return flushFull(&made, c, to)
		}, func(r *timed[R]) error {
			k := op.rightKey(&r.item)
			now, rank = r.at, op.keys.hash(k)
			op.onRight(k, m.of(k, now, op.keep), &r.item, now, emit)
			return flushFull(&made, c, to)
		})
		if err != nil {
			return err
		}
		m.sweep(watermark, op.keep)
		return flush(&made, c, to)
	})
	return m.inlets(t, c)
}

// two is the items of two streams that wait until the watermark has passed them.
type two[L, R any] struct {
	lefts  []timed[L]
	rights []timed[R]
}

// inlets are those of the items, which last.
func (m *two[L, R]) inlets(t *task, c *Counters) []any {
	lastTimed(t, "left", &m.lefts)
	lastTimed(t, "right", &m.rights)
	return []any{waits(&m.lefts, 0, c), waits(&m.rights, 0, c)}
}

// each takes the items that the watermark has passed in the order of their times, at one time those of the right
// stream first.
func (m *two[L, R]) each(watermark int64, onLeft func(*timed[L]) error, onRight func(*timed[R]) error) (err error) {
	nl, nr := ripe(m.lefts, watermark), ripe(m.rights, watermark)
	lefts, rights := m.lefts[:nl], m.rights[:nr]
	for err == nil && len(lefts)+len(rights) > 0 {
		if len(lefts) == 0 || len(rights) > 0 && rights[0].at <= lefts[0].at {
			err = onRight(&rights[0])
			rights = rights[1:]
		} else {
			err = onLeft(&lefts[0])
			lefts = lefts[1:]
		}
	}
	m.lefts, m.rights = slices.Delete(m.lefts, 0, nl), slices.Delete(m.rights, 0, nr)
	return err
}

// last makes the states last.
func (m *meeting[K, L, R, S]) last(t *task, keys *keyCodec[K]) {
	c := codecOf[S](t.stage.e, t.vertex, "its state")
	t.lasts("states "+shapeOf[K]()+" "+shapeOf[S](), func(w *image.Writer) error {
		w.Int(m.swept)
		w.Item()
		for key, k := range byBytes(m.states, keys) {
			s := m.states[k]
			w.Int(s.last)
			w.Bytes([]byte(key))
			putValue(w, &c, &s.state)
			w.Item()
		}
		return nil
	}, func(r *image.Reader) error {
		r.Want()
		m.swept = r.Int()
		for r.Item() {
			s := &met[S]{last: r.Int()}
			m.states[keys.get(r)] = s
			getValue(r, &c, &s.state)
		}
		return nil
	})
}

// byBytes yields the keys of a map in the order of their bytes.
func byBytes[K comparable, V any](of map[K]V, keys *keyCodec[K]) func(yield func(bytes string, k K) bool) {
	return func(yield func(string, K) bool) {
		type pair struct {
			bytes string
			k     K
		}
		all := make([]pair, 0, len(of))
		for k := range of {
			all = append(all, pair{string(keys.append(nil, &k)), k})
		}
		slices.SortFunc(all, func(a, b pair) int { return cmp.Compare(a.bytes, b.bytes) })
		for _, p := range all {
			if !yield(p.bytes, p.k) {
				return
			}
		}
	}
}

// ripe sorts items that wait by time, and returns how many the watermark has passed.
func ripe[T any](waiting []timed[T], watermark int64) int {
	slices.SortStableFunc(waiting, func(a, b timed[T]) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.port, b.port))
	})
	n, _ := slices.BinarySearchFunc(waiting, watermark, func(w timed[T], mark int64) int {
		if w.at < mark || mark == Never {
			return -1
		}
		return 1
	})
	return n
}

// eachRipe takes the items that the watermark has passed from those that wait, in the order of their times.
func eachRipe[T any](waiting *[]timed[T], watermark int64, do func(x *timed[T]) error) error {
	n := ripe(*waiting, watermark)
	for i := range (*waiting)[:n] {
		if err := do(&(*waiting)[i]); err != nil {
			return err
		}
	}
	*waiting = slices.Delete(*waiting, 0, n)
	return nil
}

// waits is an inlet whose items wait.
func waits[T any](waiting *[]timed[T], port int, c *Counters) any {
	return inlet[T](taker[T](func(b *Block[T]) error {
		c.In.Add(int64(len(b.Items)))
		for i := range b.Items {
			*waiting = append(*waiting, timed[T]{b.Times[i], port, b.Items[i]})
		}
		return nil
	}))
}

// of returns the state of a key to which something comes. One that is too old is begun
// anew, whether it was swept already or not.
func (m *meeting[K, L, R, S]) of(k K, at, keep int64) *S {
	s := m.states[k]
	if s == nil || keep > 0 && at-s.last > keep {
		s = &met[S]{}
		m.states[k] = s
	}
	s.last = at
	return &s.state
}

// sweep forgets states, when so much time has passed that it pays to look at all.
func (m *meeting[K, L, R, S]) sweep(watermark, keep int64) {
	if keep == 0 || watermark == Never || m.swept != 0 && watermark-m.swept < keep {
		return
	}
	if m.swept = watermark; m.swept == 0 {
		m.swept = 1 // 0 is that nothing was swept
	}
	for k, s := range m.states {
		if watermark-s.last > keep {
			delete(m.states, k)
		}
	}
}
