package simulate

import (
	"context"
	"fmt"
	"slices"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/txn"
)

// Options say what to predict.
type Options struct {
	Trace      string // its name, for people
	Events     int    // of the trace at most, in whole batches; 0: all
	Batches    int    // to simulate at most, spread over the trace
	Strategies []string
	Workers    []int
	// Progress, if set, is told of steps.
	Progress func(done, total int, what string)
}

// Point is the prediction for a strategy on a number of workers.
type Point struct {
	Trace        string  `json:"trace"`
	Strategy     string  `json:"strategy"`
	Workers      int     `json:"workers"`
	Speedup      float64 `json:"speedup"`
	EventsPerSec float64 `json:"events_per_sec"`
	// Bounds of the execution of operations, see the package comment.
	CriticalPathBound float64 `json:"critical_path_bound"`
	WorkBound         float64 `json:"work_bound"`
	Redone            int     `json:"redone"`  // transactions reset by aborts
	Batches           int     `json:"batches"` // simulated
	Events            int     `json:"events"`  // in these

	nanos float64
}

// Prediction is what is foretold about a trace.
type Prediction struct {
	Options Options
	Costs   *Costs
	Points  []Point // by strategy, then workers
	Bounds  Bounds  // of the simulated batches
	Serial  float64 // ns that the simulated batches take under serial
	Events  int     // in the simulated batches
	Batches int     // simulated
}

const serialName = "serial"

// Predict measures the trace and simulates a part of its batches.
func Predict(ctx context.Context, input Input, o Options) (*Prediction, error) {
	if o.Progress == nil {
		o.Progress = func(int, int, string) {}
	}
	costs, err := Measure(ctx, input, o.Events, o.Progress)
	if err != nil {
		return nil, err
	}
	p := &Prediction{Options: o, Costs: costs}
	var strategies []schedule.Strategy
	for _, name := range o.Strategies {
		s, err := schedule.Parse(name)
		if err != nil {
			return nil, err
		}
		if s.Kind() == schedule.Auto {
			return nil, fmt.Errorf("strategy %s chooses among others: name those", s)
		}
		strategies = append(strategies, s)
		for _, w := range o.Workers {
			p.Points = append(p.Points, Point{Trace: o.Trace, Strategy: name, Workers: w, WorkBound: float64(w)})
		}
	}
	chosen := spread(costs.Batches, o.Batches)
	err = each(ctx, input, o.Events, func(l *pipeline, batch int, feed *txn.Feed) error {
		var t steps
		if bad := l.build(feed, &t); bad != nil {
			return panicked(bad)
		}
		l.execute(first("ns-op"), schedule.GrainFor(costs.Op, l.x.Ops, l.x.Events, 1), l.exec, &t)
		if slices.Contains(chosen, batch) {
			o.Progress(p.Batches, len(chosen), "simulating")
			if err := p.batch(ctx, l, batch, strategies); err != nil {
				return err
			}
		}
		if bad := l.finish(&t); bad != nil {
			return panicked(bad)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.conclude()
	return p, nil
}

// spread chooses at most n of the batches, the first one only if need be.
func spread(batches, n int) []int {
	if n == 0 || batches <= n {
		n = batches
	}
	out := make([]int, n)
	for i := range out {
		out[i] = (2*i + 1) * batches / (2 * n)
	}
	return out
}

// batch adds the simulations of an executed batch.
func (p *Prediction) batch(ctx context.Context, l *pipeline, number int, strategies []schedule.Strategy) error {
	w := p.Costs.work(l, rng.New(uint64(number), 0))
	b := Path(w)
	p.Bounds.Total += b.Total
	p.Bounds.Longest += b.Longest
	p.Serial += p.Costs.Serial[number]
	p.Events += l.x.Events
	p.Batches++
	aborts := slices.ContainsFunc(l.x.Fail, func(f uint64) bool { return f != committed })
	known := map[string]outlook{} // while nothing aborts, eager and lazy are the same
	for i := range p.Points {
		pt := &p.Points[i]
		s := strategies[i/len(p.Options.Workers)]
		if s.Kind() == schedule.Serial {
			pt.nanos += p.Costs.Serial[number]
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		key := fmt.Sprint(s, pt.Workers)
		if !aborts {
			key = fmt.Sprint(classOf(s), pt.Workers)
		}
		x, ok := known[key]
		if !ok {
			var err error
			if x, err = p.Costs.foresee(w, l, s, pt.Workers); err != nil {
				return err
			}
			known[key] = x
		}
		pt.Redone += x.redone
		pt.nanos += x.nanos
	}
	return nil
}

// work returns the executed batch with the measured costs. Operations of a kind
// differ as they did when measured, by draw: if all took the same time, workers
// would go in step and meet at each key, or never.
func (c *Costs) work(l *pipeline, draw *rng.RNG) Work {
	w := Work{Graph: &l.graph, Fail: l.x.Fail, Cost: make([]float64, len(l.x.Acc))}
	l.graph.Operations(func(id uint32) bool {
		k := l.x.Acc[id].Index()
		if k < len(c.Kinds) {
			w.Cost[id] = c.Kinds[k]
		}
		if draw != nil && k < len(c.Spread) {
			w.Cost[id] *= c.Spread[k][draw.IntN(spreadOf)]
		}
		return true
	})
	return w
}

const (
	spinNs = 150 // between two looks at a held unit, where there are too few to measure
	redoNs = 100 // to reset a transaction
	// An access comes to another worker in several steps, half a cache line each
	// time, and most of these transfers overlap with others. What is left is the one
	// figure here that is fitted: to gs on two workers.
	transferShare = 1.0 / 4
)

// machine returns what a strategy costs. A unit that has to wait is looked at
// once more, and by then what it looks at has been with another worker.
func (c *Costs) machine(s schedule.Strategy, workers int) Machine {
	call := c.Call[classOf(s)]
	m := Machine{Call: call, Park: call, Wake: c.Wake, Spin: c.Spin, Redo: redoNs}
	if workers > 1 {
		m.Park += c.Wake
	}
	return m
}

// outlook is what a batch is expected to take.
type outlook struct {
	nanos  float64
	redone int
}

// idleShare is from which part of their time without work the engine lets workers
// plan the next batch, see engine/graph.go.
const idleShare = 1.0 / 20

// foresee simulates the batch. When workers lack work, the engine lets them plan
// during the next execution: if that takes up what they lacked, there is no
// planning in the one after it, and so on in turn.
func (c *Costs) foresee(w Work, l *pipeline, s schedule.Strategy, workers int) (outlook, error) {
	grain := schedule.GrainFor(c.Op, l.x.Ops, l.x.Events, workers)
	m := c.machine(s, workers)
	x, err := Execute(w, s, workers, grain, m)
	out := outlook{c.whole(s, workers, l, x), x.Redone}
	idle := func(x Execution) bool {
		all := x.Nanos * float64(workers)
		return all-x.Busy-float64(x.Planned)*m.Plan > all*idleShare
	}
	if err != nil || !idle(x) {
		return out, err
	}
	m.Regions = regions(workers)
	m.Plan = c.Plan * float64(l.x.Events) / float64(m.Regions)
	if x, err = Execute(w, s, workers, grain, m); err != nil {
		return out, err
	}
	if ahead := c.whole(s, workers, l, x); idle(x) {
		out.nanos = ahead
	} else {
		out.nanos = (out.nanos + ahead) / 2
	}
	return out, nil
}

// regions returns into how many parts the engine cuts a batch for planning.
func regions(workers int) int {
	if workers == 1 {
		return 1
	}
	return 2 * workers
}

// whole returns the time of a batch from the time of its execution.
func (c *Costs) whole(s schedule.Strategy, workers int, l *pipeline, x Execution) float64 {
	events, n := float64(l.x.Events), float64(workers)
	plan := c.Plan * events * (1 - float64(x.Planned)/float64(regions(workers)))
	// What one worker planned, another one links, executes and installs.
	moved := c.Wake * transferShare * (1 - 1/n) * float64(l.accesses())
	shards := share(l.tasks, workers)
	shared := (plan+moved)/n + (c.Link+c.Install)*events*shards + c.Emit*events/min(n, events)
	alone := (c.Seal + c.Start[classOf(s)] + c.Deliver) * events
	meetings := 0.0
	if workers > 1 {
		meetings = steppingStones * 2 * c.Wake
	}
	return shared + alone + x.Nanos + meetings
}

// steppingStones are the times that the workers meet in a batch: plan, link,
// execute, emit, install.
const steppingStones = 5

// share returns which part of the time that one worker takes for all tasks is
// left when workers take them one after the other.
func share(tasks []task, workers int) float64 {
	if workers == 1 {
		return 1
	}
	lanes := make([]int, min(workers, len(tasks)))
	total := 0
	for _, t := range tasks {
		least := 0
		for i := range lanes {
			if lanes[i] < lanes[least] {
				least = i
			}
		}
		lanes[least] += t.accesses
		total += t.accesses
	}
	if total == 0 {
		return 1 / float64(workers)
	}
	return float64(slices.Max(lanes)) / float64(total)
}

// conclude turns times into speed-ups.
func (p *Prediction) conclude() {
	for i := range p.Points {
		pt := &p.Points[i]
		pt.Speedup = p.Serial / max(pt.nanos, 1)
		pt.EventsPerSec = float64(p.Events) * 1e9 / max(pt.nanos, 1)
		pt.Batches, pt.Events = p.Batches, p.Events
		pt.CriticalPathBound = p.Bounds.Bound()
	}
}

// Bound returns the critical-path bound of the speed-up.
func (b Bounds) Bound() float64 {
	if b.Longest == 0 {
		return 1
	}
	return b.Total / b.Longest
}

// Strategies returns the names of all strategies that can be predicted.
func Strategies() []string {
	var out []string
	for _, s := range schedule.Strategies() {
		if s.Kind() != schedule.Auto {
			out = append(out, s.String())
		}
	}
	return out
}

// WorkersMax is the largest number of workers that can be asked for: where the
// engine itself ends at fewer, more are a look ahead.
const WorkersMax = 1024
