package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"text/tabwriter"

	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/program"
)

// JobSpec is a job to be run.
type JobSpec struct {
	Program *job.Program
	Job     string
	Config  *program.Config
	Options job.Options
	Batch   int // 0 for the default
	Verify  bool
	Output  string // a file that gets the results, or ""
	// MemoryLimit is about what the process may take, in bytes: contents of windows get
	// half of it. 0 for no limit.
	MemoryLimit int64
}

// JobResult is the account of a run of a job, as `--json` prints it.
type JobResult struct {
	Workload      string  `json:"workload"`
	Workers       int     `json:"workers"`
	Batch         int     `json:"batch"`
	Events        int64   `json:"events"`
	Resumed       int64   `json:"resumed"` // events done by processes before
	Late          int64   `json:"late"`
	Far           int64   `json:"far"`
	Seconds       float64 `json:"seconds"`
	EventsPerSec  float64 `json:"events_per_sec"`
	ReadSeconds   float64 `json:"read_seconds"`
	KeepSeconds   float64 `json:"keep_seconds"` // what checkpoints took
	Checkpoints   int64   `json:"checkpoints"`
	Results       int64   `json:"results"`
	ResultsHash   string  `json:"results_hash"`
	Fires         int64   `json:"fires"`
	WindowBytes   int64   `json:"window_bytes_max"` // of contents of windows in memory
	DiskBytes     int64   `json:"disk_bytes_max"`
	UserBytes     int64   `json:"user_bytes"` // keys and values that were handed to stores
	WrittenBytes  int64   `json:"written_bytes"`
	ReadBytes     int64   `json:"read_bytes"`
	PeakRSSBytes  int64   `json:"peak_rss_bytes"`
	Verified      bool    `json:"verified"`
	NsPerEventCPU float64 `json:"ns_per_event_per_core"`
	// SerialLoopRatio is the throughput over that of the model, a loop over all events in memory on one
	// processor; 0 if it was not run.
	SerialLoopRatio float64 `json:"serial_loop_ratio"`

	// Notes is what else there is to tell, for people.
	Notes []string `json:"notes,omitempty"`

	Metrics job.Metrics `json:"-"`
}

// RunJob runs a job. The result is valid up to where the run came, also with an error.
func RunJob(ctx context.Context, s JobSpec) (*JobResult, error) {
	in, err := s.Program.Open(s.Job, s.Config, job.Wanted{Verify: s.Verify, Output: s.Output})
	if err != nil {
		return nil, err
	}
	o := s.Options
	if o.Passes == nil {
		o.Passes = job.Passes()
	}
	if s.Batch > 0 {
		o.Passes = append(o.Passes[:len(o.Passes):len(o.Passes)], job.Batch(s.Batch))
	}
	if s.MemoryLimit > 0 {
		o.Env.MemoryLimit = s.MemoryLimit / 2
		if !s.Verify {
			before := debug.SetMemoryLimit(s.MemoryLimit)
			defer func() { debug.SetMemoryLimit(before) }()
		}
	}
	m, err := job.Run(ctx, in.Plan, o)
	s.Options = o
	r := newJobResult(s, m)
	r.Results, r.ResultsHash = in.Results()
	if in.Close != nil {
		notes, failed := in.Close()
		r.Notes = append(r.Notes, notes...)
		err = errors.Join(err, failed)
	}
	if err == nil && s.Verify {
		if in.Verify == nil {
			return r, errors.New("the job has no model to verify it with")
		}
		nanos, err := in.Verify()
		if err != nil {
			return r, &CheckError{err}
		}
		r.Verified = true
		if r.Resumed == 0 && m.Seconds > 0 {
			r.SerialLoopRatio = float64(nanos) / 1e9 / m.Seconds
		}
	}
	return r, err
}

func newJobResult(s JobSpec, m job.Metrics) *JobResult {
	r := &JobResult{
		Workload: s.Program.Name + "/" + s.Job, Workers: m.Workers, Events: m.Events, Late: m.Late, Far: m.Far,
		Seconds: m.Seconds, EventsPerSec: m.EventsPerSec(), ReadSeconds: m.ReadSeconds, PeakRSSBytes: peakRSS(), Metrics: m,
		Resumed: m.Resumed, KeepSeconds: m.KeepSeconds, Checkpoints: m.Checkpoints,
	}
	if n := m.Events - m.Resumed; n > 0 {
		r.NsPerEventCPU = m.Seconds * 1e9 * float64(m.Workers) / float64(n)
	}
	if m.Checkpoints > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d checkpoints in %.3f s", m.Checkpoints, m.KeepSeconds))
	}
	if m.Resumed > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d of the events were done before", m.Resumed))
	}
	if m.Plan != nil {
		for _, v := range m.Plan.Vertices() {
			if v.Kind == plan.Source {
				r.Batch = plan.BatchSize.Of(m.Plan, v.ID)
			}
		}
	}
	for _, c := range m.Vertices {
		r.Fires += c.Fires.Load()
	}
	for _, st := range m.Stores {
		r.WindowBytes += st.MemoryBytesMax
		r.DiskBytes += st.DiskBytesMax
		r.UserBytes += st.UserBytes
		r.WrittenBytes += st.WrittenBytes
		r.ReadBytes += st.ReadBytes
	}
	r.WindowBytes = min(r.WindowBytes, m.WindowLimit) // not all had their most at once
	if asked := s.Options.Env.MemoryLimit; asked > 0 && m.WindowLimit > asked+asked/16 {
		r.Notes = append(r.Notes, fmt.Sprintf("contents of windows had up to %.1f MiB of memory: the stores of the job need that much to work", float64(m.WindowLimit)/(1<<20)))
	}
	return r
}

// JobTable writes a line for each result.
func JobTable(w io.Writer, results []*JobResult) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "job\tevents/s\tns per event and core\tover loop\tlate\tresults\twindows fired\tin memory\twritten\tverified\t")
	for _, r := range results {
		verified, loop := "-", "-"
		if r.Verified {
			verified, loop = "equal", fmt.Sprintf("%.2f", r.SerialLoopRatio)
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%s\t%d\t%d\t%d\t%.1f MiB\t%.1f MiB\t%s\t\n", r.Workload, r.EventsPerSec, r.NsPerEventCPU, loop, r.Late, r.Results, r.Fires,
			float64(r.WindowBytes)/(1<<20), float64(r.WrittenBytes)/(1<<20), verified)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		for _, note := range r.Notes {
			if _, err := fmt.Fprintf(w, "%s: %s\n", r.Workload, note); err != nil {
				return err
			}
		}
	}
	return nil
}
