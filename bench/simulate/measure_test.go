package simulate

import (
	"slices"
	"testing"
)

func TestShareOfTasks(t *testing.T) {
	for _, c := range []struct {
		accesses []int
		workers  int
		want     float64
	}{
		{[]int{5, 5}, 1, 1},
		{[]int{5, 5}, 2, 0.5},
		{[]int{5, 5}, 100, 0.5},         // no more than there are tasks
		{[]int{8, 1, 1}, 2, 0.8},        // as long as the longest
		{[]int{1, 1, 1, 1}, 3, 0.5},     // one of them takes two
		{[]int{0, 0, 0, 0}, 4, 1.0 / 4}, // nothing to do, whatever that takes
	} {
		var tasks []task
		for _, n := range c.accesses {
			tasks = append(tasks, task{accesses: n})
		}
		if got := share(tasks, c.workers); got != c.want {
			t.Errorf("%v on %d workers: %v, expected %v", c.accesses, c.workers, got, c.want)
		}
	}
}

func TestSpreadOverTheTrace(t *testing.T) {
	for _, c := range []struct {
		batches, n int
		want       []int
	}{{1, 4, []int{0}}, {3, 0, []int{0, 1, 2}}, {26, 4, []int{3, 9, 16, 22}}, {2, 1, []int{1}}} {
		if got := spread(c.batches, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%d of %d batches: %v, expected %v", c.n, c.batches, got, c.want)
		}
	}
}

// An interruption of a processor is no part of an operation; a slow operation is.
func TestUndisturbed(t *testing.T) {
	if got := undisturbed([]float64{100, 120, 110, 5_000_000, 9_000}); !slices.Equal(got, []float64{100, 120, 110, 9_000}) {
		t.Error(got)
	}
}

func TestQuantilesKeepTheMean(t *testing.T) {
	if got := quantiles([]float64{30, 10, 20, 40}, 4); !slices.Equal(got, []float64{0.4, 0.8, 1.2, 1.6}) {
		t.Error(got)
	}
	if got := quantiles(nil, 2); !slices.Equal(got, []float64{1, 1}) {
		t.Error(got)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.v); got != c.want {
			t.Errorf("median of %v is %v, expected %v", c.v, got, c.want)
		}
	}
}

func TestEveryStrategyHasAClass(t *testing.T) {
	for _, name := range graphStrategies() {
		if s := first(name); !slices.Contains(classes, classOf(s)) {
			t.Errorf("%s has no class", name)
		}
	}
	for _, class := range classes {
		if classOf(first(class)) != class {
			t.Errorf("%s is measured with %s", class, first(class))
		}
	}
}
