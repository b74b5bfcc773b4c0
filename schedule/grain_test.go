package schedule

import "testing"

// 20 us of operations for a claim, and one by one
// from 2 us on.
func TestGrain(t *testing.T) {
	for _, c := range []struct {
		op           float64
		ops, workers int
		events       int
		fine         bool
	}{{0, 8192, 1, 64, false}, {1000, 8192, 2, 10, false}, {10_000, 4096, 2, 2, true}, {50, 4096, 64, 8, false}, {50, 4096, 1000, 1, false}} {
		g := GrainFor(c.op, c.ops, 4096, c.workers)
		if g.Events != c.events || g.Fine != c.fine || g.Operations != 64 || g.RedoMax != 64+512 {
			t.Errorf("%+v: %+v", c, g)
		}
	}
}
