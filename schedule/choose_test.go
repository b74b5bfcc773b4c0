package schedule

import "testing"

// simulate feeds a chooser batches that take what cost says and returns how many
// of the last hundred it ran under the graph.
func simulate(c *Chooser, batches, workers int, cost func(batch int, graph bool) float64) int {
	graphs := 0
	for i := range batches {
		s := c.Choose(1000, workers)
		graph := s.Kind() == Graph
		if graph && i >= batches-100 {
			graphs++
		}
		c.Took(s, 1000, int64(1000*cost(i, graph)))
	}
	return graphs
}

func constant(serial, graph float64) func(int, bool) float64 {
	return func(_ int, g bool) float64 {
		if g {
			return graph
		}
		return serial
	}
}

func TestChooserSettlesOnTheFasterOne(t *testing.T) {
	for _, c := range []struct {
		serial, graph float64
		low, high     int // batches of the last hundred under the graph
	}{
		{60, 300, 0, 0},     // nothing to win: hardly ever tried
		{400, 300, 90, 100}, // found by trying
		{400, 390, 0, 10},   // within noise: stays
		{40_000, 21_000, 95, 100},
		{3000, 5000, 0, 10}, // the guess was wrong
	} {
		if got := simulate(&Chooser{}, 300, 2, constant(c.serial, c.graph)); got < c.low || got > c.high {
			t.Errorf("serial %v, graph %v: %d of the last 100 batches under the graph, expected %d to %d", c.serial, c.graph, got, c.low, c.high)
		}
	}
}

// Expensive operations go to the graph after one serial batch.
func TestChooserDoesNotWasteTrials(t *testing.T) {
	var c Chooser
	serial := 0
	for range 7 {
		s := c.Choose(10_000, 2)
		if s.Kind() == Serial {
			serial++
		}
		c.Took(s, 10_000, int64(10_000*constant(40_000, 20_500)(0, s.Kind() == Graph)))
	}
	if serial != 1 {
		t.Errorf("%d of the first 7 batches ran serially, expected 1", serial)
	}
}

// The first batch under the graph grows its memory and may take several times as
// long as the next: it must not put the graph off for a hundred batches.
func TestChooserForgivesTheFirstBatch(t *testing.T) {
	var c Chooser
	first := true
	got := simulate(&c, 110, 2, func(_ int, graph bool) float64 {
		if graph && first {
			first = false
			return 9000
		}
		return constant(3400, 1900)(0, graph)
	})
	if got < 95 {
		t.Errorf("%d of the last 100 batches under the graph", got)
	}
}

func TestChooserFollowsAChange(t *testing.T) {
	got := simulate(&Chooser{}, 600, 2, func(batch int, graph bool) float64 {
		if batch < 200 {
			return constant(60, 300)(batch, graph)
		}
		return constant(10_000, 5500)(batch, graph)
	})
	if got < 90 {
		t.Errorf("%d of the last 100 batches under the graph after operations became expensive", got)
	}
}

func TestChooserKeepsSmallBatchesSerial(t *testing.T) {
	var c Chooser
	for range 50 {
		if s := c.Choose(graphEventsMin-1, 8); s.Kind() != Serial {
			t.Fatalf("a batch of %d events ran under %s", graphEventsMin-1, s)
		}
		c.Took(choices[chooseSerial], graphEventsMin-1, 1e9)
	}
}
