package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/source"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/trace"
	"github.com/heddle-stream/heddle/txn"
)

func (e *env) recordCommand() *cobra.Command {
	return e.perProgram("record", "Run a workload and record its input", "Run a workload and write its state at the start, its events and its batches to a trace.",
		func(c *cobra.Command, p *program.Program) {
			f := &runFlags{}
			f.inputFlags(c.Flags(), p)
			f.engineFlags(c.Flags())
			f.strategyFlag(c.Flags())
			f.eventFlags(c.Flags())
			output := c.Flags().StringP("output", "o", "", "file to write: a trace, or the events alone if it ends in .jsonl or .bin")
			shrink := c.Flags().Bool("minimize", false, "record as few events as still make a run fail that is compared with the serial model")
			c.RunE = func(c *cobra.Command, _ []string) error {
				f.stdin = c.InOrStdin()
				s, err := f.spec(p)
				if err != nil {
					return err
				}
				if *output == "" {
					return usagef("-o TRACE is missing: the file to write")
				}
				if !source.CanRecord(*output) && source.Known(*output) {
					return usagef("-o %s: events are written as .jsonl or .bin, not compressed", *output)
				}
				if *shrink {
					return e.shrink(s, *output, f.json)
				}
				return e.record(s, *output, f.json)
			}
		})
}

// record runs a program and writes the trace of it.
func (e *env) record(s bench.Spec, path string, asJSON bool) error {
	var r *bench.Result
	interrupted := false
	err := writeWhole(path, func(file *os.File) error {
		rec := &recording{file: file, path: path, spec: s, wrap: s.Wrap}
		s.Wrap, s.Options.Digests = rec.start, true
		var failed error
		ctx, cancel := context.WithCancel(e.ctx) // a disk that is full is no reason to run to the end
		defer cancel()
		s.Options.Listener.BatchDone = func(b engine.BatchInfo) {
			if failed = rec.recorder.Batch(b.Events, b.Digests, trace.Point{Events: b.After.Events, LastTime: b.After.LastTime, Results: b.After.Results}); failed != nil {
				cancel()
			}
		}
		var err error
		r, err = bench.Run(ctx, s)
		if failed != nil {
			return fmt.Errorf("writing %s: %w", path, failed)
		}
		if interrupted = engine.Interrupted(err); r == nil || err != nil && !interrupted {
			return err
		}
		return rec.recorder.Close(r.State, r.Metrics.ResultsHash)
	})
	if err != nil {
		return err
	}
	if err := e.print(r, r.Text()+fmt.Sprintf("  written      %s, %d batches\n", path, r.Metrics.Batches), asJSON); err != nil {
		return err
	}
	if interrupted {
		e.tell("interrupted after %d events, which are in %s", r.Events, path)
		return errInterrupted
	}
	return nil
}

// writeWhole writes to a temporary file beside and renames it when it is whole: a
// failure leaves nothing that looks like the file.
func writeWhole(path string, write func(f *os.File) error) error {
	if stat, err := os.Stat(path); err == nil && !stat.Mode().IsRegular() {
		return usagef("-o %s: it is there and not a file", path)
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return usagef("-o %s: %w", path, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return usageError{err}
	}
	// After the rename there is nothing left to remove.
	defer func() { _ = os.Remove(tmp.Name()) }()
	defer tmp.Close()
	if err := write(tmp); err != nil {
		return err
	}
	failed := tmp.Chmod(0o644)
	if failed == nil {
		failed = tmp.Sync()
	}
	if failed == nil {
		failed = tmp.Close()
	}
	if failed == nil {
		failed = os.Rename(tmp.Name(), path)
	}
	if failed != nil {
		return fmt.Errorf("writing %s: %w", path, failed)
	}
	return nil
}

type recording struct {
	file     *os.File
	path     string // of what the file becomes
	spec     bench.Spec
	wrap     func(*program.Instance) error // of the spec
	recorder recorder
}

// recorder is a source that writes what it passes on.
type recorder interface {
	txn.Source
	Batch(events int, digests []uint32, at trace.Point) error
	Close(state, results storage.Hash) error
}

// eventsOnly is a recorder of a format that has events only.
type eventsOnly struct{ *source.Recorder }

// Batch implements [recorder].
func (r eventsOnly) Batch(events int, _ []uint32, _ trace.Point) error {
	return r.Recorder.Batch(events)
}

func (r *recording) start(in *program.Instance) error {
	if r.wrap != nil {
		if err := r.wrap(in); err != nil {
			return err
		}
	}
	if source.CanRecord(r.path) {
		r.recorder = eventsOnly{source.NewRecorder(r.file, r.path, in.App, in.Source)}
		in.Source = r.recorder
		return nil
	}
	h := trace.Describe(in.App)
	h.Program, h.Params, h.Seed, h.Input = r.spec.Program.Name, r.spec.Params, r.spec.Seed, filepath.Base(r.spec.Input)
	if r.spec.Input == "" {
		h.Input = ""
	}
	w, err := trace.NewWriter(r.file, h)
	if err != nil {
		return err
	}
	if err := w.State(in.App); err != nil {
		return err
	}
	r.recorder = trace.NewRecorder(w, in.App, in.Source)
	in.Source = r.recorder
	return nil
}

// shrink records as few events as make a run fail.
func (e *env) shrink(s bench.Spec, path string, asJSON bool) error {
	failing, err := bench.Failure(e.ctx, s)
	if err != nil {
		return err
	}
	if failing == nil {
		return fmt.Errorf("%s does not fail: outcomes, values read, results and final state equal the serial model's; nothing is written", s.Program.Name)
	}
	fmt.Fprintf(e.err, "it fails: %v\n", failing.Err)
	failing.Shrink(e.ctx, func(left int) { fmt.Fprintf(e.err, "it fails with %d of %d events\n", left, failing.Events) })
	s.Wrap = func(in *program.Instance) error {
		in.Source, in.Check, in.Notes = failing.Source(), nil, nil
		return nil
	}
	err = writeWhole(path, func(file *os.File) error {
		return recordFailing(e.ctx, &recording{file: file, path: path, spec: s, wrap: s.Wrap}, failing.Left())
	})
	if err != nil {
		return err
	}
	return e.print(map[string]any{"trace": path, "events": failing.Left(), "of": failing.Events, "runs": failing.Runs, "failure": failing.Err.Error()},
		fmt.Sprintf("%s: %d of %d events, after %d runs\n  %v\n  %s replay %s --verify\n", path, failing.Left(), failing.Events, failing.Runs, failing.Err, e.name, path), asJSON)
}

// recordFailing writes all events as one batch, with the hashes of a run that nobody
// compares, as far as it comes.
func recordFailing(ctx context.Context, rec *recording, events int) error {
	s := rec.spec
	s.Wrap, s.Options.Verify, s.Options.Batch = rec.start, false, max(1, events)
	r, err := bench.Run(context.WithoutCancel(ctx), s)
	if r == nil {
		return err
	}
	if err := rec.recorder.Batch(events, nil, trace.Point{}); err != nil {
		return err
	}
	return rec.recorder.Close(r.State, r.Metrics.ResultsHash)
}
