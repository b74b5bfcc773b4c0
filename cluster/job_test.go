package cluster_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
	"github.com/heddle-stream/heddle/workloads/micro"
)

// instance makes a micro workload.
func instance(t *testing.T, events int, params map[string]string) *program.Instance {
	t.Helper()
	c, err := micro.Program.Config(params)
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

// alone returns the hashes of an undisturbed run.
func alone(t *testing.T, events int, params map[string]string) (state, results storage.Hash) {
	t.Helper()
	in := instance(t, events, params)
	m, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{Strategy: "serial", HashResults: true})
	if err != nil {
		t.Fatal(err)
	}
	return storage.StateHash(in.App), m.ResultsHash
}

// running is a job with its nodes in this process.
type running struct {
	*cluster.Job
	t    *testing.T
	last atomic.Bool // the last event may come
	done chan struct{}
	out  *cluster.Outcome
	err  error
}

func begin(t *testing.T, events int, params map[string]string, o cluster.JobOptions) *running {
	t.Helper()
	l := &cluster.Local{
		New:    func() (*txn.App, error) { return instance(t, 0, params).App, nil },
		Engine: engine.Options{Workers: 1},
	}
	in := instance(t, events, params)
	r := &running{t: t, done: make(chan struct{})}
	if o.Pace == nil {
		o.Pace = func(seconds float64) float64 { // the job goes on until the test has asked for all
			if r.last.Load() {
				return float64(events)
			}
			return min(100_000*seconds, float64(events-1))
		}
	}
	j, err := cluster.NewJob(in.App, in.Source, o, l, l.Box())
	if err != nil {
		t.Fatal(err)
	}
	r.Job = j
	go func() {
		r.out, r.err = j.Run(context.Background())
		close(r.done)
	}()
	return r
}

// end waits for the end and compares what came of it.
func (r *running) end(events int, params map[string]string) *cluster.Outcome {
	r.t.Helper()
	r.last.Store(true)
	<-r.done
	if r.err != nil {
		r.t.Fatal(r.err)
	}
	state, results := alone(r.t, events, params)
	if r.out.Events != events || r.out.State != state || r.out.Results != results {
		r.t.Fatalf("%d events, state %v, results %v; want %d, %v, %v", r.out.Events, r.out.State, r.out.Results, events, state, results)
	}
	return r.out
}

// do asks and waits for the end of the request.
func (r *running) do(q reconfig.Request) cluster.Report {
	r.t.Helper()
	rep := <-r.Ask(q)
	if rep.State != cluster.Done {
		r.t.Fatalf("%+v: %s %s", q, rep.State, rep.Error)
	}
	return rep
}

// I2, I15, I17: nodes come and go while events do, by every way to move groups, and back.
func TestRescale(t *testing.T) {
	const events = 40_000
	params := map[string]string{"keys": "2000", "bytes": "200", "pairs": "20"}
	for name, m := range map[string]reconfig.Migration{
		"default": {}, "fluid": {Groups: 1}, "all at once": {Groups: 1 << 12}, "ahead": {Bytes: 20_000, Ahead: true, Order: reconfig.HotFirst}, "stop": {Stop: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, replicas := range []float64{0, 0.5, 1} {
				r := begin(t, events, params, cluster.JobOptions{Nodes: 1, Groups: 64, Replicas: replicas})
				if rep := r.do(reconfig.Request{Nodes: 3, Migration: m}); rep.GroupsMoved != 42 || 10*rep.BytesMoved < 9*rep.BytesToMove {
					t.Errorf("%+v", rep)
				}
				r.do(reconfig.Request{Nodes: 2, Migration: m})
				r.do(reconfig.Request{Rebalance: true, Migration: m})
				r.do(reconfig.Request{})
				r.do(reconfig.Request{Nodes: 1, Migration: m})
				out := r.end(events, params)
				if got := len(out.Reports); got != 5 {
					t.Errorf("%d reports", got)
				}
			}
		})
	}
}

// I18: requests are done one after the other, one of a name once, and what cannot be is refused.
func TestRequests(t *testing.T) {
	const events = 30_000
	params := map[string]string{"keys": "500", "bytes": "10"}
	r := begin(t, events, params, cluster.JobOptions{Nodes: 2, Groups: 32})
	var replies []<-chan cluster.Report
	for _, q := range []reconfig.Request{
		{Name: "a", Nodes: 3},
		{Name: "b", Nodes: 1},
		{Name: "a", Nodes: 3},
		{Nodes: 100},
		{Moves: []reconfig.Move{{Group: 40, From: 0, To: 1}}},
		{Migration: reconfig.Migration{Order: "no such"}},
		{Name: "dry", Nodes: 2, DryRun: true},
	} {
		replies = append(replies, r.Ask(q))
	}
	var got []cluster.State
	for _, c := range replies {
		got = append(got, (<-c).State)
	}
	want := []cluster.State{cluster.Done, cluster.Done, cluster.Done, cluster.Refused, cluster.Refused, cluster.Refused, cluster.Done}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	all := r.Status()
	if len(all) != 6 || all[0].GroupsMoved != 10 || all[1].GroupsMoved != 21 || all[5].GroupsMoved != 0 || len(all[5].Diff.Moves) != 16 {
		t.Errorf("%+v", all)
	}
	r.end(events, params)
	if rep := <-r.Ask(reconfig.Request{Nodes: 2}); rep.State != cluster.Refused || r.Status() != nil {
		t.Errorf("after the end: %+v, %v", rep, r.Status())
	}
}

// Events count from when they arrived by the pace, also those that waited because nobody was to go on.
func TestArrivalsAreThoseOfThePace(t *testing.T) {
	const events = 20_000
	params := map[string]string{"keys": "2000", "bytes": "1000"}
	arrivals := make([]int64, events)
	var last atomic.Bool
	o := cluster.JobOptions{Nodes: 2, Groups: 64, Completed: func(c cluster.Completion) { arrivals[c.Seq] = c.Arrival }}
	o.Pace = func(seconds float64) float64 {
		if last.Load() {
			return 100_000 * seconds
		}
		return min(100_000*seconds, events-1)
	}
	r := begin(t, events, params, o)
	r.do(reconfig.Request{Nodes: 1, Migration: reconfig.Migration{Stop: true}})
	r.do(reconfig.Request{Nodes: 2})
	last.Store(true)
	r.end(events, params)
	const gap, apart = 10_000, 3_000 // ns: 100,000 events a second, and what bisection leaves open
	for i, at := range arrivals[:events-1] {
		if off := at - arrivals[0] - int64(i)*gap; off < -apart || off > apart {
			t.Fatalf("event %d arrived %d ns off its time", i, off)
		}
	}
}
