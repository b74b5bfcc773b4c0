package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Runnable is a [program.Program], which is one application, or a [job.Program], which is some
// jobs over streams.
type Runnable interface{ Title() string }

// Main runs the command line of a binary with the given programs and ends the
// process.
func Main(programs ...Runnable) {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	os.Exit(run(name, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, programs, nil))
}

// Run is Main with its surroundings as arguments, of a binary named heddle. It returns the
// exit status.
func Run(args []string, in io.Reader, out, err io.Writer, programs ...Runnable) int {
	return run("heddle", args, in, out, err, programs, nil)
}

func run(name string, args []string, in io.Reader, out, err io.Writer, programs []Runnable, ps Processes) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// After the first interrupt the next one ends the process at once.
	context.AfterFunc(ctx, stop)
	checked := &checkedWriter{w: out}
	e := &env{name: name, args: args, ctx: ctx, in: in, out: checked, err: err, processes: ps}
	for _, p := range programs {
		switch p := p.(type) {
		case program.Program:
			e.programs = append(e.programs, p)
		case job.Program:
			e.jobs = append(e.jobs, p)
		default:
			panic(p.Title() + " is neither a program.Program nor a job.Program")
		}
	}
	root := e.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(checked)
	root.SetErr(err)
	failed := root.ExecuteContext(ctx)
	if failed == nil && checked.err != nil {
		failed = fmt.Errorf("standard output: %w", checked.err)
	}
	return e.status(failed)
}

// checkedWriter keeps the first error, so that output which got lost is told of
// whoever wrote it.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

// env is what commands share.
type env struct {
	name      string // of the binary
	args      []string
	ctx       context.Context
	in        io.Reader
	out, err  io.Writer
	programs  []program.Program
	jobs      []job.Program
	processes Processes // or nil
}

// usageError is a mistake on the command line or in the input.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errInterrupted ends a command whose summary is printed already.
var errInterrupted = errors.New("interrupted")

const (
	statusFailed      = 1
	statusUsage       = 2
	statusInterrupted = 130
)

// tell prints a line for people, beside the output.
func (e *env) tell(format string, args ...any) {
	fmt.Fprintf(e.err, e.name+": "+format+"\n", args...)
}

// status prints an error in one line and returns the exit status for it.
func (e *env) status(err error) int {
	var told statusError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted):
		return statusInterrupted
	case errors.As(err, &told):
		return int(told)
	case engine.Interrupted(err) && e.ctx.Err() != nil:
		e.tell("interrupted")
		return statusInterrupted
	}
	e.tell("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	var usage usageError
	var param *program.ParamError
	var input *program.InputError
	var rejected *txn.RejectedError
	var refused *checkpoint.RefusalError
	var back *txn.TimeError
	if errors.As(err, &back) || errors.As(err, &refused) || errors.As(err, &rejected) || errors.As(err, &usage) || errors.As(err, &param) || errors.As(err, &input) || errors.Is(err, fs.ErrNotExist) {
		return statusUsage
	}
	return statusFailed
}

func (e *env) root() *cobra.Command {
	root := &cobra.Command{
		Use: e.name, Short: "Transactional stream processing: run, compare, record and replay applications",
		SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q: one of %s", args[0], commandNames(c))
			}
			return c.Help()
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			err = fmt.Errorf("%w; allowed are %s", err, flagNames(c))
		}
		return usageError{err}
	})
	root.AddCommand(e.runCommand(), e.compareCommand(), e.recordCommand(), e.replayCommand(), e.inspectCommand(), e.simulateCommand(),
		e.ctlCommand(), e.workerCommand(), e.benchCommand(), e.workloadsCommand(), e.strategiesCommand())
	if len(e.jobs) > 0 {
		root.AddCommand(e.planCommand())
	}
	return root
}

func commandNames(c *cobra.Command) string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return strings.Join(names, ", ")
}

func flagNames(c *cobra.Command) string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return strings.Join(names, ", ")
}

// perProgram makes a command with a sub-command for each program. With a single
// program the command itself does the same.
func (e *env) perProgram(use, short, long string, fill func(c *cobra.Command, p *program.Program)) *cobra.Command {
	parent := &cobra.Command{Use: use + " WORKLOAD", Short: short, Long: long, Args: cobra.ArbitraryArgs}
	for i := range e.programs {
		p := &e.programs[i]
		sub := &cobra.Command{Use: p.Name, Short: p.About, Args: noArgs}
		fill(sub, p)
		parent.AddCommand(sub)
	}
	if len(e.programs) == 1 && len(e.jobs) == 0 {
		fill(parent, &e.programs[0])
		parent.Use, parent.Args = use, noArgs
		return parent
	}
	parent.FParseErrWhitelist.UnknownFlags = true // they are those of a workload: that is what is wrong
	parent.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("which workload? one of %s", commandNames(c))
		}
		for i := range e.jobs {
			if e.jobs[i].Name == args[0] {
				return usagef("%s is jobs over streams, which the commands run and plan take; %s takes one of %s", args[0], use, commandNames(c))
			}
		}
		return usagef("unknown workload %q: one of %s", args[0], commandNames(c))
	}
	return parent
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected argument %q: this command takes flags only", args[0])
	}
	return nil
}

// oneArg demands one argument, called what.
func oneArg(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("%d arguments, expected one: %s", len(args), what)
		}
		return nil
	}
}
