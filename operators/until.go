package operators

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"

	"github.com/heddle-stream/heddle/plan"
)

// Until keeps a state for each key up to an end that the items of the key say: a window of
// its own, such as the time that an auction is open. The function changes the state and
// returns when it ends, [Never] as long as that is not known; when the watermark is there, fire
// makes results of it, with the end as their time, and it is forgotten. States are in memory.
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
type untils[K comparable, S any] struct {
	states map[K]*stateUntil[K, S]
	ends   timersOf[K, S]
}

func (op *untilOp[K, T, S, R]) build(t *task, out any) []any {
	c, to, fired := t.counters(), out.(inlet[R]), Block[R]{}
	u := &untils[K, S]{states: map[K]*stateUntil[K, S]{}}
	t.atEnd(func(watermark int64) error {
		for _, s := range u.due(watermark, &op.keys) {
			c.Fires.Add(1)
			op.fire(s.key, &s.state, func(r R) { fired.put(r, s.end, s.hash) })
			if err := flushFull(&fired, c, to); err != nil {
				return err
			}
		}
		return flush(&fired, c, to)
	})
	return []any{inlet[T](taker[T](func(b *Block[T]) error {
		c.In.Add(int64(len(b.Items)))
		for i := range b.Items {
			k := op.key(&b.Items[i])
			s := u.states[k]
			if s == nil {
				s = &stateUntil[K, S]{key: k, hash: b.Hashes[i], end: Never}
				u.states[k] = s
			}
			if end := op.f(k, &s.state, &b.Items[i], b.Times[i]); end != s.end {
				s.end = end
				heap.Push(&u.ends, timerOf[K, S]{end, s})
			}
		}
		return nil
	}))}
}

// due takes the states out whose end is reached, in the order of ends, hashes and keys. Timers
// of ends that have changed are passed over.
func (u *untils[K, S]) due(watermark int64, keys *keyCodec[K]) (due []*stateUntil[K, S]) {
	for len(u.ends) > 0 && u.ends[0].at <= watermark && u.ends[0].at != Never {
		t := heap.Pop(&u.ends).(timerOf[K, S])
		if t.at == t.s.end && u.states[t.s.key] == t.s {
			delete(u.states, t.s.key)
			due = append(due, t.s)
		}
	}
	slices.SortFunc(due, func(a, b *stateUntil[K, S]) int {
		if d := cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.hash, b.hash)); d != 0 {
			return d
		}
		return bytes.Compare(keys.append(nil, &a.key), keys.append(nil, &b.key))
	})
	return due
}

type timerOf[K comparable, S any] struct {
	at int64
	s  *stateUntil[K, S]
}

type timersOf[K comparable, S any] []timerOf[K, S]

func (t timersOf[K, S]) Len() int           { return len(t) }
func (t timersOf[K, S]) Less(i, j int) bool { return t[i].at < t[j].at }
func (t timersOf[K, S]) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timersOf[K, S]) Push(x any)        { *t = append(*t, x.(timerOf[K, S])) }
func (t *timersOf[K, S]) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
