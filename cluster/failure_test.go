package cluster_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/txn"
)

// fragile declares an application whose operation panics for one event.
func fragile(bad uint32) (*txn.App, *txn.Event[uint32, bool]) {
	app := txn.New("fragile")
	table := txn.NewTable[uint32, int64](app, "table")
	op := txn.Upsert(table, "op", func(_ txn.Ctx, n uint32, v *int64, _ bool) txn.Verdict {
		if n == bad {
			panic("no such event")
		}
		*v++
		return txn.OK
	})
	return app, txn.On(app, "event", func(p *txn.Plan, n uint32) { op.At(p, n%50, n) },
		func(out txn.Outcome, _ uint32) bool { return out.Committed() })
}

// fragileJob makes a job of it, with the first error of making an application for nodes from the given one on.
func fragileJob(t *testing.T, bad uint32, failing int, o cluster.JobOptions) *cluster.Job {
	t.Helper()
	var made atomic.Int32
	local := &cluster.Local{Engine: engine.Options{Workers: 1}, New: func() (*txn.App, error) {
		if int(made.Add(1)) > failing {
			return nil, errors.New("no memory for another one")
		}
		app, _ := fragile(bad)
		return app, nil
	}}
	app, event := fragile(bad)
	events := make([]uint32, 20_000)
	for i := range events {
		events[i] = uint32(i)
	}
	j, err := cluster.NewJob(app, event.Slice(events), o, local, local.Box())
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// I12, in part: a node that fails ends the job, with the reason, and nobody hangs.
func TestPanicAtANode(t *testing.T) {
	for _, bad := range []uint32{0, 7777, 19_999} {
		j := fragileJob(t, bad, 9, cluster.JobOptions{Nodes: 3, Groups: 16})
		_, err := j.Run(context.Background())
		if err == nil || !strings.Contains(err.Error(), "no such event") || !strings.Contains(err.Error(), "node ") {
			t.Errorf("%v", err)
		}
		if r := <-j.Ask(reconfig.Request{Nodes: 2}); r.State != cluster.Refused {
			t.Errorf("asked after the end: %+v", r)
		}
	}
}

// A node that cannot start ends a job that begins, and otherwise only the request that wants it.
func TestNodeThatDoesNotStart(t *testing.T) {
	for started := range 3 { // those that did have to end as well
		_, err := fragileJob(t, 1<<31, started, cluster.JobOptions{Nodes: 3}).Run(context.Background())
		if err == nil || !strings.Contains(err.Error(), "starting node ") || !strings.Contains(err.Error(), "no memory") {
			t.Errorf("with %d nodes that start: %v", started, err)
		}
	}
	asked := false
	o := cluster.JobOptions{Groups: 16, Pace: func(s float64) float64 {
		if !asked {
			return min(100_000*s, 19_999)
		}
		return 20_000
	}}
	o.Changed = func(r cluster.Report) { asked = asked || r.State == cluster.Refused }
	j := fragileJob(t, 1<<31, 2, o)
	reply := j.Ask(reconfig.Request{Nodes: 4}) // of three new ones one starts
	out, err := j.Run(context.Background())
	if err != nil || out.Events != 20_000 || out.Committed != 20_000 {
		t.Errorf("%d events, %d committed, %v", out.Events, out.Committed, err)
	}
	if r := <-reply; r.State != cluster.Refused || !strings.Contains(r.Error, ": no memory for another one") {
		t.Errorf("%+v", r)
	}
}

// An interrupted job brings to its end what it began.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	o := cluster.JobOptions{Nodes: 2, Groups: 16, Batch: 100, Completed: func(cluster.Completion) {
		if n++; n == 500 {
			cancel()
		}
	}}
	out, err := fragileJob(t, 1<<31, 9, o).Run(ctx)
	if !errors.Is(err, context.Canceled) || out.Events != n || out.Committed != n || n < 500 || n == 20_000 {
		t.Errorf("%d of %d events, %d committed, %v", n, out.Events, out.Committed, err)
	}
}
