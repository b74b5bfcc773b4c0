package operators

import (
	"slices"

	"github.com/heddle-stream/heddle/internal/image"
	"github.com/heddle-stream/heddle/plan"
)

// Enrich gives each item to a function with a table that a side stream changes: all partitions get the
// whole side stream, and each has a table of its own. Items and changes come in the order of their
// event times, at one time changes first: both wait until the watermark has passed them. What the
// function emits has the time of the item. The function may not change the table.
func Enrich[K comparable, T, C, S, R any](k Keyed[K, T], side Stream[C], name string, change func(table *S, c *C, at int64), f func(key K, table *S, item *T, at int64, emit func(R))) Stream[R] {
	j := k.job
	j.sameJob(name, side.job)
	keys, err := newKeyCodec[K]()
	j.fail(name, err)
	j.b.Vertex(plan.ID(name), plan.Join, &enrichOp[K, T, C, S, R]{keys: keys, key: k.key, all: k.all, change: change, f: f})
	j.b.Edge(k.id, plan.ID(name), 0, plan.Shuffle)
	j.b.Edge(side.id, plan.ID(name), 1, plan.Broadcast)
	return Stream[R]{j, plan.ID(name)}
}

type enrichOp[K comparable, T, C, S, R any] struct {
	emits[R]
	keys   keyCodec[K]
	key    func(*T) K
	all    bool
	change func(*S, *C, int64)
	f      func(K, *S, *T, int64, func(R))
}

// OneKey reports that all items have the same key.
func (op *enrichOp[K, T, C, S, R]) OneKey() bool { return op.all }

func (op *enrichOp[K, T, C, S, R]) byTime() bool { return true }

func (op *enrichOp[K, T, C, S, R]) hashOf(port int) any {
	if port == 1 {
		return nil
	}
	return func(item *T) uint64 { return op.keys.hash(op.key(item)) }
}

func (op *enrichOp[K, T, C, S, R]) build(t *task, out any) []any {
	c, to, made := t.counters(), out.(inlet[R]), Block[R]{}
	var items []timed[T]
	var changes []timed[C]
	table, now, rank := new(S), int64(0), uint64(0)
	lastTimed(t, "items", &items)
	lastTimed(t, "changes", &changes)
	lastTable(t, table)
	emit := func(r R) { made.put(r, now, rank) }
	t.atEnd(func(watermark int64) error {
		n, left := ripe(items, watermark), changes[:ripe(changes, watermark)]
		done := len(left)
		for i := range items[:n] {
			x := &items[i]
			for len(left) > 0 && left[0].at <= x.at {
				op.change(table, &left[0].item, left[0].at)
				left = left[1:]
			}
			k := op.key(&x.item)
			now, rank = x.at, op.keys.hash(k)
			op.f(k, table, &x.item, now, emit)
			if err := flushFull(&made, c, to); err != nil {
				return err
			}
		}
		for i := range left {
			op.change(table, &left[i].item, left[i].at)
		}
		items, changes = slices.Delete(items, 0, n), slices.Delete(changes, 0, done)
		return flush(&made, c, to)
	})
	return []any{waits(&items, 0, c), waits(&changes, 1, c)}
}

// lastTable makes a value of a partition last.
func lastTable[S any](t *task, table *S) {
	c := codecOf[S](t.stage.e, t.vertex, "its table")
	t.lasts("table "+shapeOf[S](), func(w *image.Writer) error {
		putValue(w, &c, table)
		w.Item()
		return nil
	}, func(r *image.Reader) error {
		if r.Want() {
			getValue(r, &c, table)
		}
		return nil
	})
}
