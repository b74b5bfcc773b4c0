package operators

import (
	"slices"
	"testing"
)

// A batch goes through the stages once for each time at which windows fire, but not more than so many times, and the
// watermark comes last.
func TestPasses(t *testing.T) {
	for _, n := range []int64{0, 1, 2, 3, passesMax, passesMax + 1, 1000} {
		e := &Exec{dues: []func(int64, []int64) []int64{func(_ int64, ends []int64) []int64 {
			for i := range n {
				ends = append(ends, 10*i, 10*i) // of two partitions
			}
			return ends
		}}}
		got := e.passes(Never)
		if !slices.IsSorted(got) || got[len(got)-1] != Never || len(got) > passesMax || n <= passesMax && len(got) != int(max(n, 1)) {
			t.Errorf("%d ends: %d", n, got)
		}
		for i := range got[:len(got)-1] {
			if i > 0 && got[i]-got[i-1] > 10*(n/passesMax+1) {
				t.Errorf("%d ends: %d", n, got)
			}
		}
	}
}
