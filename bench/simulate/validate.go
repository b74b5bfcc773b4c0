package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/engine"
)

// Check is a prediction beside what the engine did.
type Check struct {
	Trace     string  `json:"trace"`
	Strategy  string  `json:"strategy"`
	Workers   int     `json:"workers"`
	Predicted float64 `json:"predicted"` // speed-up over serial
	Measured  float64 `json:"measured"`  // median over all turns
	Error     float64 `json:"error"`     // of the prediction, in parts of the measured
	Turns     int     `json:"turns"`
	// Cores is how many processors bare loops found, as many as there are workers
	// at most: the median over the turns.
	Cores float64 `json:"cores"`
	// Calm is measured in those turns only in which they found them all, which the
	// prediction takes for granted. 0 when there were too few.
	Calm      float64 `json:"calm,omitempty"`
	CalmError float64 `json:"calm_error,omitempty"`
	CalmTurns int     `json:"calm_turns"`
}

const (
	// So much of the processors must be there for a turn to be a calm one.
	calmShare = 0.88
	// and so many turns for a judgement.
	calmTurnsMin = 5
)

// turn is one batch under serial and under each setting, with the processors
// that were to be had before, between and after.
type turn struct{ nanos, cores []float64 }

// Validate runs the given strategies in the engine, on as many of the predicted
// numbers of workers as are not above workersMax. Those of one strategy and the
// serial one take turns batch by batch, so that what disturbs the machine meets
// all alike.
func (p *Prediction) Validate(ctx context.Context, input Input, strategies []string, workersMax, reps int) ([]Check, error) {
	look, err := newProbe(workersMax)
	if err != nil {
		return nil, err
	}
	var out []Check
	for i, name := range strategies {
		from := len(out)
		settings := []engine.Options{{Strategy: serialName, Workers: 1}}
		for _, pt := range p.Points {
			if pt.Strategy == name && pt.Workers <= workersMax && name != serialName {
				out = append(out, Check{Trace: pt.Trace, Strategy: name, Workers: pt.Workers, Predicted: pt.Speedup})
				settings = append(settings, engine.Options{Strategy: name, Workers: pt.Workers})
			}
		}
		var turns []turn
		for r := range reps {
			p.Options.Progress(i*reps+r, len(strategies)*reps, "validating")
			if turns, err = p.turns(ctx, input, settings, look, turns); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		for j := range out[from:] {
			out[from+j].conclude(turns, 1+j, float64(workersMax))
		}
	}
	return out, nil
}

// turns runs the settings once, batch by batch in turn, without the first batch,
// in which memory grows, if there are enough others.
func (p *Prediction) turns(ctx context.Context, input Input, settings []engine.Options, look *probe, turns []turn) ([]turn, error) {
	var runs []*replay
	defer func() {
		for _, r := range runs {
			r.close()
		}
	}()
	for _, o := range settings {
		r, err := startReplay(ctx, input, p.Options.Events, o)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	for batch := 0; ; batch++ {
		t := turn{cores: []float64{look.cores()}}
		for _, r := range runs {
			took, err := r.batch()
			if errors.Is(err, io.EOF) {
				return turns, nil
			}
			if err != nil {
				return nil, err
			}
			t.nanos = append(t.nanos, took)
			t.cores = append(t.cores, look.cores())
		}
		if batch >= warmUp || p.Costs.Batches <= warmUp {
			turns = append(turns, t)
		}
	}
}

// conclude compares a setting with serial, which is setting 0.
func (c *Check) conclude(turns []turn, setting int, workersMax float64) {
	var all, calm, cores []float64
	for _, t := range turns {
		ratio := t.nanos[0] / t.nanos[setting]
		all = append(all, ratio)
		cores = append(cores, t.cores...)
		around := min(t.cores[0], t.cores[1], t.cores[setting], t.cores[setting+1])
		if around >= calmShare*workersMax {
			calm = append(calm, ratio)
		}
	}
	c.Turns, c.Cores, c.Measured = len(all), median(cores), median(all)
	c.Error = c.Predicted/max(c.Measured, 1e-9) - 1
	if c.CalmTurns = len(calm); c.CalmTurns >= calmTurnsMin {
		c.Calm = median(calm)
		c.CalmError = c.Predicted/c.Calm - 1
	}
}

// Checks prints the comparison for people.
func Checks(checks []Check) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s %8s %10s %10s %8s %6s   %-22s %8s\n", "strategy", "workers", "predicted", "measured", "error", "cores", "with all cores free", "error")
	var all, calm []float64
	for _, c := range checks {
		fmt.Fprintf(&b, "%-16s %8d %9.2fx %9.2fx %+7.1f%% %6.2f   ", c.Strategy, c.Workers, c.Predicted, c.Measured, 100*c.Error, c.Cores)
		all = append(all, 100*math.Abs(c.Error))
		if c.Calm == 0 {
			fmt.Fprintf(&b, "%d of %d turns\n", c.CalmTurns, c.Turns)
			continue
		}
		calm = append(calm, 100*math.Abs(c.CalmError))
		fmt.Fprintf(&b, "%-22s %+7.1f%%\n", fmt.Sprintf("%.2fx in %d of %d turns", c.Calm, c.CalmTurns, c.Turns), 100*c.CalmError)
	}
	if len(all) > 0 {
		fmt.Fprintf(&b, "error: median %.1f%%, at worst %.1f%%", median(all), slices.Max(all))
	}
	if len(calm) > 0 {
		fmt.Fprintf(&b, "; with all cores free %.1f%% and %.1f%%", median(calm), slices.Max(calm))
	}
	return b.String() + "\n"
}
