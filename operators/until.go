package operators

import (
	"bytes"
	"cmp"
	"container/heap"
	"maps"
	"slices"

	"github.com/heddle-stream/heddle/internal/image"
	"github.com/heddle-stream/heddle/plan"
)

// Until keeps a state for each key up to an end that the items of the key say: a window of
// its own, such as the time that an auction is open. Items come to their states in the order of their
// times: an item waits until the watermark has passed it. The function changes the state and
// returns when it ends, [Never] as long as that is not known; an end that has passed already is
// now. At its end fire makes results of the state, with the end as their time, and it is forgotten: an
// item of that time or a later one begins another. States are in memory.
func Until[K comparable, T, S, R any](k Keyed[K, T], name string, f func(key K, state *S, item *T, time int64) (end int64), fire func(key K, state *S, emit func(R))) Stream[R] {
	keys, err := newKeyCodec[K]()
	k.job.fail(name, err)
	return add[T, R](k.Stream, name, plan.Window, plan.Shuffle, &untilOp[K, T, S, R]{key: k.key, keys: keys, f: f, fire: fire})
}

// Never is an end that is not known.
const Never = int64(1<<63 - 1)

type untilOp[K comparable, T, S, R any] struct {
	emits[R]
	key  func(*T) K
	keys keyCodec[K]
	f    func(K, *S, *T, int64) int64
	fire func(K, *S, func(R))
}

func (op *untilOp[K, T, S, R]) byTime() bool { return true }

func (op *untilOp[K, T, S, R]) hashOf(int) any {
	return func(item *T) uint64 { return op.keys.hash(op.key(item)) }
}

// stateUntil is the state of one key.
type stateUntil[K comparable, S any] struct {
	key   K
	hash  uint64
	end   int64
	state S
}

// untils are the states of a partition.
type untils[K comparable, T, S any] struct {
	waiting []timed[T]
	states  map[K]*stateUntil[K, S]
	ends    timersOf[K, S]
}

func (op *untilOp[K, T, S, R]) build(t *task, out any) []any {
	c, to, fired := t.counters(), out.(inlet[R]), Block[R]{}
	u := &untils[K, T, S]{states: map[K]*stateUntil[K, S]{}}
	u.last(t, &op.keys)
	fire := func(now int64) error {
		for _, s := range u.due(now, &op.keys) {
			c.Fires.Add(1)
			op.fire(s.key, &s.state, func(r R) { fired.put(r, s.end, s.hash) })
			if err := flushFull(&fired, c, to); err != nil {
				return err
			}
		}
		return nil
	}
	t.atEnd(func(watermark int64) error {
		err := eachRipe(&u.waiting, watermark, func(x *timed[T]) error {
			if err := fire(x.at); err != nil {
				return err
			}
			s := u.of(op.key(&x.item), &op.keys)
			end := max(op.f(s.key, &s.state, &x.item, x.at), x.at)
			if end != Never {
				end = min(end, timeMax) // windows behind it have to hold it
			}
			u.ends.set(s, end)
			return nil
		})
		if err == nil {
			err = fire(watermark)
		}
		if err != nil {
			return err
		}
		return flush(&fired, c, to)
	})
	return []any{waits(&u.waiting, 0, c)}
}

// of returns the state of a key, which may be new.
func (u *untils[K, T, S]) of(k K, keys *keyCodec[K]) *stateUntil[K, S] {
	s := u.states[k]
	if s == nil {
		s = &stateUntil[K, S]{key: k, hash: keys.hash(k), end: Never}
		u.states[k] = s
	}
	return s
}

// last makes the states last, in the order of their ends, hashes and keys.
func (u *untils[K, T, S]) last(t *task, keys *keyCodec[K]) {
	lastTimed(t, "waiting", &u.waiting)
	c := codecOf[S](t.stage.e, t.vertex, "its state")
	t.lasts("states "+shapeOf[K]()+" "+shapeOf[S](), func(w *image.Writer) error {
		all := slices.Collect(maps.Values(u.states))
		u.sort(all, keys)
		for _, s := range all {
			w.Int(s.end)
			keys.put(w, &s.key)
			putValue(w, &c, &s.state)
			w.Item()
		}
		return nil
	}, func(r *image.Reader) error {
		for r.Item() {
			end := r.Int()
			s := u.of(keys.get(r), keys)
			u.ends.set(s, end)
			getValue(r, &c, &s.state)
		}
		return nil
	})
}

// due takes the states out whose end is reached, in the order of ends, hashes and keys. Timers
// of ends that have changed are passed over.
func (u *untils[K, T, S]) due(now int64, keys *keyCodec[K]) (due []*stateUntil[K, S]) {
	for len(u.ends) > 0 && u.ends[0].at <= now {
		t := heap.Pop(&u.ends).(timerOf[K, S])
		if t.at == t.s.end && u.states[t.s.key] == t.s {
			delete(u.states, t.s.key)
			due = append(due, t.s)
		}
	}
	if len(due) > 1 {
		u.sort(due, keys)
	}
	return due
}

func (u *untils[K, T, S]) sort(all []*stateUntil[K, S], keys *keyCodec[K]) {
	slices.SortFunc(all, func(a, b *stateUntil[K, S]) int {
		if d := cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.hash, b.hash)); d != 0 {
			return d
		}
		return bytes.Compare(keys.append(nil, &a.key), keys.append(nil, &b.key))
	})
}

type timerOf[K comparable, S any] struct {
	at int64
	s  *stateUntil[K, S]
}

type timersOf[K comparable, S any] []timerOf[K, S]

// set lets a state end.
func (t *timersOf[K, S]) set(s *stateUntil[K, S], end int64) {
	if end == s.end {
		return
	}
	if s.end = end; end != Never {
		heap.Push(t, timerOf[K, S]{end, s})
	}
}

func (t timersOf[K, S]) Len() int           { return len(t) }
func (t timersOf[K, S]) Less(i, j int) bool { return t[i].at < t[j].at }
func (t timersOf[K, S]) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timersOf[K, S]) Push(x any)        { *t = append(*t, x.(timerOf[K, S])) }
func (t *timersOf[K, S]) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
