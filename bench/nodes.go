package bench

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
)

// NodesSpec is what to run on several nodes, as far as it is not in the Spec.
type NodesSpec struct {
	Nodes    int
	Runtime  cluster.Runtime
	Box      *cluster.Mailbox // what nodes send to control
	LinkRate float64          // bytes per second, 0 if unknown
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
	HeldMax      int              `json:"held_max"` // transactions that waited for rows at one time
	StateHash    string           `json:"state_hash"`
	ResultsHash  string           `json:"results_hash"`
	Requests     []cluster.Report `json:"requests,omitempty"`
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
	o := cluster.JobOptions{Nodes: n.Nodes, Batch: s.Options.Batch, Interval: s.Options.Linger, LinkRate: n.LinkRate}
	if rate := s.Options.Rate; rate > 0 {
		o.Pace = func(seconds float64) float64 { return rate * seconds }
	}
	j, err := cluster.NewJob(in.App, in.Source, o, n.Runtime, n.Box)
	if err != nil {
		return nil, err
	}
	if n.Began != nil {
		n.Began(j)
	}
	out, err := j.Run(ctx)
	return newNodesResult(s, n, out), err
}

func newNodesResult(s Spec, n NodesSpec, out *cluster.Outcome) *NodesResult {
	us := func(q float64) float64 { return float64(out.Latency.ValueAtPercentile(q)) / 1e3 }
	return &NodesResult{
		Workload: s.Program.Name, Strategy: s.Options.Strategy, Nodes: n.Nodes, Workers: s.Options.Workers, Batch: s.Options.Batch, Batches: out.Batches,
		Events: out.Events, Committed: out.Committed, Aborted: out.Events - out.Committed, Seconds: out.Seconds, EventsPerSec: float64(out.Events) / out.Seconds,
		LatencyUs: Latency{us(50), us(95), us(99), float64(out.Latency.Max()) / 1e3}, HeldMax: out.HeldMax,
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
	for _, q := range r.Requests {
		fmt.Fprintf(&b, "  request %-6s %s\n", q.Request.Name, q.Text())
	}
	fmt.Fprintf(&b, "  state hash   %s\n  results hash %s\n", r.StateHash, r.ResultsHash)
	return b.String()
}
