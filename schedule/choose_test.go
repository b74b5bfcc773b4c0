package schedule

import (
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/tpg"
)

// world says what a batch is like and what it takes under a strategy, in ns per
// event, and what of it an operation takes in user functions.
type world func(batch int, s Strategy) (l Load, per, work float64)

// outcome is what came of a simulated run.
type outcome struct {
	last  map[string]int // batches of the last hundred, by strategy
	took  float64        // ns per event over all batches
	tried map[string]int
}

func simulate(batches int, w world) outcome {
	var c Chooser
	o := outcome{map[string]int{}, 0, map[string]int{}}
	for i := range batches {
		l, _, _ := w(i, Strategy{})
		s := c.Choose(l).Strategy
		l, per, work := w(i, s)
		useful := 0.0
		if s.Kind() == Graph {
			useful = work + 40
		}
		c.Took(l, int64(per*float64(l.Events)), useful)
		if i >= batches-100 {
			o.last[s.String()]++
		}
		o.tried[s.String()]++
		o.took += per / float64(batches)
	}
	return o
}

// constant is a world of one load in which strategies take what is given, those
// not named ten times the worst of them.
func constant(work float64, per map[string]float64) world {
	worst := 0.0
	for _, p := range per {
		worst = max(worst, p)
	}
	return func(_ int, s Strategy) (Load, float64, float64) {
		p, ok := per[s.String()]
		if !ok {
			p = 10 * worst
		}
		return Load{Events: 1000, Accesses: 5, Ops: 3, Workers: 2}, p, work
	}
}

func TestChooserSettlesOnTheFasterOne(t *testing.T) {
	for _, c := range []struct {
		serial, graph, work float64
		low, high           int // batches of the last hundred under the graph
	}{
		{60, 300, 0, 0, 2},     // nothing to win: hardly ever tried
		{400, 300, 0, 90, 100}, // found by trying
		{400, 392, 0, 0, 12},   // within noise: stays
		{40_000, 21_000, 13_000, 95, 100},
		{3000, 5000, 900, 0, 10}, // the guess was wrong
	} {
		o := simulate(300, constant(c.work, map[string]float64{"serial": c.serial, "ns-op-eager": c.graph}))
		if got := o.last["ns-op-eager"]; got < c.low || got > c.high {
			t.Errorf("serial %v, graph %v: %d of the last 100 batches under the graph, expected %d to %d; tried %v", c.serial, c.graph, got, c.low, c.high, o.tried)
		}
	}
}

// Expensive operations go to the graph after one serial batch.
func TestChooserDoesNotWasteTrials(t *testing.T) {
	o := simulate(7, constant(13_000, map[string]float64{"serial": 40_000, "ns-op-eager": 20_500}))
	if o.tried["serial"] != 1 {
		t.Errorf("%d of the first 7 batches ran serially, expected 1: %v", o.tried["serial"], o.tried)
	}
}

// The first batch under the graph grows its memory and may take several times as
// long as the next: it must not put the graph off for a hundred batches.
func TestChooserForgivesTheFirstBatch(t *testing.T) {
	first := true
	o := simulate(110, func(_ int, s Strategy) (Load, float64, float64) {
		l, per, work := constant(1000, map[string]float64{"serial": 3400, "ns-op-eager": 1900})(0, s)
		if s.Kind() == Graph && first {
			first = false
			per = 9000
		}
		return l, per, work
	})
	if o.last["ns-op-eager"] < 90 {
		t.Errorf("under the graph: %v", o.last)
	}
}

// The first batches of a run meet cold caches and grow memory: the graph, which comes
// after them, must not look like the faster one for long.
func TestChooserForgivesAColdStart(t *testing.T) {
	o := simulate(50, func(batch int, s Strategy) (Load, float64, float64) {
		l, per, work := constant(40, map[string]float64{"serial": 190, "ns-op-eager": 390})(batch, s)
		if batch < 2 {
			per *= 2.7
		}
		return l, per, work
	})
	if o.tried["serial"] < 38 {
		t.Errorf("%v", o.tried)
	}
}

func TestChooserFollowsAChange(t *testing.T) {
	o := simulate(600, func(batch int, s Strategy) (Load, float64, float64) {
		if batch < 200 {
			return constant(0, map[string]float64{"serial": 60, "ns-op-eager": 300})(batch, s)
		}
		return constant(3000, map[string]float64{"serial": 10_000, "ns-op-eager": 5500})(batch, s)
	})
	if o.last["ns-op-eager"] < 90 {
		t.Errorf("after operations became expensive: %v", o.last)
	}
}

// A strategy that the model holds for clearly faster is tried, and wins.
// Work that begins after batches without it: the graph, tried then for the first time,
// shows at once what work there is, and that must not be taken for what the serial
// batches before had, too.
func TestChooserFollowsWorkThatBegins(t *testing.T) {
	busy := constant(440, map[string]float64{"serial": 1000, "ns-op-eager": 560})
	idle := constant(0, map[string]float64{"serial": 57, "ns-op-eager": 270})
	o := simulate(400, func(i int, s Strategy) (Load, float64, float64) {
		w := idle
		if i/35%2 == 1 {
			w = busy
		}
		l, per, work := w(i, s)
		if i%70 == 34 { // the last idle batch has the first busy events
			_, more, _ := busy(i, s)
			per += (more - per) / 8
		}
		l.Accesses, l.Ops = 2, 2
		return l, per, work
	})
	// 205 idle batches and 195 busy ones, of which some at each change are lost.
	if best := (205*57 + 195*560) / 400.0; o.took > 1.15*best {
		t.Errorf("%.0f ns per event, %.0f at best; %v", o.took, best, o.tried)
	}
}

func TestChooserFindsAnotherGraphStrategy(t *testing.T) {
	o := simulate(400, func(batch int, s Strategy) (Load, float64, float64) {
		l, per, work := constant(10_000, map[string]float64{"serial": 30_000, "ns-op-eager": 29_000, "lock": 20_000})(batch, s)
		// Hot rows and aborts: speculation runs again and again, whole transactions do not.
		l.Aborted, l.Shape = 0.5, tpg.Shape{Events: 1000, Strata: 900, Path: 500, ChainLenMax: 900}
		return l, per, work
	})
	if o.last["lock"] < 90 {
		t.Errorf("lock is the fastest: %v, tried %v", o.last, o.tried)
	}
}

// Where the work alone takes all of the time there is nothing to try.
func TestChooserLeavesWhatCannotBeBeaten(t *testing.T) {
	o := simulate(1000, constant(10_000, map[string]float64{"serial": 30_000, "ns-op-eager": 15_300, "lock": 15_200, "ns-op-lazy": 15_100}))
	if other := 1000 - o.tried["ns-op-eager"]; other > 3 {
		t.Errorf("%d batches under others: %v", other, o.tried)
	}
}

// Under noise the chooser stays near the best, trials included.
func TestChooserLosesLittleUnderNoise(t *testing.T) {
	for seed := range uint64(20) {
		r := rng.New(seed, 1)
		serial, graph := 200+200*r.Float64(), 200+200*r.Float64()
		base := constant(0, map[string]float64{"serial": serial, "ns-op-eager": graph})
		o := simulate(1000, func(batch int, s Strategy) (Load, float64, float64) {
			l, per, work := base(batch, s)
			if s.Kind() == Graph && s.String() != "ns-op-eager" {
				per = 3 * max(serial, graph)
			}
			return l, per * (0.9 + 0.25*r.Float64()*r.Float64()), work
		})
		if best := min(serial, graph); o.took > 1.06*best {
			t.Errorf("seed %d: took %.0f on average, the best takes %.0f; tried %v", seed, o.took, best, o.tried)
		}
	}
}

func TestChooserKeepsSmallBatchesSerial(t *testing.T) {
	var c Chooser
	l := Load{Events: graphEventsMin - 1, Workers: 8, Ops: 1}
	for range 50 {
		if s := c.Choose(l).Strategy; s.Kind() != Serial {
			t.Fatalf("a batch of %d events ran under %s", l.Events, s)
		}
		c.Took(l, 1e9, 0)
	}
}

// The model sees what makes strategies differ.
func TestModel(t *testing.T) {
	base := Load{Events: 1000, Accesses: 4, Ops: 2, Workers: 2}
	hot := base
	hot.Shape = tpg.Shape{Events: 1000, Strata: 1900, Path: 1000, ChainLenMax: 1000}
	nsop, bfs, serial := MustParse("ns-op-eager"), MustParse("bfs-op-eager"), MustParse("serial")
	if model(&nsop, &base, 10_000) > 0.55*model(&serial, &base, 10_000) {
		t.Error("independent work is not expected to run in parallel")
	}
	if model(&nsop, &hot, 10_000) < 0.95*model(&serial, &hot, 10_000) {
		t.Error("one chain is expected to run in parallel")
	}
	if model(&bfs, &hot, 10_000) < model(&nsop, &hot, 10_000) {
		t.Error("a barrier per stratum is expected to cost nothing")
	}
	aborting := hot
	aborting.Aborted = 0.5
	if model(&bfs, &aborting, 10_000) <= model(&bfs, &hot, 10_000)*0.99 {
		t.Error("aborts are expected to cost nothing")
	}
}
