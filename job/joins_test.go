package job_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/operators"
)

func odd(r *reading) bool  { return r.Value%2 == 1 }
func even(r *reading) bool { return r.Value%2 == 0 }

// sides splits a stream in two.
func sides(s operators.Stream[reading]) (left, right operators.Keyed[string, reading]) {
	return operators.KeyBy(operators.Filter(s, "odd", odd), keyOf), operators.KeyBy(operators.Filter(s, "even", even), keyOf)
}

func pair(_ string, l, r *reading, emit func(string)) {
	if r == nil {
		r = &reading{Value: -1}
	}
	emit(fmt.Sprint(l.Value, " ", r.Value))
}

// checkJoin compares a join with a model, for batches of some sizes, whose results come in one
// order.
func checkJoin(t *testing.T, build func(operators.Stream[reading]) operators.Stream[string], model func(items []reading) []string) {
	t.Helper()
	for seed := range uint64(5) {
		items := draw(seed, 2000)
		want := model(onTime(items, 15))
		slices.Sort(want)
		var order []string
		for _, batch := range []int{2000, 1, 64} {
			got, _, err := run(t, items, 15, build, job.Options{}, batch)
			if err != nil {
				t.Fatal(err)
			}
			if order == nil {
				order = slices.Clone(got)
			}
			if !slices.Equal(got, order) {
				t.Fatalf("seed %d, batch %d: another order: %s", seed, batch, firstDifference(got, order))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) || len(want) < 100 {
				t.Fatalf("seed %d, batch %d: %d results, want %d: %s", seed, batch, len(got), len(want), firstDifference(got, want))
			}
		}
	}
}

func TestIntervalJoinLikeNestedLoops(t *testing.T) {
	for _, bounds := range [][2]int64{{-10, 25}, {5, 40}, {-30, -3}} {
		checkJoin(t, func(s operators.Stream[reading]) operators.Stream[string] {
			left, right := sides(s)
			return operators.IntervalJoin(left, right, "pairs", time.Duration(bounds[0]), time.Duration(bounds[1]), pair)
		}, func(items []reading) (want []string) {
			for _, l := range items {
				for _, r := range items {
					if d := r.At - l.At; odd(&l) && even(&r) && l.Key == r.Key && d >= bounds[0] && d <= bounds[1] {
						want = append(want, fmt.Sprint(l.Value, " ", r.Value, "@", max(l.At, r.At)))
					}
				}
			}
			return want
		})
	}
}

func TestTemporalJoinLikeALookup(t *testing.T) {
	checkJoin(t, func(s operators.Stream[reading]) operators.Stream[string] {
		left, right := sides(s)
		return operators.TemporalJoin(left, right, "rows", pair)
	}, func(items []reading) (want []string) {
		for _, l := range items {
			if !odd(&l) {
				continue
			}
			latest := reading{Value: -1, At: math.MinInt64}
			for _, r := range items {
				if even(&r) && r.Key == l.Key && r.At <= l.At && r.At >= latest.At {
					latest = r
				}
			}
			want = append(want, fmt.Sprint(l.Value, " ", latest.Value, "@", l.At))
		}
		return want
	})
}

func TestAggregators(t *testing.T) {
	items := draw(2, 5000)
	lines := map[string]bool{}
	out, _, err := run(t, items, 100, func(s operators.Stream[reading]) operators.Stream[string] {
		all := operators.All(s)
		w := operators.Tumbling(100_000)
		value := func(r *reading) int64 { return r.Value }
		return operators.Union("all",
			operators.Aggregate(all, "count", w, operators.Count[reading](), func(_ uint64, _ operators.Span, a *operators.Counting) string { return fmt.Sprint("count ", a.N) }),
			operators.Aggregate(all, "sum", w, operators.Sum(value), func(_ uint64, _ operators.Span, a *operators.Summing) string {
				return fmt.Sprintf("sum %d %d %.3f", a.N, a.Sum, a.Mean())
			}),
			operators.Aggregate(all, "range", w, operators.Range(value), func(_ uint64, _ operators.Span, a *operators.Ranging[int64]) string {
				return fmt.Sprint("range ", a.N, a.Min, a.Max)
			}),
			operators.Aggregate(all, "distinct", w, operators.Distinct(func(r *reading) uint64 { return uint64(r.At)<<20 | uint64(r.Value) }), func(_ uint64, _ operators.Span, a *operators.Sketch) string {
				return fmt.Sprintf("distinct %v", math.Abs(a.Estimate()/4990-1) < 0.1)
			}),
		)
	}, job.Options{}, 64)
	for _, s := range out {
		s, _, _ = strings.Cut(s, "@")
		lines[s] = true
	}
	n, sum, low, high := 0, int64(0), int64(math.MaxInt64), int64(0)
	for _, r := range items {
		if r.At >= 0 { // what is before is in another window
			n, sum, low, high = n+1, sum+r.Value, min(low, r.Value), max(high, r.Value)
		}
	}
	for _, want := range []string{
		fmt.Sprint("count ", n), fmt.Sprintf("sum %d %d %.3f", n, sum, float64(sum)/float64(n)), fmt.Sprint("range ", n, low, high), "distinct true",
	} {
		if err != nil || !lines[want] {
			t.Errorf("no %q in %v, %v", want, slices.Sorted(maps.Keys(lines)), err)
		}
	}
}

// What is left out goes aside, in order.
func TestSideOutput(t *testing.T) {
	items := draw(1, 1000)
	items[500].At = 1_000_000
	j := operators.New("aside")
	in := operators.Slice(items, at)
	in.Disorder, in.LeapMax = 5, 10_000
	var late, far []reading
	in.Late = func(r *reading) { late = append(late, *r) }
	in.Far = func(r *reading) { far = append(far, *r) }
	kept := operators.Digest(operators.From(j, "in", in), "out")
	g, err := j.Plan()
	if err != nil {
		t.Fatal(err)
	}
	m, err := job.Run(t.Context(), g, job.Options{})
	others := slices.Concat(items[:500], items[501:])
	if err != nil || len(far) != 1 || far[0] != items[500] || int64(len(late)) != m.Late || len(late) < 100 || int(kept.Count()) != len(onTime(others, 5)) || int(kept.Count())+len(late) != 999 {
		t.Errorf("%d kept, %d late, %d far, %v", kept.Count(), len(late), len(far), err)
	}
}

// Two streams meet in windows of which each key has its own.
func TestCoGroupOwnWindows(t *testing.T) {
	items := draw(17, 2000)
	tell := func(key string, w operators.Span, left, right []reading) string {
		return fmt.Sprint(key, " ", w, left, right)
	}
	for name, c := range map[string]struct {
		w    operators.Windows
		size int64
		ends bool // a window ends as its first item says
	}{"sessions": {operators.Sessions(12), 12, false}, "after the first": {operators.After(30), 30, true}} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for key, some := range byKey(onTime(items, 15)) {
				slices.SortStableFunc(some, func(a, b reading) int {
					return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Value%2, b.Value%2))
				})
				for len(some) > 0 {
					w, n := operators.Span{Start: some[0].At, End: some[0].At + c.size}, 0
					var left, right []reading
					for ; n < len(some) && some[n].At < w.End; n++ {
						if !c.ends {
							w.End = some[n].At + c.size
						}
						if odd(&some[n]) {
							left = append(left, some[n])
						} else {
							right = append(right, some[n])
						}
					}
					want = append(want, fmt.Sprint(tell(key, w, left, right), "@", w.End-1))
					some = some[n:]
				}
			}
			ways(t, items, func(s operators.Stream[reading]) operators.Stream[string] {
				left, right := sides(s)
				return operators.CoGroup(left, right, "pairs", c.w, func(k string, w operators.Span, left, right []reading, emit func(string)) {
					emit(tell(k, w, left, right))
				})
			}, want)
		})
	}
}
