package cluster_test

import (
	"context"
	"testing"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/txn"
)

// log is a Keep that has nothing but the log.
type log struct{ cluster.Memory }

func (*log) Commit(*cluster.Checkpoint) error { return nil }

// rulesJob makes a job that keeps its log, of the application whose logic is exchanged.
func rulesJob(t *testing.T, keep cluster.Keep, list [][2]uint32) *cluster.Job {
	t.Helper()
	app, event := rules()
	local := &cluster.Local{Keep: keep, Engine: engine.Options{Workers: 1}, New: func() (*txn.App, error) { app, _ := rules(); return app, nil }}
	j, err := cluster.NewJob(app, event.Slice(list), cluster.JobOptions{
		Nodes: 2, Groups: 32, Batch: 50, Keep: keep, Pace: func(s float64) float64 { return 50_000 * s },
	}, local, local.Box())
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// I20: the log of what was routed, with what was changed and where, comes to the same state and results again, and to the same
// logic from the same event on.
func TestI20TheLogComesToTheSame(t *testing.T) {
	list := make([][2]uint32, 6000)
	for i := range list {
		list[i] = [2]uint32{uint32(i*7) % 100, 1000 + uint32(i*11)%100}
	}
	keep := &log{}
	j := rulesJob(t, keep, list)
	for _, q := range []reconfig.Request{
		{Nodes: 3, Settings: reconfig.Settings{Logic: map[string]string{"left": "2", "right": "3"}}},
		{Settings: reconfig.Settings{Logic: map[string]string{"left": "3"}, Strategy: "serial"}},
		{Nodes: 1},
	} {
		j.Ask(q)
	}
	first, err := j.Run(context.Background())
	if err != nil || len(first.Changes) != 2 {
		t.Fatalf("%v, %+v", err, first.Changes)
	}
	for range 3 {
		again, err := rulesJob(t, keep, list).Run(context.Background())
		if err != nil || again.Resumed != len(list) || again.State != first.State || again.Results != first.Results {
			t.Fatalf("%v, %d events of the log, %v, %v; want %v, %v", err, again.Resumed, again.State, again.Results, first.State, first.Results)
		}
		for i, c := range first.Changes {
			if got := again.Changes[i]; got.Seq != c.Seq || got.Text() != c.Text() {
				t.Errorf("from event %d on %s, want from %d on %s", got.Seq, got.Text(), c.Seq, c.Text())
			}
		}
	}
}

// I19: no more events are under way than Outstanding, and a batch, however long those wait for a group that comes slowly.
func TestI19EventsUnderWayAreBounded(t *testing.T) {
	const events, outstanding, batch = 20_000, 400, 100
	params := map[string]string{"keys": "200", "bytes": "20000"}
	local := &cluster.Local{
		LinkRate: 4 << 20, Engine: engine.Options{Workers: 1},
		New: func() (*txn.App, error) { return instance(t, 0, params).App, nil },
	}
	in, most, ended := instance(t, events, params), 0, 0
	var j *cluster.Job
	o := cluster.JobOptions{Nodes: 2, Groups: 4, Batch: batch, Outstanding: outstanding, Replicas: -1, Completed: func(c cluster.Completion) {
		ended++
		most = max(most, int(c.Seq)+1-ended)
	}}
	j, err := cluster.NewJob(in.App, in.Source, o, local, local.Box())
	if err != nil {
		t.Fatal(err)
	}
	reply := j.Ask(reconfig.Request{Nodes: 1, Migration: reconfig.Migration{Groups: 1}})
	out, err := j.Run(context.Background())
	if err != nil || out.Events != events {
		t.Fatalf("%d events, %v", out.Events, err)
	}
	if r := <-reply; r.State != cluster.Done {
		t.Error(r.State, r.Error)
	}
	if most >= outstanding+batch || out.HeldMax < outstanding/4 || out.HeldMax > outstanding+batch {
		t.Errorf("%d events were under way, %d waited", most, out.HeldMax)
	}
}

// I16: a request that changes nothing moves nothing, and owners, settings and copies are what they were.
func TestI16Noop(t *testing.T) {
	r := begin(t, 10_000, nil, cluster.JobOptions{Nodes: 2, Groups: 16})
	for _, q := range []reconfig.Request{{}, {Nodes: 2}, {Migration: reconfig.Migration{Stop: true}}, {Settings: reconfig.Settings{Logic: map[string]string{}}}} {
		if rep := r.do(q); rep.GroupsMoved != 0 || len(rep.Diff.Moves)+len(rep.Diff.Starts)+len(rep.Diff.Stops) != 0 || !rep.Diff.Settings.IsZero() || rep.BytesMoved != 0 {
			t.Errorf("%+v", rep)
		}
	}
	if out := r.end(10_000, nil); len(out.Changes) != 0 {
		t.Errorf("%+v", out.Changes)
	}
}

// waiting is a source that has a part of its events, and the others when it may go on.
type waiting struct {
	txn.Source
	left int
	more <-chan struct{}
}

func (s *waiting) Fill(ctx context.Context, f *txn.Feed, n int) error {
	if s.left == 0 {
		<-s.more
		s.left = 1 << 30
	}
	n = min(n, s.left)
	s.left -= n
	return s.Source.Fill(ctx, f, n)
}

// I17: while a source has nothing, what is asked for is done.
func TestI17SourceThatWaits(t *testing.T) {
	const events = 5000
	params := map[string]string{"keys": "500", "bytes": "10"}
	for _, pace := range []func(float64) float64{nil, func(s float64) float64 { return 100_000 * s }} {
		more := make(chan struct{})
		local := &cluster.Local{Engine: engine.Options{Workers: 1}, New: func() (*txn.App, error) { return instance(t, 0, params).App, nil }}
		in := instance(t, events, params)
		j, err := cluster.NewJob(in.App, &waiting{in.Source, 1000, more}, cluster.JobOptions{Groups: 32, Batch: 300, Pace: pace}, local, local.Box())
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan *cluster.Outcome)
		go func() {
			out, err := j.Run(context.Background())
			if err != nil {
				t.Error(err)
			}
			done <- out
		}()
		for _, q := range []reconfig.Request{{Nodes: 3, Migration: reconfig.Migration{Groups: 4, Gap: 2}}, {Nodes: 2}} {
			if r := <-j.Ask(q); r.State != cluster.Done || r.GroupsMoved == 0 {
				t.Errorf("%s: %d groups moved", r.State, r.GroupsMoved)
			}
		}
		close(more)
		out := <-done
		state, results := alone(t, events, params)
		if out.Events != events || out.State != state || out.Results != results {
			t.Errorf("%d events, %v, %v; want %v, %v", out.Events, out.State, out.Results, state, results)
		}
	}
}
