package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
	"github.com/heddle-stream/heddle/workloads/fraud"
	"github.com/heddle-stream/heddle/workloads/micro"
)

// inProcess is nodes in this process, where the binary would have processes.
type inProcess struct{}

func (inProcess) Control(_ context.Context, w Worker) (Nodes, error) {
	l := &cluster.Local{LinkRate: w.LinkRate, Engine: engine.Options{Workers: w.Workers, Strategy: w.Strategy}}
	l.New = func() (*txn.App, error) { return w.App([]program.Program{micro.Program}) }
	return Nodes{Runtime: l, Box: l.Box()}, nil
}

func (inProcess) Serve(context.Context, WorkerArgs, []program.Program) error { return nil }

func onNodes(out, errs io.Writer, args ...string) int {
	return run("heddle", args, nil, out, errs, []Runnable{micro.Program, fraud.Program}, inProcess{})
}

// A run that is told to go to other numbers of nodes has the hashes of one that is left alone.
func TestRunAndCtl(t *testing.T) {
	small := []string{"run", "micro", "--events", "60000", "--keys", "500", "--bytes", "50", "--json"}
	var alone bytes.Buffer
	if status := onNodes(&alone, io.Discard, small...); status != 0 {
		t.Fatal(status)
	}
	var want bench.Result
	if err := json.Unmarshal(alone.Bytes(), &want); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	told, errs := io.Pipe()
	done := make(chan int)
	go func() {
		done <- onNodes(&out, errs, append(small, "--processes", "2", "--rate", "20000", "--ctl", ":0", "--verify")...)
		errs.Close()
	}()
	addr := ctlAddress(t, told)
	file := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(file, []byte(`{"name": "from a file", "nodes": 1, "migration": {"groups": 100}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"rescale --processes 3 --name more", 0, "341 of 341 groups moved"},
		{"rescale --processes 3 --name more", 0, "341 of 341 groups moved"}, // once
		{"rescale --processes 2 --dry-run", 0, "would be nowhere for"},
		{"rebalance", 0, "done"},
		{"plan " + file, 0, "done"},
		{"plan " + file + " --dry-run", 0, "done"},
		{"rescale --processes 65", 2, "1 to 64"},
		{"rescale", 2, "--processes or --workers is needed"},
		{"rescale --workers 2", 0, "2 workers"},
		{"rescale --workers 65", 1, "65"},
		{"logic", 2, "which logic?"},
		{"logic --strategy serial", 0, "strategy serial"},
		{"logic --strategy best", 1, "best"},
		{"logic tree=bursts", 1, "has none"},
		{"logic tree", 2, "NAME=VARIANT"},
		{"rebalance --order best", 2, `order "best"`},
		{"abort", 0, ""},
		{"status", 0, "more     done"},
		{"statsu", 2, "unknown command"},
	} {
		var text bytes.Buffer
		status := onNodes(&text, &text, append([]string{"ctl", "--addr", addr}, strings.Fields(c.args)...)...)
		if status != c.status || !strings.Contains(text.String(), c.says) {
			t.Errorf("ctl %s: status %d, %q", c.args, status, text.String())
		}
	}
	if status := <-done; status != 0 {
		t.Fatal(status)
	}
	var got bench.NodesResult
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Events != 60_000 || got.StateHash != want.StateHash || got.ResultsHash != want.ResultsHash || !got.Verified || len(got.Requests) < 4 || got.Batch != engine.BatchDefault {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	var text bytes.Buffer
	if status := onNodes(&text, &text, "ctl", "status", "--addr", addr); status != 1 {
		t.Errorf("when the job is over: status %d, %q", status, text.String())
	}
}

// ctlAddress finds out where a run that tells it listens.
func ctlAddress(t *testing.T, told io.Reader) (addr string) {
	t.Helper()
	lines := bufio.NewScanner(told)
	for addr == "" && lines.Scan() {
		_, addr, _ = strings.Cut(lines.Text(), "ctl at ")
	}
	go func() { _, _ = io.Copy(io.Discard, told) }() // so that nobody waits to be read
	if !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Fatalf("ctl at %q", addr)
	}
	return addr
}

// A tree that is exchanged in a run in this process holds from one event on: what is right is seen by the second.
func TestLogicOfARun(t *testing.T) {
	var out bytes.Buffer
	told, errs := io.Pipe()
	done := make(chan int)
	go func() {
		done <- onNodes(&out, errs, "run", "fraud", "--events", "90000", "--drift", "20000", "--rate", "20000", "--ctl", ":0", "--verify", "--json")
		errs.Close()
	}()
	addr := ctlAddress(t, told)
	ctl := func(args ...string) string {
		t.Helper()
		var text bytes.Buffer
		if status := onNodes(&text, &text, append([]string{"ctl", "--addr", addr}, args...)...); status != 0 {
			t.Fatalf("ctl %v: status %d, %s", args, status, text.String())
		}
		return text.String()
	}
	ctl("rescale", "--processes", "2")
	if text := ctl("logic", "tree=bursts"); !strings.Contains(text, "tree bursts") {
		t.Error(text)
	}
	if status := <-done; status != 0 {
		t.Fatal(status)
	}
	var got bench.NodesResult
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if n := len(got.Quality); !got.Verified || got.Events != 90_000 || n < 4 || got.Quality[n-1] < 0.6 {
		t.Errorf("%+v", got)
	}
}

func TestNodesFlagsThatCannotBe(t *testing.T) {
	for args, says := range map[string]string{
		"run micro --nats x": "--processes, which is missing", "run micro --link-rate 1MiB": "--processes, which is missing",
		"run micro --processes 65": "1 to 64", "run micro --processes -1": "1 to 64", "run micro --ctl :0 --latency-target 1s": "--latency-target is not there yet",
		"run micro --ctl :0 --state x": "--state with --ctl needs --processes", "run micro --processes 2 --output x": "--output is not there yet", "run micro --processes 2 --explain": "--explain is not there yet",
		"run micro --processes 2 --ctl nonsense": "--ctl nonsense", "worker": "are needed",
		"worker --nats x --job y": "are needed",
	} {
		var text bytes.Buffer
		if status := onNodes(&text, &text, strings.Fields(args)...); status != 2 || !strings.Contains(text.String(), says) {
			t.Errorf("%s: status %d, %q", args, status, text.String())
		}
	}
}

// Without the binary that has processes, and without its source around, the message says what to do.
func TestNoClusterBinary(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("PATH", "")
	var text bytes.Buffer
	status := run("heddle", []string{"run", "--processes", "2"}, nil, &text, &text, []Runnable{micro.Program}, nil)
	if status != 1 || !strings.Contains(text.String(), "build it with") {
		t.Errorf("status %d, %q", status, text.String())
	}
}
