package operators

import (
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-stream/heddle/internal/image"
	"github.com/heddle-stream/heddle/plan"
)

// Transactor runs items as transactions over shared tables, in the order in which it gets
// them, and puts out a result for each. Package job makes one of an application.
type Transactor[T, R any] interface {
	// Run executes items and emits their results, in order.
	Run(items []T, emit func(R)) error
}

// Transact runs the items of streams as transactions. They are ordered by event time, those of
// one time by the order of the streams and as they come there, so that the outcome does not
// depend on where batches end: an item waits until the watermark has passed it. A result has the
// time of its item.
func Transact[T, R any](name string, by Transactor[T, R], first Stream[T], others ...Stream[T]) Stream[R] {
	j := first.job
	j.b.Vertex(plan.ID(name), plan.Transaction, &transactOp[T, R]{by: by, inputs: 1 + len(others)})
	for port, s := range append([]Stream[T]{first}, others...) {
		j.sameJob(name, s.job)
		j.b.Edge(s.id, plan.ID(name), port, plan.Shuffle)
	}
	return Stream[R]{j, plan.ID(name)}
}

type transactOp[T, R any] struct {
	emits[R]
	by     Transactor[T, R]
	inputs int
}

// KeptTransactor is a transactor of a job that is kept: it saves its state as items between two runs,
// and loads it before the first one; next returns io.EOF behind the last item.
type KeptTransactor interface {
	Save(add func(item []byte)) error
	Load(next func() ([]byte, error)) error
}

// Strategist is a transactor that can execute the next items under another strategy.
type Strategist interface {
	SetStrategy(name string) error
}

// follow executes the next items under the strategy that the plan says, if it says one.
func (op *transactOp[T, R]) follow(g *plan.Graph, id plan.ID) error {
	name := plan.Strategy.Of(g, id)
	if name == "" {
		return nil
	}
	by, ok := op.by.(Strategist)
	if !ok {
		return fmt.Errorf("%s: its transactions have no strategy to be set", id)
	}
	if err := by.SetStrategy(name); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return nil
}

// last makes the state of the transactions last.
func (op *transactOp[T, R]) last(t *task) {
	kept, ok := op.by.(KeptTransactor)
	if !ok {
		if t.stage.e.env.Keep {
			t.stage.e.fail(t.vertex, errors.New("its transactions cannot be kept: they have no Save and Load"))
		}
		return
	}
	t.lasts("state", func(w *image.Writer) error { return kept.Save(w.Add) }, func(r *image.Reader) error { return kept.Load(r.Next) })
}

// OneKey reports that the operator wants all items in one place: what runs in parallel is the
// transactions, not the streams of them.
func (op *transactOp[T, R]) OneKey() bool { return true }

func (op *transactOp[T, R]) byTime() bool { return true }

// timed is an item that waits.
type timed[T any] struct {
	at   int64
	port int
	item T
}

func (op *transactOp[T, R]) build(t *task, out any) []any {
	c, to := t.counters(), out.(inlet[R])
	var waiting []timed[T]
	var ready []T
	made := Block[R]{}
	lastTimed(t, "waiting", &waiting)
	op.last(t)
	t.atEnd(func(watermark int64) error {
		n := ripe(waiting, watermark)
		if n == 0 {
			return nil
		}
		ready = ready[:0]
		for _, w := range waiting[:n] {
			ready = append(ready, w.item)
		}
		results := 0
		err := op.by.Run(ready, func(r R) {
			if results++; results <= n {
				made.add(r, waiting[results-1].at)
			}
		})
		if err == nil && results != n {
			err = fmt.Errorf("%d results of %d items", results, n)
		}
		waiting = slices.Delete(waiting, 0, n)
		if err != nil {
			return err
		}
		return flush(&made, c, to)
	})
	ins := make([]any, op.inputs)
	for port := range ins {
		ins[port] = waits(&waiting, port, c)
	}
	return ins
}
