package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/trace"
)

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
	rp := &replaying{}
	c := &cobra.Command{
		Use: "replay TRACE", Short: "Run a recorded trace again and compare the hashes",
		Long: "Run a recorded trace under any strategy, worker count and batch size.\nThe final state and the results must equal the recorded ones. Batches are those recorded unless --batch is given.",
		Args: oneArg("a trace"),
	}
	f.engineFlags(c.Flags())
	f.strategyFlag(c.Flags())
	c.Flags().IntVar(&rp.until, "until", 0, "stop before the event with this number; 0: at the end")
	c.Flags().IntVar(&rp.from, "from", 0, "begin at the last recorded state that is not behind the event with this number")
	c.Flags().StringVar(&f.output, "output", "", "file that gets each result as a line of JSON")
	diff := c.Flags().String("diff", "", "another trace: run nothing, and name the first event in which they differ")
	c.RunE = func(_ *cobra.Command, args []string) error {
		o, err := f.options()
		if err != nil {
			return err
		}
		if *diff != "" {
			return e.diff(args[0], *diff, f.json)
		}
		if rp.from < 0 || rp.until < 0 || rp.until > 0 && rp.from >= rp.until {
			return usagef("--from %d --until %d: 0 or more is allowed, and until behind from", rp.from, rp.until)
		}
		if oneFile(args[0], f.output) {
			return usagef("--output is the trace, %s", args[0])
		}
		rp.cutAnew, rp.json = c.Flags().Changed("batch"), f.json
		return e.replay(args[0], o, rp)
	}
	return c
}

// replaying is how a trace is run again.
type replaying struct {
	from, until   int // event numbers, until 0 for the end
	cutAnew, json bool
}

func (e *env) replay(path string, o engine.Options, rp *replaying) error {
	t, p, done, err := e.openTrace(path)
	if err != nil {
		return err
	}
	defer done()
	s := bench.Spec{Program: p, Params: t.Header.Params, Seed: t.Header.Seed, Options: o}
	s.Wrap = func(in *program.Instance) error {
		at, err := rp.open(t, in)
		s.Options.Start = checkpoint.Point{Events: at.Events, LastTime: at.LastTime, Results: at.Results}
		return err
	}
	r, err := bench.RunPrepared(e.ctx, &s)
	if r == nil || err != nil && !engine.Interrupted(err) {
		return usageIfCorrupt(err)
	}
	if n := t.Footer.Events; err == nil && t.Footer.StateHash != "" && rp.from > n {
		return usagef("--from %d: the trace has %d events", rp.from, n)
	}
	if err := e.print(r, r.Text(), rp.json); err != nil {
		return err
	}
	if engine.Interrupted(err) {
		e.tell("interrupted after %d events", r.Events)
		return errInterrupted
	}
	want := t.Footer
	if rp.until > 0 && rp.until < want.Events || want.StateHash == "" {
		return nil // it did not come to the end
	}
	if r.StateHash != want.StateHash || r.ResultsHash != want.ResultsHash || r.Events != want.Events {
		return fmt.Errorf("replay differs from the recording: events %d and %d, state %s and %s, results %s and %s",
			r.Events, want.Events, r.StateHash, want.StateHash, r.ResultsHash, want.ResultsHash)
	}
	if !rp.json {
		e.printf("  replay       equals the recording\n")
	}
	return nil
}

// open makes an instance begin with a state of a trace and take its events.
// The program's check is about its own input and does not apply.
func (rp *replaying) open(t *trace.Reader, in *program.Instance) (at trace.Point, err error) {
	if err := t.Fits(in.App); err != nil {
		return at, usageError{err}
	}
	if rp.from == 0 {
		err = t.LoadState(in.App)
	} else {
		at, err = t.Seek(in.App, rp.from)
	}
	in.Source, in.Check, in.Notes = t.Source(in.App, rp.cutAnew), nil, nil
	if rp.until > 0 {
		in.Source = trace.First(in.Source, rp.until-at.Events)
	}
	return at, err
}

// replayed makes an instance start from a trace's state and take its events.
func replayed(t *trace.Reader, cutAnew bool) func(*program.Instance) error {
	return func(in *program.Instance) error {
		_, err := (&replaying{cutAnew: cutAnew}).open(t, in)
		return err
	}
}

// diff names the first event in which two traces differ.
func (e *env) diff(first, second string, asJSON bool) error {
	a, p, done, err := e.openTrace(first)
	if err != nil {
		return err
	}
	defer done()
	b, _, done, err := e.openTrace(second)
	if err != nil {
		return err
	}
	defer done()
	c, err := p.Config(a.Header.Params)
	if err != nil {
		return usageError{err}
	}
	in, err := p.New(c)
	if err != nil {
		return err
	}
	if err := errors.Join(a.Fits(in.App), b.Fits(in.App)); err != nil {
		return usageError{err}
	}
	d, err := trace.Diff(in.App, a, b)
	if err != nil {
		return usageIfCorrupt(err)
	}
	if d == nil {
		return e.print(struct {
			Equal bool `json:"equal"`
		}{true}, "the traces have the same events and results\n", asJSON)
	}
	if err := e.print(d, fmt.Sprintf("event %d: %s\n", d.Event, d.What), asJSON); err != nil {
		return err
	}
	return fmt.Errorf("%s and %s differ from event %d on", first, second, d.Event)
}
