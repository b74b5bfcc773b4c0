package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/internal/work"
	"github.com/heddle-stream/heddle/program"
)

// Comparison is several strategies on the same input.
type Comparison struct {
	Spec       Spec
	Strategies []string
	Reps       int
	// Verify runs each strategy once beside the serial model, before the
	// repetitions that are timed.
	Verify bool
	// Progress, if set, is told before each run.
	Progress func(done, total int, what string)

	Rows  []Row
	Loops []LoopRow
	// Bound is events/s of as many bare work loops as there are workers, one
	// figure per repetition; nil when operations spend no time.
	Bound []float64
}

// Row is what a strategy came to over the repetitions.
type Row struct {
	Result // of the median repetition
	// SerialLoopRatio is the throughput over that of the hand-written loop over
	// Go maps, SerialRatio over that of our serial strategy: medians of the
	// ratios within one repetition. 0 when there is none.
	SerialLoopRatio float64 `json:"serial_loop_ratio"`
	SerialRatio     float64 `json:"serial_ratio"`
	// Efficiency is throughput over the bound of bare work loops.
	Efficiency float64 `json:"efficiency,omitempty"`

	PerSec []float64 `json:"-"` // by repetition
}

// LoopRow is a hand-written loop over the repetitions.
type LoopRow struct {
	Name   string
	PerSec []float64
}

const serialName = "serial"

// Run compares. It fails when a strategy fails, or when two disagree on the
// final state or the results.
func (c *Comparison) Run(ctx context.Context) error {
	names := c.Strategies
	if !slices.Contains(names, serialName) {
		names = append([]string{serialName}, names...)
	}
	config, err := c.Spec.Config()
	if err != nil {
		return err
	}
	in, err := c.Spec.Program.New(config) // for its loops, which have everything in memory
	if err != nil {
		return err
	}
	if in.Close != nil {
		defer in.Close()
	}
	for _, l := range in.Loops {
		c.Loops = append(c.Loops, LoopRow{Name: l.Name})
	}
	rows := make([]Row, len(names))
	runs := make([][]*Result, len(names))
	total, step := len(names)*(c.Reps+1), 0
	progress := func(what string) {
		if c.Progress != nil {
			c.Progress(step, total, what)
		}
		step++
	}
	if err := c.first(ctx, names, rows, progress); err != nil {
		return err
	}
	for range c.Reps {
		if err := c.loops(in, rows[0].Events); err != nil {
			return err
		}
		c.bound(config, rows[0].Events, rows[0].Ops)
		for i, name := range names {
			progress(name)
			s := c.Spec
			s.Options.Strategy, s.Bare = name, false
			s.Options.Verify = false
			runtime.GC()
			r, err := Run(ctx, s)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if r.StateHash != rows[i].StateHash || r.ResultsHash != rows[i].ResultsHash {
				return fmt.Errorf("%s: two runs on the same input differ", name)
			}
			runs[i] = append(runs[i], r)
			rows[i].PerSec = append(rows[i].PerSec, r.EventsPerSec)
		}
	}
	c.summarise(names, rows, runs)
	return nil
}

// first runs each strategy untimed: it warms up, verifies when asked to, and
// finds the hashes that every run must have.
func (c *Comparison) first(ctx context.Context, names []string, rows []Row, progress func(string)) error {
	for i, name := range names {
		progress(name)
		s := c.Spec
		s.Options.Strategy, s.Options.Verify = name, c.Verify
		r, err := Run(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		rows[i].Result = *r
		if r.StateHash != rows[0].StateHash || r.ResultsHash != rows[0].ResultsHash {
			return fmt.Errorf("%s and %s differ on the same input: state %s and %s, results %s and %s",
				names[0], name, rows[0].StateHash, r.StateHash, rows[0].ResultsHash, r.ResultsHash)
		}
	}
	return nil
}

func (c *Comparison) loops(in *program.Instance, events int) error {
	for i, l := range in.Loops {
		run := l.Prepare()
		runtime.GC()
		began := clock.NowNanos()
		run()
		c.Loops[i].PerSec = append(c.Loops[i].PerSec, perSec(events, clock.NowNanos()-began))
	}
	return nil
}

// bound measures bare work loops, one on each worker, that share out the work of
// all operations.
func (c *Comparison) bound(config *program.Config, events, ops int) {
	n := config.Iterations()
	if n == 0 {
		return
	}
	workers := c.Spec.Options.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var wg sync.WaitGroup
	began := clock.NowNanos()
	for w := range workers {
		share := (w+1)*ops/workers - w*ops/workers
		wg.Go(func() {
			for range share {
				_ = work.Do(n)
			}
		})
	}
	wg.Wait()
	c.Bound = append(c.Bound, perSec(events, clock.NowNanos()-began))
}

func perSec(events int, nanos int64) float64 { return float64(events) * 1e9 / float64(max(1, nanos)) }

// summarise fills the rows with medians.
func (c *Comparison) summarise(names []string, rows []Row, runs [][]*Result) {
	serial := slices.Index(names, serialName)
	for i := range rows {
		verified := rows[i].Verified
		middle := medianOf(runs[i], func(r *Result) float64 { return r.EventsPerSec })
		rows[i].Result = *middle
		rows[i].Verified = verified
		rows[i].SerialRatio = medianRatio(rows[i].PerSec, rows[serial].PerSec)
		if len(c.Loops) > 0 {
			rows[i].SerialLoopRatio = medianRatio(rows[i].PerSec, c.Loops[0].PerSec)
		}
		if c.Bound != nil {
			rows[i].Efficiency = medianRatio(rows[i].PerSec, c.Bound)
		}
		if slices.Contains(c.Strategies, names[i]) {
			c.Rows = append(c.Rows, rows[i])
		}
	}
}

func medianOf(runs []*Result, by func(*Result) float64) *Result {
	sorted := slices.Clone(runs)
	slices.SortFunc(sorted, func(a, b *Result) int {
		switch {
		case by(a) < by(b):
			return -1
		case by(a) > by(b):
			return 1
		}
		return 0
	})
	return sorted[len(sorted)/2]
}

// medianRatio returns the median of a[i]/b[i].
func medianRatio(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return Median(ratios)
}

// Median returns the middle value, of an even number the upper one of the two.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	sorted := slices.Clone(v)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// Table prints the comparison for people.
func (c *Comparison) Table() string {
	out := fmt.Sprintf("%-15s %28s %9s %8s %6s %9s %9s  %s\n", "strategy", "events/s median (min-max)", "x loop", "x serial", "eff.", "p50 us", "p99 us", "aborted")
	for _, r := range c.Rows {
		eff := "-"
		if r.Efficiency > 0 {
			eff = fmt.Sprintf("%.2f", r.Efficiency)
		}
		out += fmt.Sprintf("%-15s %28s %9.2f %8.2f %6s %9.0f %9.0f  %d\n", r.Strategy, spread(r.PerSec), r.SerialLoopRatio, r.SerialRatio, eff, r.LatencyUs.P50, r.LatencyUs.P99, r.Aborted)
	}
	for _, l := range c.Loops {
		out += fmt.Sprintf("%-15s %28s\n", "loop: "+l.Name, spread(l.PerSec))
	}
	if c.Bound != nil {
		out += fmt.Sprintf("%-15s %28s\n", "bound", spread(c.Bound))
	}
	return out
}

func spread(v []float64) string {
	return fmt.Sprintf("%s (%s-%s)", Thousands(Median(v)), Thousands(slices.Min(v)), Thousands(slices.Max(v)))
}
