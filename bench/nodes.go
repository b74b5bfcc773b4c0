package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/storage"
)

// NodesSpec is what to run on several nodes, as far as it is not in the Spec.
type NodesSpec struct {
	Nodes    int
	Runtime  cluster.Runtime
	Box      *cluster.Mailbox // what nodes send to control
	LinkRate float64          // bytes per second, 0 if unknown
	Keep     cluster.Keep     // of the job, or nil
	Failed   func(error)      // told of nodes that died, when the job goes on
	// Began, if set, gets the job before it runs.
	Began func(j *cluster.Job)
}

// NodesResult is the account of a run on several nodes, as `--json` prints it.
type NodesResult struct {
	Workload     string           `json:"workload"`
	Strategy     string           `json:"strategy"`
	Nodes        int              `json:"nodes"` // at the start
	Workers      int              `json:"workers"`
	Batch        int              `json:"batch"`
	Batches      int              `json:"batches"`
	Events       int              `json:"events"`
	Committed    int              `json:"committed"`
	Aborted      int              `json:"aborted"`
	Seconds      float64          `json:"seconds"`
	EventsPerSec float64          `json:"events_per_sec"`
	LatencyUs    Latency          `json:"latency_us"`
	HeldMax      int              `json:"held_max"`          // transactions that waited for rows at one time
	Resumed      int              `json:"resumed,omitempty"` // events of a job before this one
	Checkpoints  int              `json:"checkpoints,omitempty"`
	Recoveries   int              `json:"recoveries,omitempty"` // after nodes that died
	Verified     bool             `json:"verified"`
	StateHash    string           `json:"state_hash"`
	ResultsHash  string           `json:"results_hash"`
	Requests     []cluster.Report `json:"requests,omitempty"`
	// Quality is how right results of the events of each second are, by when these arrived, where the workload tells that.
	Quality []float64 `json:"quality,omitempty"`
}

// RunNodes runs a program on several nodes. The result is valid up to where the run came, also with an error.
func RunNodes(ctx context.Context, s Spec, n NodesSpec) (r *NodesResult, err error) {
	in, release, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if failed := release(); err == nil {
			err = failed
		}
	}()
	s.Options.Batch = cmp.Or(s.Options.Batch, engine.BatchDefault)
	o := cluster.JobOptions{Nodes: n.Nodes, Batch: s.Options.Batch, Interval: s.Options.Linger, LinkRate: n.LinkRate, Keep: n.Keep, Failed: n.Failed}
	if rate := s.Options.Rate; rate > 0 {
		o.Pace = func(seconds float64) float64 { return rate * seconds }
		if in.Pace != nil {
			o.Pace = in.Pace(rate)
		}
	}
	var q quality
	if in.Score != nil {
		o.Completed = func(c cluster.Completion) { q.add(c.Arrival, in.Score, c.Result) }
	}
	j, err := cluster.NewJob(in.App, in.Source, o, n.Runtime, n.Box)
	if err != nil {
		return nil, err
	}
	if n.Began != nil {
		n.Began(j)
	}
	out, err := j.Run(ctx)
	r = newNodesResult(s, n, out)
	r.Quality = q.list()
	if err == nil && s.Options.Verify {
		err = verifyNodes(ctx, s, out)
		r.Verified = err == nil
	}
	return r, err
}

// verifyNodes compares what nodes came to with a serial run of the same events, with the same logic from the same event
// on, and has the program check that.
func verifyNodes(ctx context.Context, s Spec, out *cluster.Outcome) (err error) {
	in, release, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	e, err := engine.NewSession(in.App, engine.Options{Workers: 1, Strategy: "serial", HashResults: true})
	if err != nil {
		return err
	}
	changes := out.Changes
	for done := 0; done < out.Events; {
		upTo := out.Events
		for len(changes) > 0 && changes[0].Seq <= uint64(done) {
			for name, variant := range changes[0].Logic {
				if err := in.App.SetLogic(name, variant); err != nil {
					return err
				}
			}
			changes = changes[1:]
		}
		if len(changes) > 0 {
			upTo = int(changes[0].Seq)
		}
		if err := in.Source.Fill(ctx, e.Feed(), min(s.Options.Batch, upTo-done)); err != nil && (!errors.Is(err, io.EOF) || e.Feed().Len() == 0) {
			return fmt.Errorf("verifying event %d: %w", done, err)
		}
		done += e.Feed().Len()
		if err := e.Run(); err != nil {
			return err
		}
	}
	m, err := e.Close()
	if err != nil {
		return err
	}
	for _, d := range []struct {
		what      string
		got, want storage.Hash
	}{{"results", out.Results, m.ResultsHash}, {"state", out.State, storage.StateHash(in.App)}} {
		if d.got != d.want {
			return &engine.DifferenceError{Event: -1, What: fmt.Sprintf("%s hash of the nodes is %v, of a serial run %v", d.what, d.got, d.want)}
		}
	}
	if in.Check != nil {
		return in.Check()
	}
	return nil
}

// quality is how right results are, by second.
type quality struct {
	start   int64
	seconds []struct{ right, of int }
}

func (q *quality) add(arrival int64, score func([]byte) (right, of int), result []byte) {
	if q.start == 0 {
		q.start = arrival
	}
	right, of := score(result)
	at := int(max(0, arrival-q.start) / 1e9)
	for len(q.seconds) <= at {
		q.seconds = append(q.seconds, struct{ right, of int }{})
	}
	q.seconds[at].right += right
	q.seconds[at].of += of
}

func (q *quality) list() (all []float64) {
	for _, s := range q.seconds {
		all = append(all, float64(s.right)/float64(max(s.of, 1)))
	}
	return all
}

func newNodesResult(s Spec, n NodesSpec, out *cluster.Outcome) *NodesResult {
	us := func(q float64) float64 { return float64(out.Latency.ValueAtPercentile(q)) / 1e3 }
	return &NodesResult{
		Workload: s.Program.Name, Strategy: s.Options.Strategy, Nodes: n.Nodes, Workers: s.Options.Workers, Batch: s.Options.Batch, Batches: out.Batches,
		Events: out.Events, Committed: out.Committed, Aborted: out.Events - out.Committed, Seconds: out.Seconds, EventsPerSec: float64(out.Events-out.Resumed) / out.Seconds,
		LatencyUs: Latency{us(50), us(95), us(99), float64(out.Latency.Max()) / 1e3}, HeldMax: out.HeldMax, Resumed: out.Resumed, Checkpoints: out.Checkpoints, Recoveries: out.Recoveries,
		StateHash: out.State.String(), ResultsHash: out.Results.String(), Requests: out.Reports,
	}
}

// Text is the result for people.
func (r *NodesResult) Text() string {
	var b strings.Builder
	percent := func(n int) float64 { return 100 * float64(n) / float64(max(1, r.Events)) }
	fmt.Fprintf(&b, "%s under %s on %d nodes: %d events in %s = %s events/s\n", r.Workload, r.Strategy, r.Nodes, r.Events,
		time.Duration(r.Seconds*1e9).Round(10*time.Microsecond), Thousands(r.EventsPerSec))
	fmt.Fprintf(&b, "  committed    %d (%.1f %%), aborted %d (%.1f %%)\n", r.Committed, percent(r.Committed), r.Aborted, percent(r.Aborted))
	fmt.Fprintf(&b, "  batches      %d of up to %d events, %d workers a node, at most %d transactions waiting for rows\n", r.Batches, r.Batch, r.Workers, r.HeldMax)
	fmt.Fprintf(&b, "  latency      p50 %.0f us, p95 %.0f us, p99 %.0f us, max %.0f us\n", r.LatencyUs.P50, r.LatencyUs.P95, r.LatencyUs.P99, r.LatencyUs.Max)
	if r.Checkpoints > 0 || r.Resumed > 0 {
		fmt.Fprintf(&b, "  state        %d checkpoints, %d events of a run before this one, gone on %d times after a process died\n", r.Checkpoints, r.Resumed, r.Recoveries)
	}
	for _, q := range r.Requests {
		fmt.Fprintf(&b, "  request %-6s %s\n", q.Request.Name, q.Text())
	}
	if len(r.Quality) > 0 {
		fmt.Fprintf(&b, "  quality      %.2f, second by second\n", r.Quality)
	}
	if r.Verified {
		fmt.Fprintf(&b, "  verified     state and results are those of a serial run\n")
	}
	fmt.Fprintf(&b, "  state hash   %s\n  results hash %s\n", r.StateHash, r.ResultsHash)
	return b.String()
}
