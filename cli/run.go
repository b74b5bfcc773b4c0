package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/program"
)

func (e *env) printf(format string, args ...any) { fmt.Fprintf(e.out, format, args...) }

func (e *env) runCommand() *cobra.Command {
	run := e.perProgram("run", "Run a workload", "Run a workload and print what came of it.", func(c *cobra.Command, p *program.Program) {
		f := &runFlags{}
		f.inputFlags(c.Flags(), p)
		f.engineFlags(c.Flags())
		f.strategyFlag(c.Flags())
		f.eventFlags(c.Flags())
		f.durableFlags(c.Flags())
		nodes := &nodesFlags{}
		nodes.add(c.Flags())
		why := c.Flags().Bool("explain", false, "print each change of strategy under auto: what was measured, predicted, chosen, and what it took")
		c.RunE = func(c *cobra.Command, _ []string) error {
			f.stdin = c.InOrStdin()
			s, err := f.spec(p)
			if err != nil {
				return err
			}
			if on, err := nodes.on(f); on || err != nil {
				if err != nil {
					return err
				}
				return e.runNodes(s, nodes, f.json)
			}
			if *why {
				out := e.out
				if f.json {
					out = e.err
				}
				s.Options.Listener.Decided = func(d engine.Decision) { explain(out, d) }
			}
			return e.run(s, f.json)
		}
	})
	for i := range e.jobs {
		run.AddCommand(e.runJobCommand(&e.jobs[i]))
	}
	return run
}

// run runs a program with progress and prints the account of it.
func (e *env) run(s bench.Spec, asJSON bool) error {
	var bar *progress
	wrap := s.Wrap
	s.Wrap = func(in *program.Instance) error {
		if wrap != nil {
			if err := wrap(in); err != nil {
				return err
			}
		}
		bar = e.progress(in.Total, "events")
		return nil
	}
	s.Options.Listener.BatchDone = func(b engine.BatchInfo) { bar.add(b.Events) }
	r, err := bench.Run(e.ctx, s)
	bar.close()
	if r == nil {
		return err
	}
	if err == nil || engine.Interrupted(err) {
		if perr := e.print(r, r.Text(), asJSON); perr != nil {
			return perr
		}
	}
	if engine.Interrupted(err) {
		e.tell("interrupted after %d events", r.Events)
		return errInterrupted
	}
	return err
}

// print prints a value as JSON, or the text.
func (e *env) print(v any, text string, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(e.out).Encode(v)
	}
	_, err := fmt.Fprint(e.out, text)
	return err
}

// progress is a bar on a terminal and nothing elsewhere. A nil one does nothing.
type progress struct{ bar *progressbar.ProgressBar }

func (e *env) progress(total int, what string) *progress {
	f, ok := e.err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	if total == 0 {
		total = -1
	}
	return &progress{progressbar.NewOptions(total, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))}
}

func (p *progress) add(n int) {
	if p != nil {
		_ = p.bar.Add(n) // a terminal that went away is no reason to stop
	}
}

func (p *progress) close() {
	if p != nil {
		_ = p.bar.Finish()
	}
}

func (e *env) compareCommand() *cobra.Command {
	return e.perProgram("compare", "Compare strategies on a workload", "Run a workload under several strategies in turn, on the same input.",
		func(c *cobra.Command, p *program.Program) {
			f := &runFlags{}
			f.inputFlags(c.Flags(), p)
			f.engineFlags(c.Flags())
			strategies := c.Flags().String("strategies", "all", "all, or names separated by commas")
			reps := c.Flags().Int("reps", 3, "interleaved repetitions")
			report := c.Flags().String("report", "", "directory for a report with plots, one HTML page")
			c.RunE = func(*cobra.Command, []string) error {
				f.strategy = "auto"
				s, err := f.spec(p)
				if err != nil {
					return err
				}
				names, err := strategyList(*strategies)
				if err != nil {
					return err
				}
				if *reps < 1 || *reps > 1000 {
					return usagef("--reps %d: 1 to 1000 is allowed", *reps)
				}
				cmp := &bench.Comparison{Spec: s, Strategies: names, Reps: *reps, Verify: f.verify}
				return e.compare(cmp, *report, f.json)
			}
		})
}

func (e *env) compare(c *bench.Comparison, report string, asJSON bool) error {
	if report != "" { // before the work, not after it
		if err := os.MkdirAll(report, 0o755); err != nil {
			return usageError{err}
		}
	}
	bar := e.steps(&c.Progress)
	err := c.Run(e.ctx)
	bar.close()
	if engine.Interrupted(err) {
		e.tell("interrupted before the comparison was complete")
		return errInterrupted
	}
	if err != nil {
		return err
	}
	if asJSON {
		for i := range c.Rows {
			if err := bench.WriteLine(e.out, &c.Rows[i]); err != nil {
				return err
			}
		}
	} else {
		e.printf("%s", c.Table())
	}
	if report == "" {
		return nil
	}
	return e.writeReport(c, report)
}

func (e *env) writeReport(c *bench.Comparison, dir string) error {
	return e.writePage(dir, func(w io.Writer) error { return c.HTML(w, clock.Today()) })
}

// writePage writes the one page of a report.
func (e *env) writePage(dir string, write func(io.Writer) error) error {
	name := filepath.Join(dir, "index.html")
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	err = write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		fmt.Fprintln(e.err, "report: "+name)
	}
	return err
}

// steps shows the progress of something that tells its steps.
func (e *env) steps(report *func(done, total int, what string)) *progress {
	var bar *progress
	p := &progress{}
	*report = func(done, total int, what string) {
		if done == 0 {
			if bar = e.progress(total, what); bar != nil {
				p.bar = bar.bar
			}
		}
		if bar != nil {
			bar.bar.Describe(what)
			_ = bar.bar.Set(done)
		}
	}
	if f, ok := e.err.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return p
}

func (e *env) benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "bench EXPERIMENT", Short: "Run a named experiment, see `bench list`", Args: oneArg("an experiment, or list"),
	}
	scaleName := c.Flags().String("scale", "small", "small or full")
	asJSON := c.Flags().Bool("json", false, "print a JSON object for each point and strategy on standard output")
	plots := c.Flags().String("plot", "", "directory for SVG plots")
	c.RunE = func(_ *cobra.Command, args []string) error {
		scale, err := bench.ScaleNamed(*scaleName)
		if err != nil {
			return usageError{err}
		}
		var names []string
		for _, x := range bench.Experiments() {
			names = append(names, x.Name)
			switch args[0] {
			case "list":
				e.printf("%-12s %s\n", x.Name, x.About)
			case x.Name:
				return e.bench(e.ctx, x, scale, *asJSON, *plots)
			}
		}
		if args[0] == "list" {
			return nil
		}
		return usagef("unknown experiment %q: one of %v, or list", args[0], names)
	}
	return c
}

func (e *env) bench(ctx context.Context, x bench.Experiment, scale bench.Scale, asJSON bool, plots string) error {
	var lines []bench.Line
	var report func(int, int, string)
	bar := e.steps(&report)
	err := bench.RunExperiment(ctx, x, scale, e.programs, report, func(l bench.Line) error {
		lines = append(lines, l)
		if asJSON {
			return bench.WriteLine(e.out, l)
		}
		e.printf("%s", l.Text())
		return nil
	})
	bar.close()
	if engine.Interrupted(err) {
		e.tell("interrupted before the experiment was complete")
		return errInterrupted
	}
	if err != nil || plots == "" {
		return err
	}
	return bench.PlotLines(plots, x, lines)
}
