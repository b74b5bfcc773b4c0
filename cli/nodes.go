package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/txn"
)

// Processes makes nodes that are processes of their own. Package cmd/heddle-cluster/remote has some; they take
// long to build, so that the binary heddle has none and starts the binary heddle-cluster.
type Processes interface {
	// Control returns where nodes of a job will be.
	Control(ctx context.Context, w Worker) (Nodes, error)
	// Serve is a worker process: it runs the node that control told it to be until that ends.
	Serve(ctx context.Context, args WorkerArgs, programs []program.Program) error
}

// Nodes is what starts nodes for a job, where their messages for control go, and where the job keeps its state, nil if it
// does not.
type Nodes struct {
	Runtime cluster.Runtime
	Box     *cluster.Mailbox
	Keep    cluster.Keep
}

// Worker is what a worker process needs to know of a job. What an input says of the state is read by each.
type Worker struct {
	Program  string            `json:"program"`
	Params   map[string]string `json:"params"`
	Events   int               `json:"events"`
	Seed     uint64            `json:"seed"`
	Input    string            `json:"input"`
	Workers  int               `json:"workers"`
	Strategy string            `json:"strategy"`
	LinkRate float64           `json:"link_rate"` // bytes per second, 0: no bound
	NATS     string            `json:"-"`         // address of a server, "" for one of our own
	State    string            `json:"state"`     // directory, or with a server of others its base is a name
}

// WorkerArgs tell a worker process where its control is.
type WorkerArgs struct {
	NATS, Job string
	Node      int
}

// MainOn is [Main] of a binary that has processes.
func MainOn(ps Processes, programs ...Runnable) {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	os.Exit(run(name, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, programs, ps))
}

// nodesFlags are those of runs on several nodes.
type nodesFlags struct {
	processes int
	ctl, nats string
	link      byteSize
}

func (f *nodesFlags) add(fs *pflag.FlagSet) {
	fs.IntVar(&f.processes, "processes", 0, "run on so many worker processes, among which state moves; 0: in this one")
	fs.StringVar(&f.ctl, "ctl", "", "address at which the command ctl finds the job, such as :8520, of this machine where no host is named; with port 0 one is chosen and told. Without --processes there is one node, in this process, and what is asked for makes others here")
	fs.StringVar(&f.nats, "nats", "", "with --processes, a NATS server to use, such as nats://host:4222; default: one is started")
	fs.Var(&f.link, "link-rate", "with --processes, bytes of state that a process sends per second at most, such as 100MiB; 0: no bound")
}

// on reports whether a run is on several nodes, and what is wrong with its flags.
func (f *nodesFlags) on(r *runFlags) (bool, error) {
	if f.processes == 0 {
		if f.nats != "" || f.link != 0 {
			return false, usagef("--nats and --link-rate are about --processes, which is missing")
		}
		if f.ctl == "" {
			return false, nil
		}
	}
	if f.processes < 0 || f.processes > reconfig.NodesMax {
		return false, usagef("--processes %d: 1 to %d are allowed", f.processes, reconfig.NodesMax)
	}
	if r.flags.Changed("state") && f.processes == 0 {
		return false, usagef("--state with --ctl needs --processes")
	}
	for _, name := range []string{"output", "savepoint", "from", "explain", "memory-limit", "latency-target", "durability", "dead-letters"} {
		if r.flags.Changed(name) {
			return false, usagef("--%s is not there yet with --processes or --ctl", name)
		}
	}
	return true, nil
}

// runNodes runs a program on several processes.
func (e *env) runNodes(s bench.Spec, f *nodesFlags, asJSON bool) error {
	if f.processes > 0 && e.processes == nil {
		return e.delegate()
	}
	w := Worker{
		Program: s.Program.Name, Params: s.Params, Events: s.Events, Seed: s.Seed, Input: s.Input, Workers: s.Options.Workers, Strategy: s.Options.Strategy,
		LinkRate: float64(f.link), NATS: f.nats, State: s.Options.State,
	}
	n, err := e.nodesOf(s, f, w)
	if err != nil {
		return err
	}
	if f.ctl != "" {
		l, err := net.Listen("tcp", loopback(f.ctl))
		if err != nil {
			return usagef("--ctl %s: %v", f.ctl, err)
		}
		e.tell("ctl at %s", l.Addr())
		server := &http.Server{ReadHeaderTimeout: 10 * time.Second}
		defer server.Close()
		n.Began = func(j *cluster.Job) {
			server.Handler = j.Handler()
			go func() { _ = server.Serve(l) }() // it ends when the job does
		}
	}
	r, err := bench.RunNodes(e.ctx, s, n)
	if r != nil && (err == nil || engine.Interrupted(err)) {
		if perr := e.print(r, r.Text(), asJSON); perr != nil {
			return perr
		}
	}
	if engine.Interrupted(err) && r != nil {
		e.tell("interrupted after %d events", r.Events)
		return errInterrupted
	}
	return err
}

// nodesOf makes where nodes will be: processes, or in this one.
func (e *env) nodesOf(s bench.Spec, f *nodesFlags, w Worker) (n bench.NodesSpec, err error) {
	n = bench.NodesSpec{Nodes: max(f.processes, 1), LinkRate: w.LinkRate}
	if f.processes > 0 {
		all, err := e.processes.Control(e.ctx, w)
		n.Runtime, n.Box, n.Keep = all.Runtime, all.Box, all.Keep
		n.Failed = func(err error) { e.tell("%v; going on", err) }
		return n, err
	}
	local := &cluster.Local{
		New:    func() (*txn.App, error) { return w.App([]program.Program{*s.Program}) },
		Engine: engine.Options{Workers: w.Workers, Strategy: w.Strategy},
	}
	n.Runtime, n.Box = local, local.Box()
	return n, nil
}

// loopback returns an address, on this machine alone if it names no host: who asks needs no password.
func loopback(addr string) string {
	if strings.HasPrefix(addr, ":") {
		return "127.0.0.1" + addr
	}
	return addr
}

// delegate has heddle-cluster do what this process was asked for.
func (e *env) delegate() error {
	binary, err := e.clusterBinary()
	if err != nil {
		return err
	}
	c := exec.CommandContext(e.ctx, binary, e.args...)
	c.Stdin, c.Stdout, c.Stderr = e.in, e.out, e.err
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	err = c.Run()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed) && failed.ExitCode() > 0:
		return statusError(failed.ExitCode())
	case err != nil:
		return fmt.Errorf("%s: %w", binary, err)
	}
	return nil
}

// statusError is the exit status of a process that told the reason itself.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

const clusterName = "heddle-cluster"

// clusterBinary finds heddle-cluster beside this binary or in the path, or builds it from the source around the
// current directory.
func (e *env) clusterBinary() (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), clusterName)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	if found, err := exec.LookPath(clusterName); err == nil {
		return found, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		source := filepath.Join(dir, "cmd", clusterName)
		if _, err := os.Stat(filepath.Join(source, "go.mod")); err == nil {
			return e.buildCluster(source)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("worker processes need the binary %s, which is neither beside this one nor in the path: "+
				"build it with `go build .` in cmd/%s of the source, or call this command there, which does so", clusterName, clusterName)
		}
		dir = parent
	}
}

// buildCluster builds heddle-cluster, which takes a moment the first time only.
func (e *env) buildCluster(source string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(cache, "heddle", clusterName)
	c := exec.CommandContext(e.ctx, "go", "build", "-o", binary, ".")
	c.Dir = source
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s in %s: %w: %s", clusterName, source, err, strings.TrimSpace(string(out)))
	}
	return binary, nil
}

func (e *env) workerCommand() *cobra.Command {
	var a WorkerArgs
	c := &cobra.Command{Use: "worker", Short: "Run a node of a job, which `run --processes` does by itself", Args: noArgs}
	c.Flags().StringVar(&a.NATS, "nats", "", "address of the NATS server")
	c.Flags().StringVar(&a.Job, "job", "", "name of the job there")
	c.Flags().IntVar(&a.Node, "node", -1, "number of the node")
	c.RunE = func(*cobra.Command, []string) error {
		if a.NATS == "" || a.Job == "" || a.Node < 0 {
			return usagef("--nats, --job and --node are needed, as `run --processes` gives them")
		}
		if e.processes == nil {
			return e.delegate()
		}
		return e.processes.Serve(e.ctx, a, e.programs)
	}
	return c
}

// App makes an instance of the worker's program.
func (w *Worker) App(programs []program.Program) (*txn.App, error) {
	i := slices.IndexFunc(programs, func(p program.Program) bool { return p.Name == w.Program })
	if i < 0 {
		return nil, fmt.Errorf("this binary has no workload %s", w.Program)
	}
	s := bench.Spec{Program: &programs[i], Params: w.Params, Events: w.Events, Seed: w.Seed, Input: w.Input}
	c, err := s.Config()
	if err != nil {
		return nil, err
	}
	in, err := s.Program.New(c)
	if err != nil {
		return nil, err
	}
	if in.Close != nil { // the events are control's
		err = in.Close()
	}
	return in.App, err
}
