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

// sized is an exchange with so many items for each partition.
type sized struct {
	exchange
	of []int
}

func (s sized) size(partition int) int { return s.of[partition] }

func TestLargestFirst(t *testing.T) {
	s := &stage{tasks: make([]*task, 4), order: []int{0, 1, 2, 3}, sizes: make([]int, 4)}
	for _, c := range []struct {
		a, b, want []int
	}{
		{[]int{1, 2, 3, 4}, []int{0, 0, 0, 0}, []int{3, 2, 1, 0}},
		{[]int{5, 0, 1, 0}, []int{0, 9, 1, 0}, []int{1, 0, 2, 3}},
	} {
		s.mails = []exchange{sized{of: c.a}, sized{of: c.b}}
		if got := s.largestFirst(); !slices.Equal(got, c.want) {
			t.Errorf("%v and %v items: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
