package job

import (
	"context"
	"errors"
	"maps"
	"path"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/operators"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/storage/window"
)

// Options say how a job is run. The zero value is a good choice.
type Options struct {
	Workers int // goroutines; 0 for one on each core
	// Passes make the plan that is executed; nil for all of [Passes].
	Passes []plan.Pass
	// Runtime are asked between batches; nil for [RuntimePasses].
	Runtime []plan.Adaptor
	Env     operators.Env
	// State is a directory in which the job is kept: who is killed goes on there, with the same
	// results. "" keeps nothing. What operators remember has to be of plain types then; sinks that
	// call functions ([operators.Each]) may see again what came since the last checkpoint.
	State string
	// Identity is what of a run has to be the same to go on with its state, besides the plan: its input
	// and parameters.
	Identity map[string]string
	// Every is how many batches there are between two checkpoints; 0 to choose by what they cost. One more
	// is at the end, also of a run that is interrupted.
	Every int64
	// BatchDone, if set, hears of each batch: how many events it had.
	BatchDone func(events int)
}

// Metrics is the account of a run.
type Metrics struct {
	Events  int64 // since the job began; Resumed of them in processes before
	Resumed int64
	Batches int64
	Late    int64 // events that were left out because they came too late
	Far     int64 // and because they were too far in the future
	// Seconds is processing time: making and reading events is ReadSeconds.
	Seconds     float64
	ReadSeconds float64
	// KeepSeconds is what checkpoints took; it is not in Seconds.
	KeepSeconds float64
	Checkpoints int64
	Workers     int
	Vertices    map[plan.ID]*operators.Counters
	Stores      map[plan.ID]window.Stats
	WindowLimit int64       // bytes of memory that contents of windows may take, all together
	Plan        *plan.Graph // that was executed
}

// EventsPerSec returns the throughput.
func (m *Metrics) EventsPerSec() float64 {
	if m.Seconds == 0 {
		return 0
	}
	return float64(m.Events-m.Resumed) / m.Seconds
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
	var kept *state
	if o.State != "" {
		if kept, err = o.keep(g); err != nil {
			return m, err
		}
		defer func() { err = errors.Join(err, kept.close()) }()
	}
	e, err := operators.Open(g, o.Env, func(n int, do func(int) error) error { return share(m.Workers, n, do) })
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	m.Plan, m.Vertices = g, e.Counters()
	err = m.steps(ctx, e, kept, &o)
	for _, c := range m.Vertices {
		m.Late += c.Late.Load()
		m.Far += c.Far.Load()
	}
	m.Stores, m.WindowLimit = e.Stores(), e.WindowLimit()
	return m, err
}

// keep opens the state directory and makes the job one that is kept.
func (o *Options) keep(g *plan.Graph) (*state, error) {
	if o.Env.FS == nil {
		o.Env.FS = vfs.Disk{}
	}
	id := checkpoint.Identity{"job": g.Name()}
	maps.Copy(id, o.Identity)
	for what, how := range g.Manifest() {
		id["plan: "+what] = how
	}
	s, err := openState(o.Env.FS, o.State, id)
	if err != nil {
		return nil, err
	}
	s.every, o.Env.Keep, o.Env.Dir = o.Every, true, path.Join(o.State, windowsName)
	return s, nil
}

// steps executes a job batch by batch, and keeps what is to be kept.
func (m *Metrics) steps(ctx context.Context, e *operators.Exec, kept *state, o *Options) error {
	if kept != nil {
		if err := kept.load(e); err != nil {
			return err
		}
		m.Events, m.Resumed, m.Batches = kept.events, kept.events, kept.batches
	}
	if o.Runtime == nil {
		o.Runtime = RuntimePasses()
	}
	began := *m
	for more := !e.Done(); more; {
		var err error
		if more, err = m.step(ctx, e, o); err != nil {
			return err
		}
		if more && m.Batches-began.Batches >= roundBatches {
			if err := m.adapt(e, o, &began); err != nil {
				return err
			}
		}
		if kept != nil && more && kept.due(m.Events, m.Batches) {
			if err := m.save(kept, e); err != nil {
				return err
			}
		}
		if more && ctx.Err() != nil {
			break
		}
	}
	if kept != nil && m.Batches > kept.batches {
		if err := m.save(kept, e); err != nil {
			return err
		}
	}
	if !e.Done() {
		return ctx.Err()
	}
	return nil
}

// adapt asks the passes at run time, by what was done since the last time.
func (m *Metrics) adapt(e *operators.Exec, o *Options, began *Metrics) error {
	measured := plan.Measured{Batches: m.Batches - began.Batches, Events: m.Events - began.Events, Nanos: int64((m.Seconds - began.Seconds) * 1e9)}
	for _, p := range o.Runtime {
		next, err := plan.Adapt(e.Plan(), p, measured)
		if err != nil {
			return err
		}
		if err := e.Adapt(next); err != nil {
			return err
		}
	}
	*began = *m
	m.Plan = e.Plan()
	return nil
}

// step executes one batch.
func (m *Metrics) step(ctx context.Context, e *operators.Exec, o *Options) (more bool, err error) {
	began := clock.NowNanos()
	items, err := e.Read()
	if err != nil {
		return false, err
	}
	read := clock.NowNanos()
	if more, err = e.Step(); err != nil {
		return false, err
	}
	m.ReadSeconds += float64(read-began) / 1e9
	m.Seconds += float64(clock.NowNanos()-read) / 1e9
	m.Events += int64(items)
	m.Batches++
	if o.BatchDone != nil {
		o.BatchDone(items)
	}
	if items == 0 && more { // all sources are idle
		const idle = time.Millisecond
		select {
		case <-ctx.Done():
		case <-clock.System{}.After(idle):
		}
	}
	return more, nil
}

// save writes a checkpoint.
func (m *Metrics) save(kept *state, e *operators.Exec) error {
	if err := kept.save(e, m.Events, m.Batches); err != nil {
		return err
	}
	m.KeepSeconds += float64(kept.nanos) / 1e9
	m.Checkpoints++
	return nil
}

// share runs do for 0 to n-1 on so many goroutines, of which the caller's is one. After an error
// what has not begun is left out; of several errors the one for the least number is returned.
func share(workers, n int, do func(i int) error) error {
	var next atomic.Int64
	var mu sync.Mutex
	var failed atomic.Bool
	first, reason := n, error(nil)
	fail := func(i int, err error) {
		mu.Lock()
		defer mu.Unlock()
		if failed.Store(true); i < first {
			first, reason = i, err
		}
	}
	work := func() {
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			returned := false
			func() {
				defer func() {
					if !returned { // runtime.Goexit, as tests call it that fail: nobody else would notice
						fail(i, errors.New("a function of the user ended its goroutine"))
					}
				}()
				if err := do(i); err != nil {
					fail(i, err)
				}
				returned = true
			}()
		}
	}
	var others sync.WaitGroup
	for range min(workers, n) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return reason
}
