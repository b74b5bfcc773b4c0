package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/heddle-stream/heddle/cli"
	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/workloads/micro"
)

// TestMain is also the processes of the tests: workers, and jobs that are killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		cli.MainOn(Processes{}, micro.Program)
	}
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

// begin makes a job on processes, which runs until more is closed, at least, and keeps its state, if there is to be one.
func begin(t *testing.T, nodes int, state string, more <-chan struct{}) *cluster.Job {
	t.Helper()
	w := cli.Worker{Program: "micro", Params: params(), Events: events, Seed: 1, Workers: 1, Strategy: "serial", State: state}
	n, err := Processes{}.Control(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	o := cluster.JobOptions{Nodes: nodes, Groups: 64, Keep: n.Keep, Checkpoints: 100 * time.Millisecond, Pace: func(seconds float64) float64 {
		select {
		case <-more:
			return events
		default:
			return min(50_000*seconds, events-1)
		}
	}}
	in := instance(t)
	j, err := cluster.NewJob(in.App, in.Source, o, n.Runtime, n.Box)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// I2, I15: processes come and go while events do; state and results are those of an undisturbed run.
func TestProcesses(t *testing.T) {
	more, done := make(chan struct{}), make(chan error)
	j := begin(t, 3, "", more)
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
	compare(t, out)
}

// compare compares what came of a job with an undisturbed run.
func compare(t *testing.T, out *cluster.Outcome) {
	t.Helper()
	in := instance(t)
	m, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{Strategy: "serial", HashResults: true})
	if err != nil {
		t.Fatal(err)
	}
	if state := storage.StateHash(in.App); out.Events != events || out.State != state || out.Results != m.ResultsHash {
		t.Errorf("%d events, %v, %v; want %v, %v", out.Events, out.State, out.Results, state, m.ResultsHash)
	}
}

// kill kills the process of a node, and returns its number.
func kill(t *testing.T, dir, node string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, node))
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
	return string(text)
}

// Without a state, when a process is killed the job ends and says which.
func TestKilledProcess(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HEDDLE_TEST_PIDS", dir)
	more, done := make(chan struct{}), make(chan error)
	j := begin(t, 3, "", more)
	go func() {
		_, err := j.Run(context.Background())
		done <- err
	}()
	if r := <-j.Ask(reconfig.Request{}); r.State != cluster.Done { // all are there
		t.Fatal(r)
	}
	pid := kill(t, dir, "1")
	if err := <-done; err == nil || !strings.Contains(err.Error(), "node 1: worker process "+pid+": signal: killed") {
		t.Errorf("%v", err)
	}
}

// I12: with a state, processes that are killed while groups move are replaced, and the job comes to what it comes to
// undisturbed; one that is begun again when all is done finds it done.
func TestI12KilledProcesses(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	t.Setenv("HEDDLE_TEST_PIDS", dir)
	more, done := make(chan struct{}), make(chan error)
	j := begin(t, 3, state, more)
	var out *cluster.Outcome
	go func() {
		var err error
		out, err = j.Run(context.Background())
		done <- err
	}()
	if r := <-j.Ask(reconfig.Request{}); r.State != cluster.Done { // all are there
		t.Fatal(r)
	}
	for i, q := range []reconfig.Request{{Nodes: 2, Migration: reconfig.Migration{Groups: 1}}, {Nodes: 3}, {Nodes: 1}} {
		reply := j.Ask(q)
		kill(t, dir, []string{"0", "1", "0"}[i])
		if r := <-reply; r.State != cluster.Done {
			t.Errorf("%+v", r)
		}
	}
	close(more)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	compare(t, out)
	if out.Recoveries < 2 || out.Checkpoints < 2 {
		t.Errorf("%d recoveries, %d checkpoints", out.Recoveries, out.Checkpoints)
	}
	again, err := begin(t, 3, state, more).Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	compare(t, again)
	if again.Resumed != events {
		t.Errorf("%d events were done", again.Resumed)
	}
}

// I12: the process that controls a job is killed, and the next one with the same state goes on where it stopped.
func TestI12KilledControl(t *testing.T) {
	state := t.TempDir()
	command := func() *exec.Cmd {
		return exec.Command(os.Args[0], "run", "micro", "--processes", "2", "--events", "60000", "--keys", "1000", "--bytes", "300", "--rate", "30000", "--workers", "1",
			"--state", state, "--ctl", ":0", "--json")
	}
	for range 2 {
		c := command()
		told, err := c.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		addr := ""
		for lines := bufio.NewScanner(told); addr == "" && lines.Scan(); {
			_, addr, _ = strings.Cut(lines.Text(), "ctl at ")
		}
		client := cluster.Client{URL: "http://" + addr}
		if r, err := client.Ask(context.Background(), reconfig.Request{Nodes: 3}); err != nil || r.State != cluster.Done {
			t.Fatalf("%v, %+v", err, r)
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // it was killed
	}
	out, err := command().Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Events, Resumed int
		StateHash       string `json:"state_hash"`
		ResultsHash     string `json:"results_hash"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	c, err := micro.Program.Config(map[string]string{"keys": "1000", "bytes": "300"})
	if err != nil {
		t.Fatal(err)
	}
	c.Events = 60_000
	in, err := micro.Program.New(c)
	if err != nil {
		t.Fatal(err)
	}
	m, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{Strategy: "serial", HashResults: true})
	if err != nil {
		t.Fatal(err)
	}
	if got.Events != 60_000 || got.Resumed == 0 || got.StateHash != storage.StateHash(in.App).String() || got.ResultsHash != m.ResultsHash.String() {
		t.Errorf("%+v; want %v, %v", got, storage.StateHash(in.App), m.ResultsHash)
	}
}

// I11, I12: who controlled a job, and does not know that another process has taken it over, does no harm and is told.
func TestI11TakenOver(t *testing.T) {
	r := &runtime{box: cluster.NewMailbox(), worker: cli.Worker{State: t.TempDir()}, yield: func() {}}
	if err := r.serve(); err != nil {
		t.Fatal(err)
	}
	defer r.release()
	keeps := func() *keep {
		t.Helper()
		conn, err := nats.Connect(r.url, nats.Token(r.token))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		k, err := open(conn, "job", "the same")
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first, second := keeps(), keeps()
	begin := func(k *keep, want uint64) *cluster.Checkpoint {
		t.Helper()
		term, c, err := k.Begin()
		if err != nil || term != want {
			t.Fatalf("term %d, %v; want %d", term, err, want)
		}
		return c
	}
	log := func(k *keep, index uint64, text string) error {
		return errors.Join(k.Log(index, []byte(text)), k.Sync())
	}
	begin(first, 1)
	long := strings.Repeat("x", 3*frameMax)
	if err := errors.Join(log(first, 0, "a"), log(first, 1, long), first.Commit(&cluster.Checkpoint{Index: 1, Seq: 7})); err != nil {
		t.Fatal(err)
	}
	if c := begin(second, 2); c == nil || c.Seq != 7 {
		t.Errorf("checkpoint %+v", c)
	}
	if err := log(first, 2, "late"); !errors.Is(err, errTaken) {
		t.Errorf("a record that came late: %v", err)
	}
	if err := first.Commit(&cluster.Checkpoint{Seq: 9}); !errors.Is(err, errTaken) {
		t.Errorf("a checkpoint that came late: %v", err)
	}
	if err := log(second, 2, "b"); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := second.Records(1, func(rec []byte) error { got = append(got, string(rec)); return nil }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []string{long, "b"}) {
		t.Errorf("the log has %d records, %.20q", len(got), got)
	}
	conn, err := nats.Connect(r.url, nats.Token(r.token))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := open(conn, "job", "another"); err == nil || !strings.Contains(err.Error(), "that of another job") {
		t.Errorf("the state of another job: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := first.acquire(ctx, func(error) {}); err != nil {
		t.Fatal(err)
	}
	if err := second.acquire(ctx, func(error) {}); err == nil || !strings.Contains(err.Error(), "is controlled by process") {
		t.Errorf("a lease that another has: %v", err)
	}
}

// A server that is not there is a reason, and not a wait.
func TestNoServer(t *testing.T) {
	_, err := Processes{}.Control(context.Background(), cli.Worker{NATS: "nats://127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "nats://127.0.0.1:1") {
		t.Errorf("%v", err)
	}
}
