package remote

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/heddle-stream/heddle/cli"
	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/workloads/micro"
)

// TestMain is also the worker processes of the tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if dir := os.Getenv("HEDDLE_TEST_PIDS"); dir != "" {
			node := os.Args[len(os.Args)-1]
			if err := os.WriteFile(filepath.Join(dir, node), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
				panic(err)
			}
		}
		cli.MainOn(Processes{}, micro.Program)
	}
	os.Exit(m.Run())
}

const events = 30_000

func params() map[string]string {
	return map[string]string{"keys": "1000", "bytes": "300", "pairs": "20"}
}

func instance(t *testing.T) *program.Instance {
	t.Helper()
	c, err := micro.Program.Config(params())
	if err != nil {
		t.Fatal(err)
	}
	c.Events = events
	in, err := micro.Program.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// begin makes a job on processes, which runs until more is closed, at least.
func begin(t *testing.T, nodes int, more <-chan struct{}) *cluster.Job {
	t.Helper()
	w := cli.Worker{Program: "micro", Params: params(), Events: events, Seed: 1, Workers: 1, Strategy: "serial"}
	rt, box, err := Processes{}.Control(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	o := cluster.JobOptions{Nodes: nodes, Groups: 64, Pace: func(seconds float64) float64 {
		select {
		case <-more:
			return events
		default:
			return min(50_000*seconds, events-1)
		}
	}}
	in := instance(t)
	j, err := cluster.NewJob(in.App, in.Source, o, rt, box)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// I2, I15: processes come and go while events do; state and results are those of an undisturbed run.
func TestProcesses(t *testing.T) {
	more, done := make(chan struct{}), make(chan error)
	j := begin(t, 3, more)
	var out *cluster.Outcome
	go func() {
		var err error
		out, err = j.Run(context.Background())
		done <- err
	}()
	for _, q := range []reconfig.Request{
		{Nodes: 2}, {Nodes: 4, Migration: reconfig.Migration{Groups: 4, Ahead: true}}, {Rebalance: true}, {},
		{Nodes: 1, Migration: reconfig.Migration{Stop: true}}, {Nodes: 2, Replicas: 0.5}, {Nodes: 1},
	} {
		if r := <-j.Ask(q); r.State != cluster.Done {
			t.Errorf("%+v: %s %s", q, r.State, r.Error)
		}
	}
	close(more)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	in := instance(t)
	m, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{Strategy: "serial", HashResults: true})
	if err != nil {
		t.Fatal(err)
	}
	if state := storage.StateHash(in.App); out.Events != events || out.State != state || out.Results != m.ResultsHash {
		t.Errorf("%d events, %v, %v; want %v, %v", out.Events, out.State, out.Results, state, m.ResultsHash)
	}
}

// I12, in part: when a process is killed the job ends and says which.
func TestKilledProcess(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HEDDLE_TEST_PIDS", dir)
	more, done := make(chan struct{}), make(chan error)
	j := begin(t, 3, more)
	go func() {
		_, err := j.Run(context.Background())
		done <- err
	}()
	if r := <-j.Ask(reconfig.Request{}); r.State != cluster.Done { // all are there
		t.Fatal(r)
	}
	text, err := os.ReadFile(filepath.Join(dir, "1"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "node 1: worker process "+string(text)+": signal: killed") {
		t.Errorf("%v", err)
	}
}

// A server that is not there is a reason, and not a wait.
func TestNoServer(t *testing.T) {
	_, _, err := Processes{}.Control(context.Background(), cli.Worker{NATS: "nats://127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "nats://127.0.0.1:1") {
		t.Errorf("%v", err)
	}
}
