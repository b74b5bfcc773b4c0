package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/reconfig"
)

// ctlCommand changes a running job.
func (e *env) ctlCommand() *cobra.Command {
	c := &cobra.Command{Use: "ctl", Short: "Change a job that runs with --ctl, or see what was changed", Args: cobra.ArbitraryArgs}
	addr := c.PersistentFlags().String("addr", "127.0.0.1:8520", "where the job listens, as it told")
	asJSON := c.PersistentFlags().Bool("json", false, "print one JSON object on standard output and nothing else there")
	client := func() cluster.Client {
		return cluster.Client{URL: "http://" + loopback(*addr)}
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("unknown command %q: one of %s", args[0], commandNames(c))
		}
		return usagef("which? one of %s", commandNames(c))
	}
	ask := func(q reconfig.Request) error {
		if err := q.Validate(); err != nil {
			return usageError{err}
		}
		r, err := client().Ask(e.ctx, q)
		if err != nil {
			return err
		}
		if err := e.print(r, r.Text()+"\n", *asJSON); err != nil {
			return err
		}
		if r.State != cluster.Done {
			return fmt.Errorf("the request was %s", r.State)
		}
		return nil
	}
	c.AddCommand(rescaleCommand(ask), rebalanceCommand(ask), logicCommand(ask), planFileCommand(ask))
	c.AddCommand(&cobra.Command{Use: "status", Short: "Print all requests so far", Args: noArgs, RunE: func(*cobra.Command, []string) error {
		all, err := client().Status(e.ctx)
		if err != nil {
			return err
		}
		var text strings.Builder
		for _, r := range all {
			fmt.Fprintf(&text, "%-8s %s\n", r.Request.Name, r.Text())
		}
		return e.print(map[string]any{"requests": all}, text.String(), *asJSON)
	}})
	abort := &cobra.Command{Use: "abort", Short: "End the request under way: what has moved stays, the rest does not move", Args: noArgs}
	name := abort.Flags().String("name", "", "the request of this name instead")
	abort.RunE = func(*cobra.Command, []string) error { return client().Abort(e.ctx, *name) }
	c.AddCommand(abort)
	return c
}

// requestFlags adds the flags of a request to a command.
func requestFlags(c *cobra.Command, q *reconfig.Request) {
	fs := c.Flags()
	fs.StringVar(&q.Name, "name", "", "name of the request: one that was done is not done again")
	fs.BoolVar(&q.DryRun, "dry-run", false, "tell what would move, how many bytes that is, and how long groups would be nowhere")
	order := fs.String("order", "", fmt.Sprintf("in which groups move: one of %v; default: hot first where that is worth it, else random", reconfig.Orders()))
	c.PreRun = func(*cobra.Command, []string) { q.Migration.Order = reconfig.Order(*order) }
	fs.IntVar(&q.Migration.Groups, "groups", 0, "groups that move at a time from a process at most; default: by bytes")
	fs.Int64Var(&q.Migration.Bytes, "bytes", 0, "bytes that move at a time from a process at most; default: what the link carries in 10 ms")
	fs.BoolVar(&q.Migration.Ahead, "ahead", false, "copy groups before they move; default with neither --groups nor --bytes")
	fs.IntVar(&q.Migration.Gap, "gap", 0, "batches between two chunks")
	fs.BoolVar(&q.Migration.Stop, "stop", false, "make all events wait meanwhile")
}

func rescaleCommand(ask func(reconfig.Request) error) *cobra.Command {
	var q reconfig.Request
	c := &cobra.Command{Use: "rescale", Short: "Run on another number of processes, or of workers in each", Args: noArgs}
	c.Flags().IntVar(&q.Nodes, "processes", 0, "how many")
	c.Flags().IntVar(&q.Workers, "workers", 0, "workers that execute in each process, at most one for each processor")
	requestFlags(c, &q)
	c.RunE = func(*cobra.Command, []string) error {
		if q.Nodes == 0 && q.Workers == 0 {
			return usagef("--processes or --workers is needed: 1 to %d", reconfig.NodesMax)
		}
		return ask(q)
	}
	return c
}

func rebalanceCommand(ask func(reconfig.Request) error) *cobra.Command {
	q := reconfig.Request{Rebalance: true}
	c := &cobra.Command{Use: "rebalance", Short: "Move groups so that the processes have about the same load", Args: noArgs}
	requestFlags(c, &q)
	c.RunE = func(*cobra.Command, []string) error { return ask(q) }
	return c
}

// logicCommand exchanges what transactions do, and how they are executed.
func logicCommand(ask func(reconfig.Request) error) *cobra.Command {
	var q reconfig.Request
	c := &cobra.Command{Use: "logic [NAME=VARIANT ...]", Short: "Make other variants of logic hold, all from the same event on", Args: cobra.ArbitraryArgs}
	fs := c.Flags()
	fs.StringVar(&q.Name, "name", "", "name of the request: one that was done is not done again")
	fs.BoolVar(&q.DryRun, "dry-run", false, "tell what would be another one")
	fs.StringVar(&q.Strategy, "strategy", "", "strategy by which transactions are executed from then on")
	c.RunE = func(_ *cobra.Command, args []string) error {
		q.Logic = map[string]string{}
		for _, a := range args {
			name, variant, ok := strings.Cut(a, "=")
			if !ok {
				return usagef("%q: NAME=VARIANT is needed, such as tree=bursts", a)
			}
			q.Logic[name] = variant
		}
		if len(args) == 0 && q.Strategy == "" {
			return usagef("which logic? NAME=VARIANT is needed, or --strategy")
		}
		return ask(q)
	}
	return c
}

// planFileCommand asks for what a file says.
func planFileCommand(ask func(reconfig.Request) error) *cobra.Command {
	c := &cobra.Command{Use: "plan FILE", Short: "Do what a file says, a request in JSON as status --json prints them", Args: oneArg("a file")}
	dry := c.Flags().Bool("dry-run", false, "only tell what it would do")
	c.RunE = func(_ *cobra.Command, args []string) error {
		text, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}
		var q reconfig.Request
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.DisallowUnknownFields()
		if err := d.Decode(&q); err != nil {
			return usagef("%s: %v", args[0], err)
		}
		q.DryRun = q.DryRun || *dry
		return ask(q)
	}
	return c
}
