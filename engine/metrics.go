package engine

import (
	"fmt"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// Metrics is the account of a run.
type Metrics struct {
	Strategy string
	Workers  int
	Batch    int
	Batches  int
	Events   int // since the beginning, before a restart included
	Resumed  int // of them in the checkpoint with which this process began
	Replayed int // and in the log behind it, run again by this process
	// RecoverySeconds is how long it took to load the checkpoint and to do the log again.
	RecoverySeconds float64
	Committed       int
	Aborted         int
	Discarded       int // what became no event, and events that plans rejected
	Ops             int // operations listed by the plans of executed events
	Redone          int // transactions run again because of aborts or computed keys
	Moved           int // computed keys that were not the ones foreseen
	Steals          int64
	Kept            int // versions that windows need after the last batch
	KeptMax         int // and the most after any batch
	// Seconds is processing time: waiting for the source is not in it.
	Seconds     float64
	Latency     *hdrhistogram.Histogram // ns from hand-over to release
	Breakdown   Breakdown
	Strategies  map[string]int // batches by strategy
	ResultsHash storage.Hash
	Verified    bool
	ChoosingNs  int64  // spent on statistics and on choosing, part of Seconds
	Mallocs     uint64 // allocations of the whole process during the run
	// Spilled is the rows that are not in memory at the end, with how many left it and
	// came back.
	Spilled txn.RowTraffic
}

// Breakdown tells where the time went, in ns of wall time for plan, build and
// install, in ns summed over the workers for the others.
type Breakdown struct {
	Plan    int64 `json:"plan"`
	Build   int64 `json:"build"`
	Explore int64 `json:"explore"` // finding what to run next
	Useful  int64 `json:"useful"`  // in operations
	Abort   int64 `json:"abort"`   // resetting what saw an aborted transaction
	Wait    int64 `json:"wait"`    // without work
	Install int64 `json:"install"` // results included
}

func newMetrics(o *Options) Metrics {
	return Metrics{
		Strategy: o.Strategy, Workers: o.Workers, Batch: o.Batch,
		Latency: hdrhistogram.New(1000, 600e9, 3), Strategies: map[string]int{},
	}
}

// EventsPerSec returns the throughput.
func (m *Metrics) EventsPerSec() float64 {
	if m.Seconds == 0 {
		return 0
	}
	return float64(m.Events-m.Resumed) / m.Seconds
}

// String returns a short table.
func (m *Metrics) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "events %d, committed %d, aborted %d, in %d batches\n", m.Events, m.Committed, m.Aborted, m.Batches)
	fmt.Fprintf(&b, "%.3f s, %.0f events/s, %d workers, strategy %s\n", m.Seconds, m.EventsPerSec(), m.Workers, m.Strategy)
	if m.Latency.TotalCount() > 0 {
		fmt.Fprintf(&b, "latency us: p50 %d, p95 %d, p99 %d, max %d\n", m.latencyMicros(50), m.latencyMicros(95), m.latencyMicros(99), m.Latency.Max()/1000)
	}
	return b.String()
}

func (m *Metrics) latencyMicros(q float64) int64 { return m.Latency.ValueAtPercentile(q) / 1000 }
