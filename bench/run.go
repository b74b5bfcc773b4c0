package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// Spec is what to run.
type Spec struct {
	Program *program.Program
	Params  map[string]string
	Events  int // 0 for the program's default
	Seed    uint64
	Input   string
	Options engine.Options
	// Bare leaves out what the hand-written loop does not do either: latencies
	// and hashing results.
	Bare bool
	// Wrap, if set, gets the instance before the run and may replace its source.
	Wrap func(in *program.Instance) error
}

// Config returns the program's configuration.
func (s *Spec) Config() (*program.Config, error) {
	c, err := s.Program.Config(s.Params)
	if err != nil {
		return nil, err
	}
	if s.Events > 0 {
		c.Events = s.Events
	}
	c.Seed, c.Input = s.Seed, s.Input
	c.MemoryLimit, c.SpillDir = s.Options.MemoryLimit, s.Options.State
	return c, nil
}

// instance makes the program.
func (s *Spec) instance() (*program.Instance, error) {
	c, err := s.Config()
	if err != nil {
		return nil, err
	}
	return s.Program.New(c)
}

// Result is the account of a run, as `--json` prints it.
type Result struct {
	Workload       string           `json:"workload"`
	Strategy       string           `json:"strategy"`
	Workers        int              `json:"workers"`
	Batch          int              `json:"batch"`
	Events         int              `json:"events"`
	Committed      int              `json:"committed"`
	Aborted        int              `json:"aborted"`
	Seconds        float64          `json:"seconds"`
	EventsPerSec   float64          `json:"events_per_sec"`
	Ops            int              `json:"ops"`
	LatencyUs      Latency          `json:"latency_us"`
	BreakdownNs    engine.Breakdown `json:"breakdown_ns"`
	PeakRSSBytes   int64            `json:"peak_rss_bytes"`
	AllocsPerEvent float64          `json:"allocs_per_event"`
	StateHash      string           `json:"state_hash"`
	ResultsHash    string           `json:"results_hash"`
	Verified       bool             `json:"verified"`
	Resumed        int              `json:"resumed,omitempty"`   // events of which only what they did was loaded
	Replayed       int              `json:"replayed,omitempty"`  // events run again from the log
	Discarded      int              `json:"discarded,omitempty"` // what became no event, and events that plans rejected
	RecoverySecs   float64          `json:"recovery_seconds,omitempty"`
	SpilledRows    int              `json:"spilled_rows,omitempty"` // on disk at the end
	SpilledBytes   int64            `json:"spilled_bytes,omitempty"`
	RowsOut        int              `json:"rows_out,omitempty"` // of memory, so far
	RowsIn         int              `json:"rows_in,omitempty"`

	Metrics engine.Metrics `json:"-"`
	Notes   []string       `json:"-"`
	State   storage.Hash   `json:"-"`
}

// Latency is in microseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// CheckError tells that a program's own check failed after a run.
type CheckError struct{ Err error }

func (e *CheckError) Error() string { return "check of the final state failed: " + e.Err.Error() }
func (e *CheckError) Unwrap() error { return e.Err }

// Run runs the program once. The result is valid up to where the run came, also
// with an error.
func Run(ctx context.Context, s Spec) (*Result, error) { return RunPrepared(ctx, &s) }

// RunPrepared is Run of a spec whose options Wrap may still change.
func RunPrepared(ctx context.Context, s *Spec) (r *Result, err error) {
	defer limitHeap(&s.Options)()
	in, release, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if failed := release(); err == nil {
			err = failed
		}
	}()
	o := s.Options
	o.HashResults, o.NoLatency = !s.Bare, s.Bare
	m, err := engine.Run(ctx, in.App, in.Source, o)
	r = newResult(s.Program.Name, m, in.App)
	if failed := in.App.LogErr(); err == nil {
		err = failed
	}
	r.Notes = in.Notes
	if err == nil && in.Check != nil && m.Resumed == 0 { // checks count results from the first one on
		if failed := in.Check(); failed != nil {
			err = &CheckError{failed}
		}
	}
	return r, err
}

// open makes the instance of a run, and what releases it.
func (s *Spec) open(ctx context.Context) (in *program.Instance, release func() error, err error) {
	c, err := s.Config()
	if err != nil {
		return nil, nil, err
	}
	if in, err = makeInstance(ctx, s.Program, c); err != nil {
		return nil, nil, err
	}
	release = func() error { // a wrapper may have brought a source of its own
		if in.Close != nil {
			in.Close()
		}
		return in.App.Close()
	}
	if s.Wrap != nil {
		if err := s.Wrap(in); err != nil {
			return nil, nil, errors.Join(err, release())
		}
	}
	return in, release, nil
}

// makeInstance makes an instance, unless it is interrupted: a large state takes seconds to
// make, and programs do not look whether anybody still waits. Then it is made for nobody.
func makeInstance(ctx context.Context, p *program.Program, c *program.Config) (*program.Instance, error) {
	type made struct {
		in  *program.Instance
		err error
	}
	done := make(chan made, 1)
	go func() {
		in, err := p.Make(c)
		done <- made{in, err}
	}()
	select {
	case m := <-done:
		return m.in, m.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// limitHeap has the collector keep to the memory limit until the returned function is
// called. With the serial model beside, which is all in memory, it could not; and where the
// program itself takes about as much, it would do nothing else.
func limitHeap(o *engine.Options) (end func()) {
	if o.MemoryLimit == 0 || o.Verify {
		return func() {}
	}
	const least = 64 << 20
	before := debug.SetMemoryLimit(max(least, o.MemoryLimit))
	return func() { debug.SetMemoryLimit(before) }
}

func newResult(name string, m engine.Metrics, app *txn.App) *Result {
	us := func(q float64) float64 { return float64(m.Latency.ValueAtPercentile(q)) / 1e3 }
	r := &Result{
		Workload: name, Strategy: m.Strategy, Workers: m.Workers, Batch: m.Batch, Events: m.Events,
		Committed: m.Committed, Aborted: m.Aborted, Seconds: m.Seconds, EventsPerSec: m.EventsPerSec(), Ops: m.Ops,
		Resumed: m.Resumed, Replayed: m.Replayed, Discarded: m.Discarded, RecoverySecs: m.RecoverySeconds, BreakdownNs: m.Breakdown, PeakRSSBytes: peakRSS(), Verified: m.Verified, Metrics: m,
		ResultsHash: m.ResultsHash.String(),
	}
	r.SpilledRows, r.SpilledBytes, r.RowsOut, r.RowsIn = m.Spilled.Rows, m.Spilled.Bytes, m.Spilled.Gone, m.Spilled.Come
	if m.Latency != nil && m.Latency.TotalCount() > 0 {
		r.LatencyUs = Latency{us(50), us(95), us(99), float64(m.Latency.Max()) / 1e3}
	}
	if m.Events > 0 {
		r.AllocsPerEvent = float64(m.Mallocs) / float64(m.Events)
	}
	r.State = storage.StateHash(app)
	r.StateHash = r.State.String()
	return r
}

// peakRSS returns the largest resident size of the process so far.
func peakRSS() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss * 1024
}

// Text is the result for people.
func (r *Result) Text() string {
	m := &r.Metrics
	out := ""
	if r.Resumed+r.Replayed > 0 {
		out += fmt.Sprintf("resumed with event %d: %d as they were left, %d run again from the log, in %.3f s\n", r.Resumed+r.Replayed, r.Resumed, r.Replayed, m.RecoverySeconds)
	}
	for _, n := range r.Notes {
		out += "  " + n + "\n"
	}
	percent := func(n int) float64 { return 100 * float64(n) / float64(max(1, r.Events)) }
	out += fmt.Sprintf("%s under %s: %d events in %s = %s events/s\n", r.Workload, r.Strategy, r.Events,
		time.Duration(r.Seconds*1e9).Round(10*time.Microsecond), Thousands(r.EventsPerSec))
	out += fmt.Sprintf("  committed    %d (%.1f %%), aborted %d (%.1f %%), %d operations\n", r.Committed, percent(r.Committed), r.Aborted, percent(r.Aborted), r.Ops)
	out += fmt.Sprintf("  batches      %d of up to %d events, %d workers, by strategy %v\n", m.Batches, r.Batch, r.Workers, m.Strategies)
	out += fmt.Sprintf("  latency      p50 %.0f us, p95 %.0f us, p99 %.0f us, max %.0f us\n", r.LatencyUs.P50, r.LatencyUs.P95, r.LatencyUs.P99, r.LatencyUs.Max)
	if m.Discarded > 0 {
		out += fmt.Sprintf("  dead letters %d\n", m.Discarded)
	}
	if m.Redone > 0 {
		out += fmt.Sprintf("  redone       %d transactions, because of an abort or a key that was not the one foreseen (%d)\n", m.Redone, m.Moved)
	}
	if m.KeptMax > 0 {
		out += fmt.Sprintf("  windows      %d versions kept at the end, %d at most\n", m.Kept, m.KeptMax)
	}
	out += fmt.Sprintf("  memory       peak %d MiB, %.3f allocations per event\n", r.PeakRSSBytes>>20, r.AllocsPerEvent)
	if r.RowsOut > 0 {
		out += fmt.Sprintf("  rows on disk %s, %d MiB; %s went there, %s came back\n", Thousands(float64(r.SpilledRows)), r.SpilledBytes>>20, Thousands(float64(r.RowsOut)), Thousands(float64(r.RowsIn)))
	}
	out += fmt.Sprintf("  state hash   %s\n  results hash %s\n", r.StateHash, r.ResultsHash)
	if r.Verified {
		out += "  verified     outcomes, values read, results and final state equal the serial model's\n"
	}
	return out
}

// Thousands prints a number with separators.
func Thousands(f float64) string {
	s := fmt.Sprintf("%.0f", f)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
