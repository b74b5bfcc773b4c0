package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/schedule"
)

// jobFlags are the flags of a run of jobs.
type jobFlags struct {
	query    string
	events   int
	seed     uint64
	workers  int
	batch    int
	strategy string
	memory   byteSize
	verify   bool
	json     bool
	state    string
	output   string
	params   map[string]*string
}

func (f *jobFlags) add(fs *pflag.FlagSet, p *job.Program) {
	fs.StringVar(&f.query, "query", "all", "jobs to run, separated by commas, or all; see the command workloads")
	fs.IntVar(&f.events, "events", p.Events, "number of events")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of everything random")
	fs.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "goroutines that execute")
	fs.IntVar(&f.batch, "batch", plan.BatchSize.Default(), "events between two punctuations; unless it is given, the job begins so and looks for what is faster")
	fs.StringVar(&f.strategy, "strategy", "auto", "by which the transactions of a job are executed, see the command strategies")
	fs.Var(&f.memory, "memory-limit", "memory of the process, about, such as 256MiB; half of it is for contents of windows, others go to the directory for temporary files; 0: 1 GiB of contents")
	fs.BoolVar(&f.verify, "verify", false, "compare the results with those of a model, which computes them from all events at once")
	fs.StringVar(&f.state, "state", "", "directory in which each job is kept, in one of its name: a run that was killed or interrupted goes on there")
	fs.StringVar(&f.output, "output", "", "file that gets the results of one job as lines of JSON, each once also with --state")
	fs.BoolVar(&f.json, "json", false, "print one JSON object for each job on standard output and nothing else there")
	f.params = map[string]*string{}
	for _, param := range p.Params {
		f.params[param.Name] = fs.String(param.Name, param.Default, param.Usage)
		fs.Lookup(param.Name).Value = &paramValue{f.params[param.Name], param.Kind.String()}
	}
}

// leave leaves to the job what nobody asked for.
func (f *jobFlags) leave(fs *pflag.FlagSet) {
	if !fs.Changed("batch") {
		f.batch = 0
	}
	if !fs.Changed("strategy") {
		f.strategy = ""
	}
}

// config returns the program's configuration.
func (f *jobFlags) config(p *job.Program) (*program.Config, error) {
	values := map[string]string{}
	for name, value := range f.params {
		values[name] = *value
	}
	c, err := p.Config(values)
	switch {
	case err != nil:
		return nil, usageError{err}
	case f.events < 1:
		return nil, usagef("--events %d: 1 or more is allowed", f.events)
	case f.workers < 1 || f.workers > engine.WorkersMax:
		return nil, usagef("--workers %d: 1 to %d is allowed", f.workers, engine.WorkersMax)
	case f.batch < 1 || f.batch > engine.BatchMax:
		return nil, usagef("--batch %d: 1 to %d is allowed", f.batch, engine.BatchMax)
	case f.memory != 0 && int64(f.memory) < engine.MemoryLimitMin:
		return nil, usagef("--memory-limit %s: 0, or 32 MiB or more is allowed", &f.memory)
	}
	if _, err := schedule.Parse(f.strategy); err != nil {
		return nil, usagef("--strategy %s: %w", f.strategy, err)
	}
	c.Events, c.Seed = f.events, f.seed
	return c, nil
}

// runJobCommand runs the jobs of one program.
func (e *env) runJobCommand(p *job.Program) *cobra.Command {
	f := &jobFlags{}
	c := &cobra.Command{Use: p.Name, Short: p.About, Args: noArgs}
	f.add(c.Flags(), p)
	c.RunE = func(*cobra.Command, []string) error {
		config, err := f.config(p)
		if err != nil {
			return err
		}
		f.leave(c.Flags())
		jobs, err := p.Find(f.query)
		if err != nil {
			return usageError{err}
		}
		if f.output != "" && len(jobs) > 1 {
			return usagef("--output %s: one job has it, and --query %s are %d", f.output, f.query, len(jobs))
		}
		return e.runJobs(p, jobs, f, config)
	}
	return c
}

func (e *env) runJobs(p *job.Program, jobs []job.Named, f *jobFlags, config *program.Config) error {
	var results []*bench.JobResult
	for _, named := range jobs {
		bar := e.progress(f.events, named.Name)
		r, err := bench.RunJob(e.ctx, bench.JobSpec{
			Program: p, Job: named.Name, Config: config, Batch: f.batch, Verify: f.verify, MemoryLimit: int64(f.memory), Output: f.output,
			Options: f.options(p, named.Name, bar.add),
		})
		bar.close()
		if r != nil && (err == nil || engine.Interrupted(err)) {
			results = append(results, r)
			if f.json {
				if err := bench.WriteLine(e.out, r); err != nil {
					return err
				}
			}
		}
		if err != nil {
			if !f.json && len(results) > 0 {
				err = errors.Join(err, bench.JobTable(e.out, results))
			}
			if engine.Interrupted(err) {
				e.tell("interrupted in %s after %d events%s", named.Name, r.Events, f.goesOn())
				return errInterrupted
			}
			return fmt.Errorf("%s/%s: %w", p.Name, named.Name, err)
		}
	}
	if f.json {
		return nil
	}
	return bench.JobTable(e.out, results)
}

// options returns how to run a job.
func (f *jobFlags) options(p *job.Program, name string, done func(events int)) job.Options {
	o := job.Options{Workers: f.workers, BatchDone: done, Passes: job.Passes()}
	if f.strategy != "" {
		o.Passes = append(o.Passes, job.Strategy(f.strategy))
	}
	if f.state != "" {
		o.State = filepath.Join(f.state, name)
		o.Identity = identityOf(p.Name, f.seed, f.events, f.params)
		o.Identity["--verify"] = strconv.FormatBool(f.verify)
	}
	return o
}

// goesOn tells that the same command goes on, if it does.
func (f *jobFlags) goesOn() string {
	if f.state == "" {
		return ""
	}
	return ", which are kept: the same command goes on"
}

// planCommand shows plans of jobs.
func (e *env) planCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "plan", Short: "Show how a job is executed, and which pass decided it", Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q: one of %s", args[0], commandNames(c))
			}
			return c.Help()
		},
	}
	c.AddCommand(e.planShowCommand(), e.planExplainCommand())
	return c
}

func (e *env) planShowCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "show JOB", Short: "Show the plan of a job, such as nexmark/q5", Args: oneArg("a job, such as nexmark/q5"),
		Long: "Show the plan of a job: vertices with their inputs and properties, as text, or as a picture with --svg FILE.",
	}
	each := c.Flags().Bool("after-each-pass", false, "show it as it was described, and after each pass")
	svg := c.Flags().String("svg", "", "write a picture; with --after-each-pass FILE gets the number and name of the pass before its end; - is standard output")
	c.RunE = func(_ *cobra.Command, args []string) error {
		g, err := e.described(args[0])
		if err != nil {
			return err
		}
		if *each && *svg == "-" {
			return usagef("--svg -: standard output takes one picture, not one after each pass")
		}
		steps := []planStep{{"as described", g}}
		last, err := applyAll(g, func(p plan.Pass, after *plan.Graph) {
			steps = append(steps, planStep{"after " + p.Name() + ": " + p.(interface{ About() string }).About(), after})
		})
		if err != nil {
			return err
		}
		if !*each {
			steps = []planStep{{"", last}}
		}
		for i, s := range steps {
			if err := e.showPlan(s, i, *svg, *each); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

// planStep is a plan at some point.
type planStep struct {
	title string
	g     *plan.Graph
}

// showPlan prints or draws a plan.
func (e *env) showPlan(s planStep, i int, svg string, each bool) error {
	if svg == "" {
		if s.title != "" {
			e.printf("-- %s\n", s.title)
		}
		return s.g.Text(e.out)
	}
	if svg == "-" {
		return s.g.SVG(e.out)
	}
	if each {
		pass, _, _ := strings.Cut(strings.ReplaceAll(strings.TrimPrefix(s.title, "after "), " ", "-"), ":")
		base, found := strings.CutSuffix(svg, ".svg")
		svg = fmt.Sprintf("%s-%d-%s", base, i, pass)
		if found {
			svg += ".svg"
		}
	}
	return writeFile(svg, s.g.SVG)
}

func writeFile(name string, write func(w io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

func (e *env) planExplainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "explain JOB EDGE|VERTEX", Short: "Tell which pass set what of an edge or a vertex",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("%d arguments, expected two: a job, such as nexmark/q5, and an edge or a vertex of its plan", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			g, err := e.described(args[0])
			if err != nil {
				return err
			}
			if g, err = applyAll(g, nil); err != nil {
				return err
			}
			if err := g.Explain(e.out, plan.ID(args[1])); err != nil {
				return usageError{err}
			}
			return nil
		},
	}
}

// described returns a job as its program describes it.
func (e *env) described(name string) (*plan.Graph, error) {
	program, rest, _ := strings.Cut(name, "/")
	var known []string
	for i := range e.jobs {
		p := &e.jobs[i]
		known = append(known, p.Name)
		if p.Name != program {
			continue
		}
		jobs, err := p.Find(rest)
		if err != nil || len(jobs) != 1 {
			return nil, usageError{errors.Join(err, fmt.Errorf("job %s: one is wanted, such as %s/%s", name, p.Name, p.Jobs[0].Name))}
		}
		c, err := p.Config(nil)
		if err != nil {
			return nil, err
		}
		in, err := p.Open(jobs[0].Name, c, job.Wanted{})
		if err != nil {
			return nil, err
		}
		if in.Close != nil {
			if _, err := in.Close(); err != nil {
				return nil, err
			}
		}
		return in.Plan, nil
	}
	return nil, usagef("no program %q has jobs: one of %s is allowed, with one of its jobs behind a slash", program, strings.Join(known, ", "))
}

// applyAll applies all passes to a job.
func applyAll(g *plan.Graph, seen func(p plan.Pass, after *plan.Graph)) (*plan.Graph, error) {
	policy, err := plan.NewPolicy(job.Passes()...)
	if err != nil {
		return nil, err
	}
	return policy.Apply(g, seen)
}
