package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/txn"
)

const mortalEvents = 6000

var mortalParams = map[string]string{"keys": "400", "bytes": "100", "pairs": "30", "skew": "0.6"}

// mortal is a job that is rescaled while it runs, whose nodes die as they are told.
type mortal struct {
	*cluster.Job
	replies []<-chan cluster.Report
	failed  []string
}

func newMortal(t *testing.T, keep cluster.Keep, dies func(from, to reconfig.Node, m cluster.Message) bool) *mortal {
	t.Helper()
	local := &cluster.Local{
		New:    func() (*txn.App, error) { return instance(t, 0, mortalParams).App, nil },
		Engine: engine.Options{Workers: 1}, Keep: keep, Dies: dies,
	}
	in, x := instance(t, mortalEvents, mortalParams), &mortal{}
	o := cluster.JobOptions{
		Nodes: 2, Groups: 64, Batch: 100, Interval: time.Millisecond, Keep: keep, Checkpoints: 15 * time.Millisecond, Replicas: 0.5, Pause: time.Millisecond, LinkRate: 4 << 20,
		Pace: func(s float64) float64 { return 60_000 * s }, Failed: func(err error) { x.failed = append(x.failed, err.Error()) },
	}
	var err error
	if x.Job, err = cluster.NewJob(in.App, in.Source, o, local, local.Box()); err != nil {
		t.Fatal(err)
	}
	for _, q := range []reconfig.Request{{Nodes: 3}, {Nodes: 1}, {Nodes: 2}, {Rebalance: true}, {Nodes: 2, Migration: reconfig.Migration{Groups: 7}}} {
		x.replies = append(x.replies, x.Ask(q))
	}
	return x
}

// check compares what came of it with an undisturbed run.
func (x *mortal) check(t *testing.T, what string, out *cluster.Outcome, err error) {
	t.Helper()
	state, results := alone(t, mortalEvents, mortalParams)
	if err != nil || out.Events != mortalEvents || out.State != state || out.Results != results || out.Committed != mortalEvents {
		t.Fatalf("%s: %d events, %d committed, state %v, results %v, %v; want %v, %v; failed %v", what, out.Events, out.Committed, out.State, out.Results, err, state, results, x.failed)
	}
	for i, c := range x.replies {
		r := <-c
		startless := r.State == cluster.Refused && strings.Contains(r.Error, "the node died") // one that was to start did
		if r.State != cluster.Done && !startless {
			t.Errorf("%s: request %d is %s: %s", what, i, r.State, r.Error)
		}
	}
}

// I12: a node that dies before it sends any message, at the source or the destination of a move or elsewhere, is started
// anew with all others, and the job comes to what it comes to undisturbed, each group owned once, each request done.
func TestI12NodeDiesAtAnyStep(t *testing.T) {
	kinds := map[string]int{}
	var sends atomic.Int64
	x := newMortal(t, &cluster.Memory{}, func(reconfig.Node, reconfig.Node, cluster.Message) bool { sends.Add(1); return false })
	out, err := x.Run(context.Background())
	x.check(t, "nobody dies", out, err)
	if out.Checkpoints < 2 || out.Recoveries != 0 {
		t.Errorf("%d checkpoints, %d recoveries", out.Checkpoints, out.Recoveries)
	}
	recoveries, restarts := 0, 0
	seeds := metamorphic.Seeds(20)
	for seed := range uint64(seeds) {
		r := rng.New(seed, 81)
		var seen atomic.Int64
		at := map[int64]bool{}
		for range 1 + r.IntN(3) {
			at[1+int64(r.IntN(int(sends.Load())))] = true
		}
		var died atomic.Value
		x := newMortal(t, &cluster.Memory{}, func(_, _ reconfig.Node, m cluster.Message) bool {
			if !at[seen.Add(1)] {
				return false
			}
			died.Store(fmt.Sprintf("%T", m))
			return true
		})
		out, err := x.Run(context.Background())
		x.check(t, fmt.Sprintf("seed %d, deaths at %v", seed, at), out, err)
		recoveries += out.Recoveries
		if k, ok := died.Load().(string); ok {
			kinds[k]++
		}
		for _, rep := range out.Reports {
			restarts += rep.Restarts
		}
	}
	t.Logf("%d recoveries, %d requests begun again, last deaths before %v", recoveries, restarts, kinds)
	if recoveries < seeds || restarts < seeds/4 {
		t.Errorf("hardly anybody died: %d recoveries, %d requests begun again", recoveries, restarts)
	}
}

// Before each kind of message once.
func TestI12NodeDiesBeforeEachMessage(t *testing.T) {
	for _, kind := range []cluster.Message{
		&cluster.Image{}, &cluster.CopyRows{}, &cluster.Loans{}, &cluster.Results{}, &cluster.Piece{}, &cluster.Credit{}, &cluster.Final{}, &cluster.Progress{},
	} {
		for nth := range int64(3) {
			var seen atomic.Int64
			x := newMortal(t, &cluster.Memory{}, func(_, _ reconfig.Node, m cluster.Message) bool {
				return fmt.Sprintf("%T", m) == fmt.Sprintf("%T", kind) && seen.Add(1) == nth*5+1
			})
			out, err := x.Run(context.Background())
			x.check(t, fmt.Sprintf("%T, %d", kind, nth), out, err)
			if out.Recoveries != len(x.failed) || nth == 0 && out.Recoveries != 1 {
				t.Errorf("%T, %d: %d recoveries, %v", kind, nth, out.Recoveries, x.failed)
			}
		}
	}
}

// dying is a Keep with whom the job dies.
type dying struct {
	cluster.Keep
	left int // operations until then
}

var errDeath = errors.New("the job died")

func (k *dying) dies() bool { k.left--; return k.left < 0 }

func (k *dying) Log(index uint64, record []byte) error {
	if k.dies() {
		return errDeath
	}
	return k.Keep.Log(index, record)
}

func (k *dying) Commit(c *cluster.Checkpoint) error {
	if k.dies() {
		return errDeath
	}
	return k.Keep.Commit(c)
}

func (k *dying) Sync() error {
	if k.dies() {
		return errDeath
	}
	return k.Keep.Sync()
}

// I12: a job that dies before or after any record of its log, or a checkpoint, is gone on with by another one, which comes to
// what nobody disturbed comes to.
func TestI12JobDiesAtAnyStep(t *testing.T) {
	lives, seeds := 0, metamorphic.Seeds(12)
	for seed := range uint64(seeds) {
		r := rng.New(seed, 82)
		keep := &cluster.Memory{}
		for {
			x := newMortal(t, &dying{keep, 1 + r.IntN(120)}, nil)
			out, err := x.Run(context.Background())
			if lives++; errors.Is(err, errDeath) {
				continue
			}
			x.check(t, fmt.Sprintf("seed %d", seed), out, err)
			break
		}
	}
	if lives < 2*seeds {
		t.Errorf("%d lives of %d jobs", lives, seeds)
	}
}

// A node that dies of an event, again and again, ends the job with the reason.
func TestI12DeathOfAnEvent(t *testing.T) {
	j := fragileJob(t, 7777, 99, cluster.JobOptions{Nodes: 3, Groups: 16, Keep: &cluster.Memory{}})
	out, err := j.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "no such event") || out.Recoveries < 3 || out.Recoveries > 20 {
		t.Errorf("%v after %d recoveries", err, out.Recoveries)
	}
}

// I2, I6, I12: transactions that insert, delete and abort, whose rows go from node to node between checkpoints while nodes die.
func TestI12AnyTransactions(t *testing.T) {
	recoveries, seeds := 0, metamorphic.Seeds(30)
	for seed := range uint64(seeds) {
		r := rng.New(seed, 83)
		events := metamorphic.Draw(r, 1500, metamorphic.Shape{Keys: 10 + r.IntN(60), OpsMax: 1 + r.IntN(4), Tables: 3, Plain: true, NoLate: true, NoWindows: true})
		want := serially(t, events)
		keep := &cluster.Memory{}
		var seen atomic.Int64
		at := map[int64]bool{}
		for range 1 + r.IntN(3) {
			at[1+int64(r.IntN(600))] = true
		}
		local := &cluster.Local{
			New:    func() (*txn.App, error) { return metamorphic.NewUnwatched(loaded).App, nil },
			Engine: engine.Options{Workers: 1}, Keep: keep, Dies: func(_, _ reconfig.Node, _ cluster.Message) bool { return at[seen.Add(1)] },
		}
		got := outcome{results: make([]cluster.Result, len(events))}
		l := metamorphic.NewUnwatched(loaded)
		j, err := cluster.NewJob(l.App, l.Events.Slice(events), cluster.JobOptions{
			Nodes: 2, Groups: 16, Batch: 20, Interval: time.Millisecond, Keep: keep, Checkpoints: 3 * time.Millisecond, Replicas: 0.7, LinkRate: 1 << 16, Pause: time.Millisecond,
			Pace: func(s float64) float64 { return 20_000 * s },
			Completed: func(c cluster.Completion) {
				got.results[c.Seq] = cluster.Result{Seq: c.Seq, Committed: c.Committed, Bytes: c.Result}
			},
		}, local, local.Box())
		if err != nil {
			t.Fatal(err)
		}
		for range 12 {
			j.Ask(reconfig.Request{Nodes: 1 + r.IntN(4)})
		}
		out, err := j.Run(context.Background())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		recoveries += out.Recoveries
		got.state = out.State
		if d := got.difference(&want); d != "" {
			t.Fatalf("seed %d, deaths at %v, %d recoveries, %d checkpoints: %s", seed, at, out.Recoveries, out.Checkpoints, d)
		}
	}
	if recoveries < seeds/2 {
		t.Errorf("%d recoveries", recoveries)
	}
}
