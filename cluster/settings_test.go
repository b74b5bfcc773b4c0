package cluster_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// rules is an application of two operators whose logic is exchanged together: a transaction adds what the one says to one
// key and what the other says to another, and its result tells what both were.
func rules() (*txn.App, *txn.Event[[2]uint32, [2]int64]) {
	app := txn.New("rules")
	table := txn.NewTable[uint32, [2]int64](app, "sums")
	variants := []txn.Variant[int64]{{Name: "1", Value: 1}, {Name: "2", Value: 2}, {Name: "3", Value: 3}, {Name: "like 1", Value: 1}}
	left, right := txn.NewLogic(app, "left", variants...), txn.NewLogic(app, "right", variants...)
	add := func(l *txn.Logic[int64]) func(txn.Ctx, struct{}, *[2]int64, bool) txn.Verdict {
		return func(_ txn.Ctx, _ struct{}, v *[2]int64, _ bool) txn.Verdict {
			v[0] += l.Now()
			v[1] = l.Now()
			return txn.OK
		}
	}
	one, other := txn.Upsert(table, "left", add(left)), txn.Upsert(table, "right", add(right))
	return app, txn.On(app, "event", func(p *txn.Plan, e [2]uint32) {
		one.At(p, e[0], struct{}{})
		other.At(p, e[1], struct{}{})
	}, func(out txn.Outcome, _ [2]uint32) [2]int64 {
		a, _ := one.After(out)
		b, _ := other.After(out)
		return [2]int64{a[1], b[1]}
	})
}

// I5, I16: a plan that exchanges the logic of two operators, moves groups and changes workers and strategy does so for all
// transactions from one event on; none sees one logic here and the other there. One that changes nothing is a noop.
func TestI5OneLogicPerTransaction(t *testing.T) {
	const events = 30_000
	local := &cluster.Local{Engine: engine.Options{Workers: 1}, New: func() (*txn.App, error) { app, _ := rules(); return app, nil }}
	app, event := rules()
	r, list := rng.New(3, 1), make([][2]uint32, events)
	for i := range list {
		list[i] = [2]uint32{uint32(r.IntN(300)), 1000 + uint32(r.IntN(300))}
	}
	seen := make([][2]int64, events)
	var last atomic.Bool
	o := cluster.JobOptions{Nodes: 2, Groups: 64, Pace: func(s float64) float64 {
		if last.Load() {
			return events
		}
		return min(50_000*s, events-1)
	}, Completed: func(c cluster.Completion) {
		a, n := binary.Varint(c.Result)
		b, _ := binary.Varint(c.Result[n:])
		seen[c.Seq] = [2]int64{a, b}
	}}
	j, err := cluster.NewJob(app, event.Slice(list), o, local, local.Box())
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
	both := func(v string) map[string]string { return map[string]string{"left": v, "right": v} }
	for i, q := range []reconfig.Request{
		{Settings: reconfig.Settings{Logic: both("2"), Strategy: "ns-op-eager", Workers: 2}, Nodes: 3},
		{Settings: reconfig.Settings{Logic: both("3")}, Nodes: 1},
		{Settings: reconfig.Settings{Logic: both("3")}},
		{Settings: reconfig.Settings{Logic: both("1"), Strategy: "serial", Workers: 1}, Rebalance: true, Nodes: 4},
		{Settings: reconfig.Settings{Logic: both("like 1")}},
	} {
		rep := <-j.Ask(q)
		if rep.State != cluster.Done || rep.Diff.Settings.IsZero() != (i == 2) {
			t.Errorf("%d: %+v", i, rep)
		}
	}
	last.Store(true)
	out := <-done
	compareRules(t, out, list, seen)
}

// compareRules compares results and state with what the changes of logic come to, one event after the other.
func compareRules(t *testing.T, out *cluster.Outcome, list [][2]uint32, seen [][2]int64) {
	t.Helper()
	app, event := rules()
	s, err := engine.NewSession(app, engine.Options{Workers: 1, Strategy: "serial", HashResults: true})
	if err != nil {
		t.Fatal(err)
	}
	changes, now := out.Changes, int64(1)
	for i, e := range list {
		for len(changes) > 0 && changes[0].Seq == uint64(i) {
			for name, variant := range changes[0].Logic {
				if err := app.SetLogic(name, variant); err != nil {
					t.Fatal(err)
				}
				now = map[string]int64{"1": 1, "2": 2, "3": 3, "like 1": 1}[variant]
			}
			changes = changes[1:]
		}
		event.Push(s.Feed(), e)
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
		if seen[i] != [2]int64{now, now} {
			t.Fatalf("event %d saw %v, want %d twice", i, seen[i], now)
		}
	}
	m, err := s.Close()
	if err != nil || out.Results != m.ResultsHash || out.State != storage.StateHash(app) || len(out.Changes) != 4 {
		t.Errorf("%v, %v, %d changes; want %v, %v", out.Results, out.State, len(out.Changes), m.ResultsHash, storage.StateHash(app))
	}
}

// What cannot be set is refused before anything is done.
func TestSettingsThatCannotBe(t *testing.T) {
	r := begin(t, 20_000, nil, cluster.JobOptions{})
	for _, s := range []reconfig.Settings{{Logic: map[string]string{"a": "b"}}, {Strategy: "best"}, {Workers: 65}, {Workers: -1}} {
		if rep := <-r.Ask(reconfig.Request{Settings: s, Nodes: 2}); rep.State != cluster.Refused || rep.Error == "" {
			t.Errorf("%+v: %s", s, rep.State)
		}
	}
	if n := slices.IndexFunc(r.Status(), func(rep cluster.Report) bool { return rep.State != cluster.Refused }); n >= 0 {
		t.Error(fmt.Sprint(r.Status()[n]))
	}
	r.end(20_000, nil)
}
