package cluster_test

import (
	"context"
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/txn"
)

// stepwise is a controller of one's own: two nodes from the second sample on, and one again when that is done.
type stepwise struct{ seen int }

func (c *stepwise) Next(s reconfig.Sample) *reconfig.Request {
	c.seen++
	switch {
	case s.Busy:
		return nil
	case c.seen == 2:
		return &reconfig.Request{Name: "out", Nodes: 2}
	case c.seen > 3 && len(s.Nodes) == 2:
		return &reconfig.Request{Name: "in", Nodes: 1, Migration: reconfig.Migration{Groups: 8}}
	}
	return nil
}

// ledger is an application: deposits to accounts.
func ledger() (*txn.App, *txn.Event[uint32, int64]) {
	app := txn.New("ledger")
	accounts := txn.NewTable[uint32, int64](app, "accounts")
	add := txn.Upsert(accounts, "add", func(_ txn.Ctx, _ struct{}, balance *int64, _ bool) txn.Verdict {
		*balance++
		return txn.OK
	})
	return app, txn.On(app, "deposit", func(p *txn.Plan, account uint32) { add.At(p, account, struct{}{}) },
		func(out txn.Outcome, _ uint32) int64 { v, _ := add.After(out); return v })
}

func Example() {
	app, deposits := ledger()
	local := &cluster.Local{New: func() (*txn.App, error) { app, _ := ledger(); return app, nil }}
	events := make([]uint32, 20_000)
	for i := range events {
		events[i] = uint32(i % 1000)
	}
	asked := 0
	o := cluster.JobOptions{
		Groups: 32, Controller: &stepwise{}, Sampling: time.Millisecond,
		Changed: func(r cluster.Report) {
			if r.State == cluster.Done {
				asked++
				fmt.Println(r.Request.Name, "moved", r.GroupsMoved, "groups in", r.Chunks, "chunks")
			}
		},
		Pace: func(seconds float64) float64 { // the last event comes when all is done
			if asked < 2 {
				return min(100_000*seconds, 19_999)
			}
			return 20_000
		},
	}
	job, err := cluster.NewJob(app, deposits.Slice(events), o, local, local.Box())
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := job.Run(context.Background())
	fmt.Println(out.Events, "events,", out.Committed, "committed", err)
	// Output:
	// out moved 16 groups in 1 chunks
	// in moved 16 groups in 2 chunks
	// 20000 events, 20000 committed <nil>
}
