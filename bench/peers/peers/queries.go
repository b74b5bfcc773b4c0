package peers

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/storage/window"
	"github.com/heddle-stream/heddle/workloads/nexmark"
)

// WindowQueries are the queries of NEXMark that keep much in windows.
const WindowQueries = "q5,q5-append,q7,q7-session,q8,q11,q11-median,q12"

// QueryRun is what a query came to with Heddle's stores and with those of Pebble, below the same operators.
type QueryRun struct {
	Query        string  `json:"query"`
	Events       int64   `json:"events"`
	StateBytes   int64   `json:"state_bytes"` // that Heddle's stores had in memory at most, without a limit
	LimitBytes   int64   `json:"limit_bytes"` // of memory for windows in both runs
	WrittenBytes int64   `json:"written_bytes"`
	HeddlePerSec float64 `json:"heddle_events_per_sec"`
	PebblePerSec float64 `json:"pebble_events_per_sec"`
	Ratio        float64 `json:"heddle_over_pebble"`
	// LoopRatio is Heddle's throughput over that of the model's loop over maps, all in memory, on one processor.
	LoopRatio float64 `json:"heddle_over_loop"`
}

// QueryParams are the input of the queries.
type QueryParams struct {
	Events, Rate, Reps int
}

// statePart is of the state the part that there is memory for.
const statePart = 4

// CompareQueries runs some queries, each with all of its state in memory, verified; then with memory for a quarter of
// it, with Heddle's stores and with Pebble's in turns. It yields the fastest runs. Results that differ are an error.
func CompareQueries(ctx context.Context, names string, p QueryParams, yield func(QueryRun) error) error {
	found, err := nexmark.Program.Find(names)
	if err != nil {
		return err
	}
	for _, q := range found {
		c, err := nexmark.Program.Config(map[string]string{"rate": fmt.Sprint(p.Rate)})
		if err != nil {
			return err
		}
		c.Events, c.Seed = p.Events, 1
		r, err := compareQuery(ctx, bench.JobSpec{Program: &nexmark.Program, Job: q.Name, Config: c}, p.Reps)
		if err == nil {
			err = yield(*r)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", q.Name, err)
		}
	}
	return nil
}

func compareQuery(ctx context.Context, s bench.JobSpec, reps int) (*QueryRun, error) {
	s.Verify = true
	s.Options.Env.MemoryLimit = 8 << 30
	whole, err := bench.RunJob(ctx, s)
	if err != nil {
		return nil, err
	}
	s.Verify = false
	stores := len(whole.Metrics.Stores) * job.Partitions
	r := &QueryRun{Query: s.Job, Events: whole.Events, StateBytes: whole.WindowBytes}
	if r.LimitBytes, err = enough(ctx, s, max(whole.WindowBytes/statePart, int64(stores)*window.LimitMin)); err != nil {
		return nil, err
	}
	s.Options.Env.MemoryLimit = r.LimitBytes
	for range reps {
		ours, err := bench.RunJob(ctx, s)
		if err != nil {
			return nil, err
		}
		theirs, err := withPebble(ctx, s)
		if err != nil {
			return nil, err
		}
		if ours.ResultsHash != whole.ResultsHash || theirs.ResultsHash != whole.ResultsHash {
			return nil, fmt.Errorf("results with %d bytes of memory: %s, with Pebble %s, with all in memory %s", r.LimitBytes, ours.ResultsHash, theirs.ResultsHash, whole.ResultsHash)
		}
		r.WrittenBytes = ours.WrittenBytes
		r.HeddlePerSec, r.PebblePerSec = max(r.HeddlePerSec, ours.EventsPerSec), max(r.PebblePerSec, theirs.EventsPerSec)
	}
	r.Ratio = r.HeddlePerSec / r.PebblePerSec
	r.LoopRatio = r.HeddlePerSec / (whole.EventsPerSec / whole.SerialLoopRatio)
	return r, nil
}

// enough returns the limit, or the first double of it that suffices for windows as such, without their contents.
func enough(ctx context.Context, s bench.JobSpec, limit int64) (int64, error) {
	for {
		s.Options.Env.MemoryLimit = limit
		if _, err := bench.RunJob(ctx, s); !errors.Is(err, window.ErrTooMany) {
			return limit, err
		}
		limit *= 2
	}
}

// withPebble runs a job whose windows are in Pebble.
func withPebble(ctx context.Context, s bench.JobSpec) (*bench.JobResult, error) {
	dir, err := os.MkdirTemp("", "peers-")
	if err != nil {
		return nil, err
	}
	p, err := OpenPebbleStores(dir, s.Options.Env.MemoryLimit)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.Options.Env.Stores = p
	r, err := bench.RunJob(ctx, s)
	return r, errors.Join(err, p.Close(), os.RemoveAll(dir))
}
