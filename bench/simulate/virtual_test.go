package simulate

import (
	"context"
	"fmt"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/txn"
)

// put is an event of a hand-made batch: it writes a key and looks at others.
type put struct {
	key   int32
	reads []int32
	cost  float64
}

// made returns the events as a batch in which nothing aborts.
func made(t *testing.T, events []put) Work {
	t.Helper()
	app := txn.New("made")
	table := txn.NewTable[int32, int64](app, "rows")
	others := txn.NewParam(table, "others")
	write := txn.Upsert(table, "write", func(txn.Ctx, int32, *int64, bool) txn.Verdict { return txn.OK })
	ev := txn.On[int32, int64](app, "put", func(p *txn.Plan, i int32) {
		var args []txn.Arg
		for _, k := range events[i].reads {
			args = append(args, others.Of(p, k))
		}
		write.At(p, events[i].key, 0, args...)
	}, nil)
	in, err := engine.NewInspector(app)
	if err != nil {
		t.Fatal(err)
	}
	feed := app.NewFeed()
	for i := range events {
		ev.Push(feed, int32(i))
	}
	g, _ := in.Graph(feed)
	w := Work{Graph: g, Fail: make([]uint64, len(events)), Cost: make([]float64, len(g.Acc))}
	for e := range w.Fail {
		w.Fail[e] = committed
		for id := g.TxLo[e]; id < g.TxHi[e]; id++ {
			if !g.Acc[id].IsRead() {
				w.Cost[id] = events[e].cost
			}
		}
	}
	return w
}

// finest is the grain that leaves all choice to the strategy.
var finest = schedule.Grain{Events: 1, Fine: true, Operations: 1, RedoMax: 1 << 20}

func nanos(t *testing.T, w Work, strategy string, workers int, g schedule.Grain) float64 {
	t.Helper()
	x, err := Execute(w, schedule.MustParse(strategy), workers, g, Machine{})
	if err != nil {
		t.Fatalf("%s, %d workers: %v", strategy, workers, err)
	}
	return x.Nanos
}

// graphStrategies are those that the scheduler executes.
func graphStrategies() []string {
	var out []string
	for _, s := range schedule.Strategies() {
		if s.Kind() == schedule.Graph {
			out = append(out, s.String())
		}
	}
	return out
}

func TestChainHasNoSpeedUp(t *testing.T) {
	const n = 40
	var events []put
	for range n {
		events = append(events, put{key: 7, cost: 1})
	}
	w := made(t, events)
	if b := Path(w); b.Total != n || b.Longest != n {
		t.Errorf("bounds %+v", b)
	}
	for _, s := range graphStrategies() {
		for _, workers := range []int{1, 2, 5, 64} {
			if got := nanos(t, w, s, workers, finest); got != n {
				t.Errorf("%s, %d workers: %v, expected %d", s, workers, got, n)
			}
		}
	}
}

func TestIndependentOperationsScale(t *testing.T) {
	const n = 48
	var events []put
	for k := range int32(n) {
		events = append(events, put{key: k, cost: 1})
	}
	w := made(t, events)
	if b := Path(w); b.Total != n || b.Longest != 1 {
		t.Errorf("bounds %+v", b)
	}
	for _, s := range graphStrategies() {
		for _, workers := range []int{1, 2, 5, 48, 100} {
			want := float64((n + workers - 1) / workers)
			if got := nanos(t, w, s, workers, finest); got != want {
				t.Errorf("%s, %d workers: %v, expected %v", s, workers, got, want)
			}
		}
	}
}

func TestDiamond(t *testing.T) {
	w := made(t, []put{{1, nil, 1}, {2, []int32{1}, 1}, {3, []int32{1}, 1}, {4, []int32{2, 3}, 1}})
	if b := Path(w); b.Total != 4 || b.Longest != 3 {
		t.Errorf("bounds %+v", b)
	}
	for _, s := range graphStrategies() {
		want := 3.0
		switch s {
		case "lock":
			want = 4 // two that look at one row exclude each other
		case "nested":
			want = 4 // a component that is nearly one chain is one worker's
		}
		for workers := 1; workers <= 4; workers++ {
			if workers == 1 {
				if got := nanos(t, w, s, 1, finest); got != 4 {
					t.Errorf("%s, 1 worker: %v, expected 4", s, got)
				}
			} else if got := nanos(t, w, s, workers, finest); got != want {
				t.Errorf("%s, %d workers: %v, expected %v", s, workers, got, want)
			}
		}
	}
}

// A long operation keeps the next stratum from being begun, and nothing else does.
func TestBarrierBetweenStrata(t *testing.T) {
	w := made(t, []put{{1, nil, 1}, {2, nil, 10}, {3, []int32{1}, 1}, {4, []int32{3}, 1}})
	for s, want := range map[string]float64{
		"bfs-op-eager": 12, "bfs-op-lazy": 12, "bfs-chain-eager": 12, "ns-op-eager": 10, "dfs-op-eager": 10, "ns-chain-lazy": 10, "lock": 10, "tstream": 10,
	} {
		if got := nanos(t, w, s, 2, finest); got != want {
			t.Errorf("%s: %v, expected %v", s, got, want)
		}
	}
}

// What the scheduler costs is part of each call, and a worker that slept is late.
func TestMachine(t *testing.T) {
	w := made(t, []put{{1, nil, 5}, {2, []int32{1}, 5}, {3, []int32{1}, 5}})
	x, err := Execute(w, schedule.MustParse("ns-op-eager"), 2, finest, Machine{Call: 2, Wake: 3})
	if err != nil {
		t.Fatal(err)
	}
	// One goes on at once at 7, the other one begins at 10.
	if x.Nanos != 17 || x.Busy != 21 {
		t.Errorf("%+v", x)
	}
}

// A worker without work plans the next batch, and cannot be had meanwhile.
func TestPlanningMeanwhile(t *testing.T) {
	w := made(t, []put{{1, nil, 5}, {1, nil, 5}, {2, nil, 2}, {3, []int32{2, 1}, 5}})
	for _, c := range []struct {
		m    Machine
		want Execution
	}{
		{Machine{}, Execution{Nanos: 15, Busy: 17}},
		{Machine{Regions: 4, Plan: 2}, Execution{Nanos: 15, Busy: 17, Planned: 4}},
		{Machine{Regions: 1, Plan: 40}, Execution{Nanos: 42, Busy: 17, Planned: 1}},
	} {
		x, err := Execute(w, schedule.MustParse("ns-op-eager"), 2, finest, c.m)
		if err != nil || x != c.want {
			t.Errorf("%+v: %+v (%v), expected %+v", c.m, x, err, c.want)
		}
	}
}

// executed hands random batches that were executed to fn, with random costs.
func executed(t *testing.T, seed uint64, fn func(w Work)) {
	t.Helper()
	r := rng.New(seed, 21)
	shape := metamorphic.Shape{Keys: 2 + r.IntN(20), OpsMax: 1 + r.IntN(4), Tables: 1 + r.IntN(3)}
	shape.NoLate = shape.Tables == 3 // else some batches can only run serially
	events := metamorphic.Draw(r, 20+r.IntN(100), shape)
	input := func() (*program.Instance, error) {
		l := metamorphic.New(4)
		return &program.Instance{App: l.App, Source: l.Events.Slice(events)}, nil
	}
	err := each(context.Background(), input, 0, func(p *pipeline, _ int, feed *txn.Feed) error {
		var s steps
		if bad := p.build(feed, &s); bad != nil {
			return panicked(bad)
		}
		p.execute(schedule.MustParse("ns-op-eager"), finest, p.exec, &s)
		w := Work{Graph: &p.graph, Fail: p.x.Fail, Cost: make([]float64, len(p.x.Acc))}
		for id := range w.Cost {
			w.Cost[id] = float64(1 + r.IntN(9))
		}
		fn(w)
		if bad := p.finish(&s); bad != nil {
			return panicked(bad)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
}

// No strategy is faster than the bounds, and everything comes out again the same.
// One worker takes the sum of the costs; more only when it redoes something or
// runs an operation before another one of its transaction which then fails.
func TestBoundsHoldOnRandomBatches(t *testing.T) {
	aborts := 0
	seeds := 40
	if testing.Short() {
		seeds = 6
	}
	for seed := range uint64(metamorphic.Seeds(seeds)) {
		executed(t, seed, func(w Work) {
			b := Path(w)
			clean := true
			for _, f := range w.Fail {
				if f != committed {
					aborts++
					clean = false
				}
			}
			grain := schedule.Grain{Events: 1 + int(seed%5), Fine: seed%2 == 0, Operations: 1 + int(seed%7), RedoMax: int(seed % 30)}
			for _, name := range graphStrategies() {
				for _, workers := range []int{1, 2, 3, 8, 64} {
					at := fmt.Sprintf("seed %d, %s, %d workers", seed, name, workers)
					s := schedule.MustParse(name)
					x, err := Execute(w, s, workers, grain, Machine{Wake: 1, Spin: 0.25, Redo: 1})
					if err != nil {
						t.Fatalf("%s: %v", at, err)
					}
					if x.Nanos < b.Longest || x.Nanos*float64(workers) < b.Total || x.Busy < b.Total {
						t.Errorf("%s: %+v beats the bounds %+v", at, x, b)
					}
					inOrder := name == "lock" || classOf(s) == "ns-op" && !grain.Fine
					if workers == 1 && (clean || inOrder) && (x.Nanos != b.Total || x.Redone != 0) {
						t.Errorf("%s: %v and %d redone, operations take %v", at, x.Nanos, x.Redone, b.Total)
					}
					if again, err := Execute(w, s, workers, grain, Machine{Wake: 1, Spin: 0.25, Redo: 1}); err != nil || again != x {
						t.Errorf("%s: %+v and %+v (%v)", at, x, again, err)
					}
				}
			}
		})
	}
	if aborts == 0 {
		t.Error("nothing aborted: the test is about less than it says")
	}
}
