package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/source"
)

// runFlags are the flags of everything that runs a program.
type runFlags struct {
	events   int
	workers  int
	strategy string
	batch    int
	linger   time.Duration
	rate     float64
	target   time.Duration
	memory   byteSize
	state    string
	durable  string
	save     string
	from     string
	format   string
	letters  string
	output   string
	seed     uint64
	verify   bool
	json     bool
	input    string
	foreign  bool // --input is of events in one of the common formats
	params   map[string]*string
	flags    *pflag.FlagSet
	stdin    io.Reader
}

// engineFlags adds the flags that say how to run.
func (f *runFlags) engineFlags(fs *pflag.FlagSet) {
	fs.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "goroutines that execute")
	fs.IntVar(&f.batch, "batch", engine.BatchDefault, "events in a batch at most")
	fs.DurationVar(&f.linger, "linger", 0, "how long a batch waits for more events; 0: not at all")
	fs.Float64Var(&f.rate, "rate", 0, "events that arrive per second, whether the engine keeps up or not; 0: as fast as it takes them")
	fs.DurationVar(&f.target, "latency-target", 0, "size batches so that the latency of 99 % of the events stays below; 0: for throughput")
	fs.Var(&f.memory, "memory-limit", "memory of the process, about, such as 512MiB; rows beyond half of it go to disk, to --state or the directory for temporary files; 0: none")
	fs.BoolVar(&f.verify, "verify", false, "compare outcomes, values read, results and final state with the serial model")
	fs.BoolVar(&f.json, "json", false, "print one JSON object on standard output and nothing else there")
	f.flags = fs
}

func (f *runFlags) strategyFlag(fs *pflag.FlagSet) {
	fs.StringVar(&f.strategy, "strategy", "auto", "how to schedule, see the command strategies")
}

// durableFlags adds the flags that say what survives.
func (f *runFlags) durableFlags(fs *pflag.FlagSet) {
	fs.Lookup("batch").Usage += "; by default more while batches wait for the log of --state"
	fs.StringVar(&f.state, "state", "", "directory that keeps what was done: the next run with it goes on there")
	fs.StringVar(&f.durable, "durability", string(engine.Views), fmt.Sprintf("with --state, what is logged: one of %v; see docs/DURABILITY.md", engine.Schemes()))
	fs.StringVar(&f.save, "savepoint", "", "with --state, a name under which the state at the end is kept, in STATE/savepoints")
	fs.StringVar(&f.from, "from", "", "file of a savepoint with which a new --state begins")
	fs.StringVar(&f.output, "output", "", "file that gets each result as a line of JSON; with --state without a gap or a double after a crash")
}

// eventFlags adds the flags that say where events come from, if not from the program.
func (f *runFlags) eventFlags(fs *pflag.FlagSet) {
	if fs.Lookup("input") == nil {
		fs.StringVar(&f.input, "input", "", "events to read instead of making them: a file, a directory of files, or - for standard input; plain, .gz or .zst")
		f.foreign = true
	}
	fs.StringVar(&f.format, "format", "", fmt.Sprintf("with --input, how events are written: one of %v, see docs/INPUT.md; the default is what the name ends in", source.Formats()))
	fs.StringVar(&f.letters, "dead-letters", "", "with --input, file for what cannot be an event, or stop to end the run there; the default is STATE/dead-letters.jsonl with --state, and else stop")
}

// inputFlags adds the flags that say what to run, the program's own included.
func (f *runFlags) inputFlags(fs *pflag.FlagSet, p *program.Program) {
	fs.IntVar(&f.events, "events", p.Events, "number of events; 0: all of the input")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of everything random")
	if p.ReadsInput {
		fs.StringVar(&f.input, "input", "", "file to read instead of the built-in sample; plain, .gz or .zst")
	}
	f.params = map[string]*string{}
	for _, param := range p.Params {
		f.params[param.Name] = fs.String(param.Name, param.Default, param.Usage)
		fs.Lookup(param.Name).Value = &paramValue{f.params[param.Name], param.Kind.String()}
	}
}

// paramValue is a program's flag; the program checks it.
type paramValue struct {
	value *string
	kind  string
}

func (v *paramValue) String() string {
	if v.value == nil {
		return ""
	}
	return *v.value
}
func (v *paramValue) Set(s string) error { *v.value = s; return nil }
func (v *paramValue) Type() string       { return v.kind }

// byteSize is a flag of bytes, such as 512MiB.
type byteSize int64

func (b *byteSize) String() string {
	if *b == 0 {
		return "0"
	}
	return humanize.IBytes(uint64(*b))
}

func (b *byteSize) Set(s string) error {
	n, err := humanize.ParseBytes(s)
	if err != nil || n > math.MaxInt64 {
		return errors.New("a number of bytes is expected, such as 512MiB or 2GB")
	}
	*b = byteSize(n)
	return nil
}

func (*byteSize) Type() string { return "size" }

// spec returns what the flags ask for.
func (f *runFlags) spec(p *program.Program) (bench.Spec, error) {
	s := bench.Spec{Program: p, Params: map[string]string{}, Events: f.events, Seed: f.seed, Input: f.input}
	if f.events < 0 {
		return s, usagef("--events %d: 0 or more is allowed", f.events)
	}
	for name, value := range f.params {
		s.Params[name] = *value
	}
	if _, err := s.Config(); err != nil {
		return s, usageError{err}
	}
	o, err := f.options()
	if o.State != "" {
		o.Identity = f.identity(p)
	}
	s.Options = o
	if err == nil {
		err = errors.Join(f.named(), f.written())
	}
	if err == nil {
		err = f.apart()
	}
	if f.format != "" {
		f.foreign = true
	}
	if f.foreign && f.input != "" {
		if f.flags.Changed("events") {
			return s, usagef("--events is about events that are made, --input has its own")
		}
		s.Input = ""
		s.Wrap = func(in *program.Instance) error { return f.open(in) }
		s.Options.DeadLetters = f.deadLetters()
	} else if f.format != "" || f.letters != "" {
		return s, usagef("--format and --dead-letters are about --input, which is missing")
	}
	return s, err
}

// apart makes sure that files which are written are not one, nor the input or in its
// directory: making an output empties it.
func (f *runFlags) apart() error {
	letters := f.deadLetters()
	switch {
	case oneFile(f.input, f.output):
		return usagef("--input and --output are one file, %s", f.output)
	case oneFile(f.input, letters):
		return usagef("--input and --dead-letters are one file, %s", letters)
	case oneFile(f.output, letters):
		return usagef("--output and --dead-letters are one file, %s", f.output)
	}
	for flag, name := range map[string]string{"--output": f.output, "--dead-letters": letters} {
		if name != "" && oneFile(f.input, filepath.Dir(name)) {
			return usagef("%s %s: the directory of --input is no place for it", flag, name)
		}
	}
	return nil
}

// oneFile reports whether two names are of one file, whatever they look like.
func oneFile(a, b string) bool {
	if a == "" || b == "" || a == "-" {
		return false
	}
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	one, err := os.Stat(a)
	other, failed := os.Stat(b)
	return err == nil && failed == nil && os.SameFile(one, other)
}

// named makes sure that no flag for a file is given without one, as with a variable of a
// script that is not set.
func (f *runFlags) named() error {
	for _, name := range []string{"state", "output", "input", "dead-letters", "savepoint", "from"} {
		if flag := f.flags.Lookup(name); flag != nil && flag.Changed && flag.Value.String() == "" {
			return usagef("--%s is empty: leave it out, or say which", name)
		}
	}
	return nil
}

// written makes sure that the output can be a file, outside of the state directory.
func (f *runFlags) written() error {
	for flag, name := range map[string]string{"--output": f.output, "--dead-letters": f.letters} {
		if info, err := os.Stat(name); name != "" && err == nil && info.IsDir() {
			return usagef("%s %s: it is a directory", flag, name)
		}
		if f.state != "" && name != "" && filepath.Dir(filepath.Clean(name)) == filepath.Clean(f.state) && filepath.Base(name) != deadLettersName {
			return usagef("%s %s: the state directory is no place for it", flag, name)
		}
	}
	if info, err := os.Stat(f.state); f.state != "" && err == nil && !info.IsDir() {
		return usagef("--state %s: it is a file, a directory is wanted", f.state)
	}
	if f.state == "" && f.flags.Changed("durability") {
		return usagef("--durability %s is about --state, which is missing", f.durable)
	}
	return nil
}

const (
	stopAtLetter    = "stop"
	deadLettersName = "dead-letters.jsonl"
)

// deadLetters returns the file for what cannot be an event, "" for none.
func (f *runFlags) deadLetters() string {
	switch {
	case f.letters == stopAtLetter:
		return ""
	case f.letters == "" && f.state != "":
		return filepath.Join(f.state, deadLettersName)
	}
	return f.letters
}

// open makes a program read its events from --input.
func (f *runFlags) open(in *program.Instance) error {
	files, err := source.Open(in.App, f.input, source.Options{Format: f.format, Discard: f.deadLetters() != "", Stdin: f.stdin})
	if err != nil {
		return usageError{err}
	}
	in.Source, in.Total, in.Close = files, 0, files.Close
	return nil
}

// identity returns what runs with one state directory must have in common.
func (f *runFlags) identity(p *program.Program) map[string]string {
	id := identityOf(p.Name, f.seed, f.events, f.params)
	if f.input != "" {
		id["--input"] = f.input
	}
	if f.format != "" {
		id["--format"] = f.format
	}
	return id
}

// identityOf returns what makes the events of a run, and what is done with them.
func identityOf(workload string, seed uint64, events int, params map[string]*string) map[string]string {
	id := map[string]string{"workload": workload, "--seed": strconv.FormatUint(seed, 10), "--events": strconv.Itoa(events)}
	for name, value := range params {
		id["--"+name] = *value
	}
	return id
}

// options returns how to run.
func (f *runFlags) options() (engine.Options, error) {
	o := engine.Options{Workers: f.workers, Strategy: f.strategy, Batch: f.batch, Linger: f.linger, Rate: f.rate, LatencyTarget: f.target, MemoryLimit: int64(f.memory), Verify: f.verify, State: f.state, Durability: engine.Scheme(f.durable), Savepoint: f.save, From: f.from, Output: f.output}
	if o.Workers == 0 || o.Batch == 0 { // the engine would take a default
		return o, usagef("--workers %d --batch %d: 1 or more is allowed", o.Workers, o.Batch)
	}
	if err := o.Validate(); err != nil {
		return o, usageError{err}
	}
	if !f.flags.Changed("batch") {
		o.Batch = 0 // with a log, the engine sees how many are good for it
	}
	return o, nil
}

// strategyList reads "all" or names separated by commas.
func strategyList(text string) ([]string, error) {
	var out []string
	if text == "all" {
		for _, s := range schedule.Strategies() {
			out = append(out, s.String())
		}
		return out, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		s, err := schedule.Parse(strings.TrimSpace(name))
		if err != nil {
			return nil, usageError{err}
		}
		if !slices.Contains(out, s.String()) {
			out = append(out, s.String())
		}
	}
	return out, nil
}

func (e *env) workloadsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "workloads", Short: "List the workloads", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, p := range e.programs {
				e.printf("%-12s %s\n", p.Name, p.About)
			}
			for _, p := range e.jobs {
				e.printf("%-12s %s\n", p.Name, p.About)
				for _, j := range p.Jobs {
					e.printf("  %-12s %s\n", j.Name, j.About)
				}
			}
			return nil
		},
	}
}

func (e *env) strategiesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "strategies", Short: "List the strategies", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, s := range schedule.Strategies() {
				e.printf("%-16s %s\n", s, s.About())
			}
			return nil
		},
	}
}
