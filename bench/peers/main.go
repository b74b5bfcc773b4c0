// Command peers compares Heddle with other ways to run the streaming ledger.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"

	"github.com/heddle-stream/heddle/bench/peers/peers"
)

// The statuses of Heddle's own commands: 1 for a run that failed, 2 for flags
// that make no sense.
const (
	failed = 1
	misuse = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	if len(args) > 0 {
		switch args[0] {
		case "flowkv":
			return flowkv(ctx, args[1:], out, errs)
		case "queries":
			return queries(ctx, args[1:], out, errs)
		}
	}
	var p peers.Params
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.IntVar(&p.Events, "events", 1_000_000, "`number` of events; slow peers run the first of them only")
	flags.IntVar(&p.Keys, "keys", 100_000, "accounts and book entries, each")
	flags.Float64Var(&p.Skew, "skew", 0, "zipf `exponent` of the keys")
	flags.Float64Var(&p.Abort, "abort", 5, "transfers that cannot be covered, in `percent`")
	flags.Float64Var(&p.Deposit, "deposit", 25, "deposits among the events, in `percent`")
	flags.Uint64Var(&p.Seed, "seed", 1, "`seed` of the events")
	memory := flags.Int("memory", 0, "compare those that need no more memory than so many `MiB`, with the rest of the rows on disk; 0: all, in memory")
	reps := flags.Int("reps", 5, "`number` of interleaved repetitions")
	full := flags.Bool("full", false, "run all events through slow peers too")
	asJSON := flags.Bool("json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		return misuse
	}
	p.Memory = int64(*memory) << 20
	in, err := peers.Generate(p)
	if err == nil && *reps < 1 {
		err = fmt.Errorf("--reps %d: at least 1 is needed", *reps)
	}
	if err == nil && *memory < 0 {
		err = fmt.Errorf("--memory %d: 0 or more is allowed", *memory)
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%q: there are only flags", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(errs, "peers:", err)
		return misuse
	}
	all := peers.All()
	if *memory > 0 {
		all = peers.OnDisk()
	}
	c := peers.Comparison{Input: in, Peers: all, Reps: *reps, Full: *full}
	c.Progress = func(what string) { fmt.Fprintln(errs, what) }
	if err := c.Run(ctx); err != nil {
		fmt.Fprintln(errs, "peers:", err)
		return failed
	}
	if err := show(out, p, &c, *asJSON); err != nil {
		fmt.Fprintln(errs, "peers:", err)
		return failed
	}
	return 0
}

func show(out io.Writer, p peers.Params, c *peers.Comparison, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(struct {
			Params     peers.Params `json:"params"`
			Reps       int          `json:"reps"`
			Processors int          `json:"processors"`
			Rows       []peers.Row  `json:"rows"`
		}{p, c.Reps, runtime.GOMAXPROCS(0), c.Rows})
	}
	_, err := fmt.Fprintf(out, "%d keys, skew %v, %v %% deposits, %v %% of transfers fail, no work per operation, %d processors, medians of %d\n%s"+
		"all final states equal the serial loop's after as many events\n",
		p.Keys, p.Skew, p.Deposit, p.Abort, runtime.GOMAXPROCS(0), c.Reps, c.Table())
	return err
}
