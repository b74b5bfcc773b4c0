package bench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/internal/work"
	"github.com/heddle-stream/heddle/program"
)

// fixed are the strategies, chosen for contrast, that auto is held against.
var fixed = []string{"serial", "tstream", "ns-op-eager", "bfs-chain-eager", "lock"}

const (
	phaseCount = 13
	autoName   = "auto"
)

// phased is the measurement of a workload whose load changes from phase to phase.
//
// A maximum over noisy figures is no yardstick: so the best fixed strategy of a
// phase is picked on the odd repetitions and scored, like auto, on the even ones.
type phased struct {
	m     *Measuring
	spec  Spec
	names []string
	nanos map[string][][]float64 // by strategy, repetition and phase
	ops   [phaseCount]int
	loop  [phaseCount]float64 // ns of the hand-written loop
	bound float64             // operations/s of bare work loops
	hash  string
	last  map[string]*Result
}

// dynCourse measures the published phases at 8 us of work per operation.
func dynCourse(m *Measuring) error {
	return phases(m, 8*512, 512, map[string]string{"complexity": "8us"})
}

// dyn0Course measures them where serial and parallel alternate as the best: few
// keys, and next to no work in odd phases, none in even ones.
func dyn0Course(m *Measuring) error {
	return phases(m, 30*engine.BatchDefault, 0, map[string]string{"keys": "2000", "complexity": "400ns", "work": "odd"})
}

func phases(m *Measuring, perPhase, batch int, params map[string]string) error {
	if m.Scale.Dense {
		perPhase *= 10
	}
	spec, err := m.spec(Point{Program: "dynamic", Params: params, Events: phaseCount * perPhase, Batch: batch})
	if err != nil {
		return err
	}
	p := &phased{m: m, spec: spec, names: append([]string{autoName}, fixed...), nanos: map[string][][]float64{}, last: map[string]*Result{}}
	return p.measure()
}

func (p *phased) perPhase() int { return p.spec.Events / phaseCount }

func (p *phased) measure() error {
	reps := max(2, 4*((p.m.Scale.Reps+1)/3)) // as many odd ones as even ones
	total := len(p.names)*(reps+1) + phaseCount
	step := 0
	for rep := range reps + 1 { // the first one warms up
		for i := range p.names {
			name := p.names[(i+rep)%len(p.names)]
			p.m.tell(step, total, name)
			step++
			if rep == 0 && p.perPhase() > 8*512 && name != autoName {
				continue
			}
			if err := p.run(name, rep); err != nil {
				return err
			}
		}
	}
	if err := p.yardsticks(func() { p.m.tell(step, total, "loop"); step++ }); err != nil {
		return err
	}
	return p.report()
}

// run runs all phases under one strategy and keeps the time of each.
func (p *phased) run(name string, rep int) error {
	times := make([]float64, phaseCount)
	done := 0
	s := p.spec
	s.Options.Strategy = name
	var ops [phaseCount]int
	s.Options.Listener.BatchDone = func(b engine.BatchInfo) {
		phase := min((done+b.Events/2)/p.perPhase(), phaseCount-1)
		times[phase] += float64(b.Nanos)
		ops[phase] += b.Ops
		done += b.Events
	}
	runtime.GC()
	r, err := Run(p.m.Ctx, s)
	if err != nil {
		return fmt.Errorf("%s, %s: %w", p.m.Name, name, err)
	}
	if hash := r.StateHash + r.ResultsHash; p.hash == "" {
		p.hash = hash
	} else if hash != p.hash {
		return fmt.Errorf("%s: %s ends in another state than the strategies before", p.m.Name, name)
	}
	p.ops, p.last[name] = ops, r
	if rep == 0 {
		return nil
	}
	for i := range times {
		times[i] += float64(r.Metrics.ChoosingNs) / phaseCount
	}
	p.nanos[name] = append(p.nanos[name], times)
	return nil
}

// yardsticks measures the hand-written loop in each phase and bare work loops.
func (p *phased) yardsticks(next func()) error {
	for phase := range phaseCount {
		next()
		s := p.spec
		s.Params = maps.Clone(p.spec.Params)
		s.Params["phase"] = strconv.Itoa(phase)
		s.Events = p.perPhase()
		nanos, err := loopNanos(&s)
		if err != nil {
			return err
		}
		p.loop[phase] = float64(nanos)
	}
	c, err := p.spec.Config()
	if err != nil {
		return err
	}
	p.bound = bareOpsPerSec(c, p.spec.Options.Workers)
	return p.m.Ctx.Err()
}

// loopNanos returns how long the hand-written loop over Go maps takes for the events of a
// run.
func loopNanos(s *Spec) (int64, error) {
	in, err := s.instance()
	if err != nil {
		return 0, err
	}
	run := in.Loops[0].Prepare()
	runtime.GC()
	began := clock.NowNanos()
	run()
	return clock.NowNanos() - began, nil
}

// bareOpsPerSec returns how many operations' work as many concurrent loops as
// there are workers get done.
func bareOpsPerSec(config *program.Config, workers int) float64 {
	const lasting = 300 * time.Millisecond
	n := config.Iterations()
	if n == 0 {
		return 0
	}
	one := clock.NowNanos()
	for range 1000 {
		_ = work.Do(n)
	}
	ops := int(float64(lasting) / (float64(clock.NowNanos()-one) / 1000) * float64(workers))
	c := Comparison{Spec: Spec{Options: engine.Options{Workers: workers}}}
	c.bound(config, ops, ops)
	return c.Bound[0]
}

// took returns what a strategy took in a phase: the median of the odd or even
// repetitions, of two middle ones the lower, since whatever disturbs a run makes it
// longer.
func (p *phased) took(name string, phase int, odd bool) float64 {
	var of []float64
	for rep, times := range p.nanos[name] {
		if (rep%2 == 0) == odd {
			of = append(of, times[phase])
		}
	}
	slices.Sort(of)
	return of[(len(of)-1)/2]
}

func (p *phased) report() error {
	for phase := range phaseCount {
		for _, name := range p.names {
			for rep := range p.nanos[name] {
				if err := p.emit(name, phase, rep+1, p.nanos[name][rep][phase], nil); err != nil {
					return err
				}
			}
		}
	}
	total := func(name string, odd bool) (sum float64) {
		for phase := range phaseCount {
			sum += p.took(name, phase, odd)
		}
		return sum
	}
	envelope := 0.0
	for phase := range phaseCount {
		best := slices.MinFunc(fixed, func(a, b string) int { return cmp.Compare(p.took(a, phase, true), p.took(b, phase, true)) })
		scored := p.took(best, phase, false)
		envelope += scored
		for _, name := range p.names {
			took := p.took(name, phase, false)
			values := map[string]float64{"envelope_ratio": scored / took, "regret_ns_per_event": (took - scored) / float64(p.perPhase())}
			if err := p.emit(name, phase, 0, took, values); err != nil {
				return err
			}
		}
	}
	single := slices.MinFunc(fixed, func(a, b string) int { return cmp.Compare(total(a, true), total(b, true)) })
	best, auto := total(single, false), total(autoName, false)
	l := p.line(autoName, "whole run; best single strategy: "+single, auto, phaseCount)
	l.Values = map[string]float64{"over_best_single": best / auto, "envelope_ratio": envelope / auto, "headroom": best/envelope - 1}
	if best > envelope {
		l.Values["headroom_captured"] = (best - auto) / (best - envelope)
	}
	return p.m.Emit(l)
}

func (p *phased) emit(name string, phase, rep int, nanos float64, values map[string]float64) error {
	l := p.line(name, fmt.Sprintf("phase %d", phase), nanos, 1)
	l.X, l.Repetition, l.Values = strconv.Itoa(phase), rep, values
	l.SerialLoopRatio = p.loop[phase] / nanos
	if p.bound > 0 && (p.spec.Params["work"] == "" || phase%2 == 1) {
		l.Efficiency = float64(p.ops[phase]) / (nanos / 1e9) / p.bound
	}
	return p.m.Emit(l)
}

func (p *phased) line(name, point string, nanos float64, phases int) Line {
	events := float64(p.perPhase() * phases)
	r := p.last[name]
	l := Line{
		Experiment: p.m.Name, Point: point, Strategy: name, EventsPerSec: events / nanos * 1e9, NsPerEvent: nanos / events,
		Reps: len(p.nanos[name]), Batches: r.Metrics.Strategies, Workers: r.Workers,
	}
	if r.Seconds > 0 {
		l.ChoosingShare = float64(r.Metrics.ChoosingNs) / 1e9 / r.Seconds
	}
	return l
}

// latencyCourse measures latencies in an open loop at half of the throughput that
// a closed one reaches.
func latencyCourse(m *Measuring) error {
	const linger = 5 * time.Millisecond
	for i, cost := range []string{"0s", "1us"} {
		m.tell(i, 2, cost)
		events := m.Scale.Events
		if cost != "0s" {
			events /= 2
		}
		s, err := m.spec(Point{Program: "sl", Params: map[string]string{"complexity": cost}, Events: events})
		if err != nil {
			return err
		}
		peak, err := runQuietly(m.Ctx, s)
		if err != nil {
			return err
		}
		s.Options.Rate, s.Options.Linger = peak.EventsPerSec/2, linger
		s.Events = int(s.Options.Rate * float64(m.Scale.Reps) / 2) // half a second for each repetition
		r, err := runQuietly(m.Ctx, s)
		if err != nil {
			return err
		}
		l := Line{
			Experiment: m.Name, Point: "sl, " + cost + ", half of the peak", Strategy: r.Strategy, EventsPerSec: r.EventsPerSec, NsPerEvent: 1e9 / r.EventsPerSec,
			Reps: 1, Workers: r.Workers, Batches: r.Metrics.Strategies,
			Values: map[string]float64{
				"peak_events_per_sec": peak.EventsPerSec, "rate": s.Options.Rate, "linger_us": float64(linger) / 1e3, "p50_us": r.LatencyUs.P50,
				"p99_us": r.LatencyUs.P99, "max_us": r.LatencyUs.Max, "p99_over_linger": r.LatencyUs.P99 * 1e3 / float64(linger),
			},
		}
		if err := m.Emit(l); err != nil {
			return err
		}
	}
	return nil
}

func runQuietly(ctx context.Context, s Spec) (*Result, error) {
	runtime.GC()
	r, err := Run(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Program.Name, err)
	}
	return r, nil
}
