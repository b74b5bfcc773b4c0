package simulate

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/txn"
)

// Costs are what the trace took on one worker, in ns.
type Costs struct {
	Batches int
	Events  int
	Kinds   []float64 // of an operation, by kind
	Names   []string  // of the kinds of operations, "" of reads
	// Spread is, by kind, how operations differ: quantiles over the mean.
	Spread [][]float64
	Op     float64 // of an operation, on average

	// Of an event: the steps around the execution.
	Plan, Seal, Link, Emit, Install, Deliver float64
	// By class of strategies, see classOf: laying out the units, per event, and
	// scheduling one call of the executor.
	Start, Call map[string]float64

	Serial []float64 // of a batch under the serial strategy
	Wake   float64   // until another worker has noticed something
	Spin   float64   // between two looks at a held unit
}

// classes are the strategies that schedule differently while nothing aborts.
var classes = []string{"ns-op", "ns-chain", "tstream", "bfs-op", "bfs-chain", "dfs-op", "dfs-chain", "lock", "nested"}

// classOf returns the class of a strategy.
func classOf(s schedule.Strategy) string {
	return strings.TrimSuffix(strings.TrimSuffix(s.String(), "-eager"), "-lazy")
}

// first returns a strategy of a class.
func first(class string) schedule.Strategy {
	if s, err := schedule.Parse(class); err == nil {
		return s
	}
	return schedule.MustParse(class + "-eager")
}

const (
	// Each way to execute is measured on so many batches at least, in passes over
	// the trace if it has too few.
	samplesMin           = 6
	passesMin, passesMax = 4, 24
	// The first batch grows the memory that all others find.
	warmUp = 1
	// Of an operation's kind, so many times are kept of a batch, and so many
	// quantiles of all.
	singles, spreadOf = 256, 64
	// A part of the calls: with fewer looks at held units nothing is learnt of them.
	looksFew = 20
)

// Measure replays the trace, its first events as far as limit says, on one worker:
// each batch in the engine under the serial strategy and then under one class of
// strategies after the other, so that what disturbs the machine meets all alike.
func Measure(ctx context.Context, input Input, limit int, progress func(done, total int, what string)) (*Costs, error) {
	m := &measurement{costs: &Costs{Start: map[string]float64{}, Call: map[string]float64{}}, by: map[string][]sample{}, clock: clockCost()}
	passes := passesMin
	for p := 0; p < passes; p++ {
		progress(p, passes, "measuring")
		if err := m.pass(ctx, input, limit, p); err != nil {
			return nil, err
		}
		m.wake = append(m.wake, wakeCost())
		need := samplesMin * (len(classes) + 1)
		passes = min(max(passesMin, need/max(1, m.costs.Batches-warmUp)+1), passesMax)
	}
	if m.costs.Events == 0 {
		return nil, errors.New("the trace has no events")
	}
	m.summarise()
	return m.costs, nil
}

// sample is what a batch took under a class of strategies.
type sample struct {
	steps
	batch  int
	serial float64 // ns of the batch under serial, just before
	events int
	looks  float64 // at held units
	calls  int
	parks  int64     // units put on waiting lists
	kinds  []float64 // operations executed, by kind
}

// measurement collects samples.
type measurement struct {
	costs  *Costs
	by     map[string][]sample
	kinds  [][]float64 // by kind: ns of an operation, a figure per batch
	single [][]float64 // by kind: some operations
	counts []float64   // by kind: operations
	clock  float64     // ns of reading the clock
	wake   []float64   // ns until another processor has seen something, by pass
}

// pass takes all batches through a pipeline. Way 0 of executing times each
// operation, the others are the classes.
func (m *measurement) pass(ctx context.Context, input Input, limit, number int) error {
	c := m.costs
	c.Batches, c.Events = 0, 0
	serial, err := startReplay(ctx, input, limit, engine.Options{Strategy: serialName, Workers: 1})
	if err != nil {
		return err
	}
	defer serial.close()
	return each(ctx, input, limit, func(p *pipeline, batch int, feed *txn.Feed) error {
		took, err := serial.batch()
		if err != nil {
			return err
		}
		if number == 0 {
			c.Serial = append(c.Serial, took)
		}
		c.Serial[batch] = min(c.Serial[batch], took)
		s := sample{batch: batch, serial: took, events: feed.Len()}
		way := (batch + number) % (len(classes) + 1)
		class := ""
		if way > 0 && c.Op > 0 {
			class = classes[way-1]
		}
		if err := m.execute(p, feed, class, &s); err != nil {
			return err
		}
		c.Batches++
		c.Events += s.events
		if batch >= warmUp || len(m.by[class]) == 0 {
			m.by[class] = append(m.by[class], s)
		}
		return nil
	})
}

// execute takes a batch through the pipeline under a class of strategies, or to
// time each operation.
func (m *measurement) execute(p *pipeline, feed *txn.Feed, class string, s *sample) error {
	if bad := p.build(feed, &s.steps); bad != nil {
		return panicked(bad)
	}
	grain := schedule.GrainFor(m.costs.Op, p.x.Ops, p.x.Events, 1)
	x := &meter{Executor: p.exec, p: p}
	if class == "" {
		t := &timer{meter: x, clock: m.clock}
		p.execute(first("ns-op"), grain, t, &s.steps)
		m.timed(t)
	} else {
		p.execute(first(class), grain, x, &s.steps)
		if holds(first(class)) {
			// The time at held units is part of what was measured here, and of what a
			// simulation adds to the calls: it must not count twice.
			e, err := Execute(m.costs.work(p, nil), first(class), 1, grain, Machine{Spin: 1})
			if err != nil {
				return err
			}
			s.looks = e.Nanos - e.Busy
		}
	}
	s.calls, s.kinds = x.counted()
	s.parks = p.run.Stats().Waits
	if bad := p.finish(&s.steps); bad != nil {
		return panicked(bad)
	}
	return nil
}

// timed adds what the operations of a batch took.
func (m *measurement) timed(t *timer) {
	c := m.costs
	for k := range t.ns {
		n := float64(len(t.ns[k]))
		for len(m.kinds) <= k {
			m.kinds, m.counts, m.single = append(m.kinds, nil), append(m.counts, 0), append(m.single, nil)
			c.Kinds, c.Names = append(c.Kinds, 0), append(c.Names, "")
		}
		if n == 0 {
			continue
		}
		calm := undisturbed(t.ns[k])
		m.kinds[k] = append(m.kinds[k], mean(calm))
		for i := 0; i < len(calm); i += 1 + len(calm)/singles {
			m.single[k] = append(m.single[k], calm[i])
		}
		m.counts[k] += n
		c.Kinds[k] = median(m.kinds[k])
		c.Names[k] = t.names[k]
	}
	total, ops := 0.0, 0.0
	for k, n := range m.counts {
		total += c.Kinds[k] * n
		ops += n
	}
	if ops > 0 {
		c.Op = total / ops
	}
}

// summarise turns the samples into costs.
func (m *measurement) summarise() {
	c := m.costs
	var all []sample
	for _, v := range m.by {
		all = append(all, v...)
	}
	per := func(of func(s *sample) float64) float64 {
		var v []float64
		for i := range all {
			v = append(v, of(&all[i])*m.calm(&all[i])/float64(all[i].events))
		}
		return median(v)
	}
	c.Plan = per(func(s *sample) float64 { return s.plan })
	c.Seal = per(func(s *sample) float64 { return s.seal })
	c.Link = per(func(s *sample) float64 { return s.link })
	c.Emit = per(func(s *sample) float64 { return s.emit })
	c.Install = per(func(s *sample) float64 { return s.install })
	c.Deliver = per(func(s *sample) float64 { return s.deliver })
	c.Wake = slices.Min(m.wake) // with two processors at hand
	for _, v := range m.single {
		c.Spread = append(c.Spread, quantiles(v, spreadOf))
	}
	m.fit()
	c.Spin = spinNs
	for _, class := range classes {
		var start, call, spin []float64
		for _, s := range m.by[class] {
			start = append(start, s.start*m.calm(&s)/float64(s.events))
			n := float64(s.calls) + float64(s.parks)
			if n == 0 {
				continue
			}
			rest := s.drive*m.calm(&s) - m.useful(&s)
			call = append(call, (rest-s.looks*c.Spin)/n)
			if s.looks > n/looksFew {
				spin = append(spin, (rest-n*c.Call["ns-chain"])/s.looks)
			}
		}
		c.Start[class], c.Call[class] = median(start), max(median(call), 0)
		// tstream is ns-chain that holds, and comes before those that hold, too.
		if class == "tstream" && len(spin) > 0 {
			c.Spin, c.Call[class] = min(max(median(spin), spinNs/8), 4*spinNs), c.Call["ns-chain"]
		}
	}
}

// calm returns how much faster a sample would have been on a machine that does
// nothing else: the serial run just before it tells.
func (m *measurement) calm(s *sample) float64 { return m.costs.Serial[s.batch] / s.serial }

// useful returns what the operations of a sample took.
func (m *measurement) useful(s *sample) float64 {
	sum := 0.0
	for k, n := range s.kinds {
		sum += m.costs.Kinds[k] * n
	}
	return sum
}

// fit makes operations no dearer than the executions that they were part of.
// Reading the clock around an operation of a few ns keeps its memory accesses
// from overlapping with those of the next one.
func (m *measurement) fit() {
	const most = 0.95
	share := 0.0
	for _, class := range classes {
		var v []float64
		for _, s := range m.by[class] {
			v = append(v, m.useful(&s)/max(s.drive*m.calm(&s), 1))
		}
		share = max(share, median(v))
	}
	if share <= most {
		return
	}
	for k := range m.costs.Kinds {
		m.costs.Kinds[k] *= most / share
	}
	m.costs.Op *= most / share
}

// undisturbed returns times without those in which the processor did something
// else meanwhile: far above the others and as long as that takes.
func undisturbed(v []float64) []float64 {
	const times, more = 10, 20_000
	most := times*median(v) + more
	var out []float64
	for _, t := range v {
		if t <= most {
			out = append(out, t)
		}
	}
	return out
}

func mean(v []float64) float64 {
	total := 0.0
	for _, t := range v {
		total += t
	}
	return total / float64(max(len(v), 1))
}

// quantiles returns n values that stand for v, over their mean.
func quantiles(v []float64, n int) []float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
		if len(v) > 0 {
			out[i] = v[(2*i+1)*len(v)/(2*n)]
		}
	}
	if by := mean(out); by > 0 {
		for i := range out {
			out[i] /= by
		}
	}
	return out
}

// median returns the middle value, of an even number the mean of the two.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	n := len(v)
	return math.FMA(0.5, v[n/2]-v[(n-1)/2], v[(n-1)/2])
}
