package job

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/operators"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/window"
)

// Options say how a job is run. The zero value is a good choice.
type Options struct {
	Workers int // goroutines; 0 for one on each core
	// Passes make the plan that is executed; nil for all of [Passes].
	Passes []plan.Pass
	Env    operators.Env
	// BatchDone, if set, hears of each batch: how many events it had.
	BatchDone func(events int)
}

// Metrics is the account of a run.
type Metrics struct {
	Events  int64
	Batches int64
	Late    int64 // events that were left out because they came too late
	Far     int64 // and because they, or their windows, were too far in the future
	// Seconds is processing time: making and reading events is ReadSeconds.
	Seconds     float64
	ReadSeconds float64
	Workers     int
	Vertices    map[plan.ID]*operators.Counters
	Stores      map[plan.ID]window.Stats
	Plan        *plan.Graph // that was executed
}

// EventsPerSec returns the throughput.
func (m *Metrics) EventsPerSec() float64 {
	if m.Seconds == 0 {
		return 0
	}
	return float64(m.Events) / m.Seconds
}

// Run executes a job until its sources end, or until the context does: then after the
// batch that is under way, with the error of the context.
func Run(ctx context.Context, g *plan.Graph, o Options) (m Metrics, err error) {
	passes := o.Passes
	if passes == nil {
		passes = Passes()
	}
	policy, err := plan.NewPolicy(passes...)
	if err != nil {
		return m, err
	}
	if g, err = policy.Apply(g, nil); err != nil {
		return m, err
	}
	if m.Workers = o.Workers; m.Workers == 0 {
		m.Workers = runtime.GOMAXPROCS(0)
	}
	e, err := operators.Open(g, o.Env, func(n int, do func(int) error) error { return share(m.Workers, n, do) })
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	m.Plan, m.Vertices = g, e.Counters()
	for more := true; more && err == nil; {
		began := clock.NowNanos()
		var items int
		if items, err = e.Read(); err != nil {
			break
		}
		read := clock.NowNanos()
		if more, err = e.Step(); err != nil {
			break
		}
		m.ReadSeconds += float64(read-began) / 1e9
		m.Seconds += float64(clock.NowNanos()-read) / 1e9
		m.Events += int64(items)
		m.Batches++
		if o.BatchDone != nil {
			o.BatchDone(items)
		}
		if more {
			err = ctx.Err()
		}
	}
	for _, c := range m.Vertices {
		m.Late += c.Late.Load()
		m.Far += c.Far.Load()
	}
	m.Stores = e.Stores()
	return m, err
}

// share runs do for 0 to n-1 on so many goroutines, of which the caller's is one. After an error
// what has not begun is left out.
func share(workers, n int, do func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Bool
	errs := make([]error, max(1, min(workers, n)))
	work := func(w int) {
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			if err := do(i); err != nil {
				errs[w] = err
				failed.Store(true)
			}
		}
	}
	var others sync.WaitGroup
	for w := 1; w < len(errs); w++ {
		others.Go(func() { work(w) })
	}
	work(0)
	others.Wait()
	return errors.Join(errs...)
}
