package peers

import (
	"context"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/storage/spill"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
	"github.com/heddle-stream/heddle/workloads/sl"
)

func heddle(strategy string) Peer {
	return Peer{
		Name: "heddle " + strategy, About: "engine.Run, strategy " + strategy,
		Prepare: func(in *Input) (Job, error) {
			var failed error
			if in.Memory > 0 {
				defer txn.OnNew(func(app *txn.App) { failed = spill.Limit(app, in.Memory, vfs.Disk{}, "") })()
			}
			app := sl.New(in.Keys, program.Cost{}, "none")
			return &heddleJob{app, in.Events, strategy}, failed
		},
	}
}

type heddleJob struct {
	app      *sl.App
	events   []sl.Event
	strategy string
}

// Run times all of engine.Run: starting workers, taking events in, planning and
// results too. The others have no latency histogram, so this has none either.
func (j *heddleJob) Run(ctx context.Context) error {
	next := 0
	source := program.Generated(len(j.events), func(f *txn.Feed) {
		e := &j.events[next]
		next++
		if e.IsDeposit {
			j.app.Deposits.Push(f, e.Deposit)
		} else {
			j.app.Transfers.Push(f, e.Transfer)
		}
	})
	_, err := engine.Run(ctx, j.app.App, source, engine.Options{Strategy: j.strategy, NoLatency: true})
	return err
}

func (j *heddleJob) State() (State, error) {
	return State{j.app.Accounts.All(), j.app.Books.All()}, nil
}

func (j *heddleJob) Close() error { return j.app.App.Close() }
