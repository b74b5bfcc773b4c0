package cli

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/bench/simulate"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/program"
)

// simulation is what the simulate command was asked for.
type simulation struct {
	events, batches, reps int
	workers, strategies   string
	report                string
	json, validate        bool
}

func (e *env) simulateCommand() *cobra.Command {
	var f simulation
	c := &cobra.Command{
		Use: "simulate TRACE", Short: "Predict from a trace how strategies scale with workers",
		Long: "Measure a recorded trace on one worker and predict the speed-up of each strategy over serial for any number of workers,\n" +
			"with the bounds that the graphs of its batches set. --validate runs 1 and 2 workers for real and prints the errors.",
		Args: oneArg("a trace"),
	}
	fs := c.Flags()
	fs.IntVar(&f.events, "events", 100_000, "events of the trace to use at most, in whole batches; 0: all")
	fs.IntVar(&f.batches, "batches", 4, "batches to simulate, spread over these events; 0: all")
	fs.StringVar(&f.workers, "workers", "1,2,4,8,16,32,64,128", "numbers of workers, separated by commas")
	fs.StringVar(&f.strategies, "strategies", "all", "all, or names separated by commas")
	fs.BoolVar(&f.validate, "validate", false, "run the engine with 1 and 2 workers, too, and print the errors of the prediction")
	fs.IntVar(&f.reps, "reps", 5, "interleaved repetitions of --validate")
	fs.StringVar(&f.report, "report", "", "directory for a report with a plot, one HTML page")
	fs.BoolVar(&f.json, "json", false, "print a JSON object for each strategy and number of workers on standard output")
	c.RunE = func(_ *cobra.Command, args []string) error {
		o, err := f.options(args[0])
		if err != nil {
			return err
		}
		return e.simulate(args[0], o, f)
	}
	return c
}

// options checks the flags.
func (f *simulation) options(path string) (simulate.Options, error) {
	o := simulate.Options{Trace: filepath.Base(path), Events: f.events, Batches: f.batches, Strategies: simulate.Strategies()}
	for _, n := range []struct {
		flag       string
		value, min int
	}{{"events", f.events, 0}, {"batches", f.batches, 0}, {"reps", f.reps, 1}} {
		if n.value < n.min {
			return o, usagef("--%s %d: %d or more is allowed", n.flag, n.value, n.min)
		}
	}
	for text := range strings.SplitSeq(f.workers, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > simulate.WorkersMax {
			return o, usagef("--workers %s: numbers from 1 to %d, separated by commas, are allowed", f.workers, simulate.WorkersMax)
		}
		o.Workers = append(o.Workers, n)
	}
	if f.strategies == "all" {
		return o, nil
	}
	var err error
	if o.Strategies, err = strategyList(f.strategies); err != nil {
		return o, err
	}
	for _, name := range o.Strategies {
		if name == "auto" {
			return o, usagef("--strategies auto: it chooses among others, name those")
		}
	}
	return o, nil
}

// validated returns the strategies of --validate: those asked for, else one of
// each way of scheduling.
func (f *simulation) validated(o simulate.Options) []string {
	if f.strategies == "all" {
		return []string{"ns-op-eager", "ns-chain-lazy", "bfs-op-eager", "dfs-chain-eager", "lock", "tstream"}
	}
	return o.Strategies
}

// simulate predicts, and prints what came of it.
func (e *env) simulate(path string, o simulate.Options, f simulation) error {
	_, _, done, err := e.openTrace(path) // before the work, not after it
	if err != nil {
		return err
	}
	done()
	if f.report != "" {
		if err := os.MkdirAll(f.report, 0o755); err != nil {
			return usageError{err}
		}
	}
	input := func() (*program.Instance, error) { return e.recorded(path) }
	bar := e.steps(&o.Progress)
	p, err := simulate.Predict(e.ctx, input, o)
	var checks []simulate.Check
	if err == nil && f.validate {
		checks, err = p.Validate(e.ctx, input, f.validated(o), 2, f.reps)
	}
	bar.close()
	if engine.Interrupted(err) {
		e.tell("interrupted before the simulation was complete")
		return errInterrupted
	}
	if err != nil {
		return usageIfCorrupt(err)
	}
	if err := e.printPrediction(p, checks, f); err != nil || f.report == "" {
		return err
	}
	return e.writePage(f.report, func(w io.Writer) error { return bench.SimulationHTML(w, p, checks, clock.Today()) })
}

func (e *env) printPrediction(p *simulate.Prediction, checks []simulate.Check, f simulation) error {
	if !f.json {
		e.printf("%s", p.Table())
		if f.validate {
			e.printf("\n%s", simulate.Checks(checks))
		}
		return nil
	}
	for i := range p.Points {
		if err := bench.WriteLine(e.out, &p.Points[i]); err != nil {
			return err
		}
	}
	for i := range checks {
		if err := bench.WriteLine(e.out, &checks[i]); err != nil {
			return err
		}
	}
	return nil
}

// recorded makes an instance that starts from a trace's state and takes its events.
func (e *env) recorded(path string) (*program.Instance, error) {
	t, p, done, err := e.openTrace(path)
	if err != nil {
		return nil, err
	}
	in, err := instanceOf(p, t.Header)
	if err == nil {
		err = replayed(t, false)(in)
	}
	if err != nil {
		done()
		return nil, err
	}
	inner := in.Close
	in.Close = func() error {
		done()
		if inner != nil {
			return inner()
		}
		return nil
	}
	return in, nil
}
