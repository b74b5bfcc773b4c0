package cli

import (
	"context"
	"errors"
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
			output := c.Flags().StringP("output", "o", "", "file to write: a trace, or the events alone if it ends in .jsonl or .bin")
			c.RunE = func(*cobra.Command, []string) error {
				s, err := f.spec(p)
				if err != nil {
					return err
				}
				if *output == "" {
					return usagef("-o TRACE is missing: the file to write")
				}
				return e.record(s, *output, f.json)
			}
		})
}

// record writes the trace to a temporary file beside and renames it when it is
// whole: a failed recording leaves nothing that looks like a trace.
func (e *env) record(s bench.Spec, path string, asJSON bool) error {
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
	rec := &recording{file: tmp, path: path, spec: s}
	s.Wrap = rec.start
	var failed error
	ctx, cancel := context.WithCancel(e.ctx) // a disk that is full is no reason to run to the end
	defer cancel()
	s.Options.Listener.BatchDone = func(b engine.BatchInfo) {
		if failed = rec.recorder.Batch(b.Events); failed != nil {
			cancel()
		}
	}
	r, err := bench.Run(ctx, s)
	if failed != nil {
		return fmt.Errorf("writing %s: %w", path, failed)
	}
	if r == nil {
		return err
	}
	interrupted := engine.Interrupted(err)
	if err != nil && !interrupted {
		return err
	}
	failed = rec.recorder.Close(r.State, r.Metrics.ResultsHash)
	if failed == nil {
		failed = tmp.Chmod(0o644)
	}
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
	if err := e.print(r, r.Text()+fmt.Sprintf("  written      %s, %d batches\n", path, r.Metrics.Batches), asJSON); err != nil {
		return err
	}
	if interrupted {
		fmt.Fprintf(e.err, "heddle: interrupted after %d events, which are in %s\n", r.Events, path)
		return errInterrupted
	}
	return nil
}

type recording struct {
	file     *os.File
	path     string // of what the file becomes
	spec     bench.Spec
	recorder recorder
}

// recorder is a source that writes what it passes on.
type recorder interface {
	txn.Source
	Batch(events int) error
	Close(state, results storage.Hash) error
}

func (r *recording) start(in *program.Instance) error {
	if source.CanRecord(r.path) {
		r.recorder = source.NewRecorder(r.file, r.path, in.App, in.Source)
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
	r.recorder = trace.NewRecorder(w, in.Source)
	in.Source = r.recorder
	return nil
}

// openTrace opens a trace and finds the program that it was recorded from.
func (e *env) openTrace(path string) (*trace.Reader, *program.Program, func(), error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, nil, usageError{err}
	}
	t, err := trace.NewReader(file, path)
	if err != nil {
		file.Close()
		return nil, nil, nil, usageIfCorrupt(err)
	}
	done := func() {
		t.Close()
		file.Close()
	}
	for i := range e.programs {
		if e.programs[i].Name == t.Header.Program {
			return t, &e.programs[i], done, nil
		}
	}
	done()
	return nil, nil, nil, usagef("%s was recorded from %q, which this binary does not have: `workloads` lists what it has", path, t.Header.Program)
}

// usageIfCorrupt makes a broken trace an error of the input.
func usageIfCorrupt(err error) error {
	var corrupt *trace.CorruptError
	if errors.As(err, &corrupt) {
		return usageError{err}
	}
	return err
}

func (e *env) replayCommand() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use: "replay TRACE", Short: "Run a recorded trace again and compare the hashes",
		Long: "Run a recorded trace under any strategy, worker count and batch size.\nThe final state and the results must equal the recorded ones. Batches are those recorded unless --batch is given.",
		Args: oneArg("a trace"),
	}
	f.engineFlags(c.Flags())
	f.strategyFlag(c.Flags())
	c.RunE = func(_ *cobra.Command, args []string) error {
		o, err := f.options()
		if err != nil {
			return err
		}
		return e.replay(args[0], o, c.Flags().Changed("batch"), f.json)
	}
	return c
}

func (e *env) replay(path string, o engine.Options, cutAnew, asJSON bool) error {
	t, p, done, err := e.openTrace(path)
	if err != nil {
		return err
	}
	defer done()
	s := bench.Spec{Program: p, Params: t.Header.Params, Seed: t.Header.Seed, Options: o, Wrap: replayed(t, cutAnew)}
	r, err := bench.Run(e.ctx, s)
	if r == nil || err != nil && !engine.Interrupted(err) {
		return usageIfCorrupt(err)
	}
	if err := e.print(r, r.Text(), asJSON); err != nil {
		return err
	}
	if engine.Interrupted(err) {
		fmt.Fprintf(e.err, "heddle: interrupted after %d events\n", r.Events)
		return errInterrupted
	}
	want := t.Footer
	if r.StateHash != want.StateHash || r.ResultsHash != want.ResultsHash || r.Events != want.Events {
		return fmt.Errorf("replay differs from the recording: events %d and %d, state %s and %s, results %s and %s",
			r.Events, want.Events, r.StateHash, want.StateHash, r.ResultsHash, want.ResultsHash)
	}
	if !asJSON {
		e.printf("  replay       equals the recording\n")
	}
	return nil
}

// replayed makes an instance start from a trace's state and take its events.
// The program's check is about its own input and does not apply.
func replayed(t *trace.Reader, cutAnew bool) func(*program.Instance) error {
	return func(in *program.Instance) error {
		if err := t.Fits(in.App); err != nil {
			return usageError{err}
		}
		if err := t.LoadState(in.App); err != nil {
			return err
		}
		in.Source, in.Check, in.Notes = t.Source(in.App, cutAnew), nil, nil
		return nil
	}
}
