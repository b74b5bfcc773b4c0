package peers

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/storage"
)

// Comparison runs peers in turn, A B C A B C, on the same input: machines are
// noisy, and only ratios within one repetition mean anything.
type Comparison struct {
	Input *Input
	Peers []Peer // the first is what the others are compared with
	Reps  int
	// Full runs all events also through slow peers.
	Full bool
	// Progress, if set, is told before each run.
	Progress func(what string)

	Rows []Row
}

// Row is what a peer came to over the repetitions.
type Row struct {
	Peer   string    `json:"peer"`
	About  string    `json:"about"`
	Events int       `json:"events"` // how many it ran
	PerSec []float64 `json:"events_per_sec"`
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	// Ratio is the first peer's throughput over this one's: the median of the
	// ratios within one repetition.
	Ratio     float64 `json:"ratio"`
	StateHash string  `json:"state_hash"` // after Events events
}

// MismatchError tells that a peer ends in another state than the serial loop.
type MismatchError struct {
	Peer      string
	Events    int
	Got, Want string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s: state %s after %d events, the serial loop has %s", e.Peer, e.Got, e.Events, e.Want)
}

// Run compares. It fails when a peer fails or ends in a wrong state.
func (c *Comparison) Run(ctx context.Context) error {
	c.Rows = make([]Row, len(c.Peers))
	want := map[int]storage.Hash{} // by number of events
	for i, p := range c.Peers {
		in := c.input(p)
		n := len(in.Events)
		c.Rows[i] = Row{Peer: p.Name, About: p.About, Events: n}
		if _, ok := want[n]; ok {
			continue
		}
		_, hash, err := once(ctx, Peer{Name: "serial loop", Prepare: prepareMaps}, in)
		if err != nil {
			return err
		}
		want[n] = hash
	}
	// The first round warms up and is not counted.
	for rep := range c.Reps + 1 {
		for i, p := range c.Peers {
			if c.Progress != nil {
				c.Progress(fmt.Sprintf("round %d of %d: %s", rep+1, c.Reps+1, p.Name))
			}
			in, row := c.input(p), &c.Rows[i]
			if rep == 0 {
				in = in.Prefix(max(1, len(in.Events)/10))
			}
			perSec, hash, err := once(ctx, p, in)
			if err != nil {
				return err
			}
			if rep == 0 {
				continue
			}
			if hash != want[row.Events] {
				return &MismatchError{p.Name, row.Events, hash.String(), want[row.Events].String()}
			}
			row.PerSec, row.StateHash = append(row.PerSec, perSec), hash.String()
		}
	}
	c.summarise()
	return nil
}

func (c *Comparison) input(p Peer) *Input {
	if p.Most == 0 || c.Full {
		return c.Input
	}
	return c.Input.Prefix(p.Most)
}

// once runs the input through the peer and returns events/s and the final state.
func once(ctx context.Context, p Peer, in *Input) (perSec float64, hash storage.Hash, err error) {
	job, err := p.Prepare(in)
	if err != nil {
		return 0, hash, fmt.Errorf("%s: %w", p.Name, err)
	}
	defer func() {
		if failed := job.Close(); failed != nil && err == nil {
			err = fmt.Errorf("%s: %w", p.Name, failed)
		}
	}()
	runtime.GC()
	began := clock.NowNanos()
	if err := job.Run(ctx); err != nil {
		return 0, hash, fmt.Errorf("%s: %w", p.Name, err)
	}
	nanos := clock.NowNanos() - began
	state, err := job.State()
	if err != nil {
		return 0, hash, fmt.Errorf("%s: %w", p.Name, err)
	}
	return float64(len(in.Events)) * 1e9 / float64(max(1, nanos)), state.Hash(), nil
}

func (c *Comparison) summarise() {
	for i := range c.Rows {
		r := &c.Rows[i]
		r.Median, r.Min, r.Max = bench.Median(r.PerSec), slices.Min(r.PerSec), slices.Max(r.PerSec)
		ratios := make([]float64, len(r.PerSec))
		for rep := range ratios {
			ratios[rep] = c.Rows[0].PerSec[rep] / r.PerSec[rep]
		}
		r.Ratio = bench.Median(ratios)
	}
}

// Table prints the comparison for people.
func (c *Comparison) Table() string {
	out := fmt.Sprintf("%-16s %10s %12s %12s %12s %12s\n", "peer", "events", "events/s", "min", "max", c.Rows[0].Peer+" x")
	for _, r := range c.Rows {
		out += fmt.Sprintf("%-16s %10s %12s %12s %12s %12.2f\n", r.Peer, bench.Thousands(float64(r.Events)),
			bench.Thousands(r.Median), bench.Thousands(r.Min), bench.Thousands(r.Max), r.Ratio)
	}
	return out
}
