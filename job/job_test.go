package job_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/operators"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// reading is an item of the tests.
type reading struct {
	Key   string
	At    int64
	Value int64
}

func at(r *reading) int64     { return r.At }
func keyOf(r *reading) string { return r.Key }

// draw returns items whose times are out of order by up to 40.
func draw(seed uint64, n int) (items []reading) {
	r := rng.New(seed, 1)
	for i := range n {
		items = append(items, reading{fmt.Sprint("k", r.IntN(30)), int64(i + r.IntN(40) - 20), int64(r.IntN(1000))})
	}
	return items
}

// onTime returns the items that are not more than disorder behind the latest one before them.
func onTime(items []reading, disorder int64) (kept []reading) {
	latest := items[0].At
	for _, r := range items {
		if r.At >= latest-disorder {
			kept = append(kept, r)
		}
		latest = max(latest, r.At)
	}
	return kept
}

// run executes a job of items that ends with what comes in order, as text.
func run(t *testing.T, items []reading, disorder int64, build func(operators.Stream[reading]) operators.Stream[string], o job.Options, batch int) ([]string, job.Metrics, error) {
	t.Helper()
	j := operators.New("test")
	in := operators.Slice(items, at)
	in.Disorder = disorder
	var got []string
	operators.Each(build(operators.From(j, "in", in)), "out", func(s *string, at int64) error {
		got = append(got, fmt.Sprint(*s, "@", at))
		return nil
	})
	g, err := j.Plan()
	if err != nil {
		t.Fatal(err)
	}
	o.Passes = append(job.Passes(), job.Batch(batch))
	if o.Env.FS == nil {
		o.Env.FS, o.Env.Dir = &vfs.Memory{}, "w"
	}
	m, err := job.Run(context.Background(), g, o)
	return got, m, err
}

type sum struct{ n, total int64 }

var sums = operators.Aggregator[reading, sum]{
	Add:   func(acc *sum, r *reading) { acc.n, acc.total = acc.n+1, acc.total+r.Value },
	Merge: func(into, from *sum) { into.n, into.total = into.n+from.n, into.total+from.total },
}

func told(key string, w operators.Span, acc *sum) string {
	return fmt.Sprint(key, " ", w, " ", acc.n, " ", acc.total)
}

func listed(key string, w operators.Span, items []reading, emit func(string)) {
	var acc sum
	for i := range items {
		sums.Add(&acc, &items[i])
	}
	emit(told(key, w, &acc))
}

// windowsOf lists, naively, the windows of a time.
var windowsOf = map[string]struct {
	w  operators.Windows
	of func(t int64) []operators.Span
}{
	"tumbling": {operators.Tumbling(100), func(t int64) []operators.Span { return spans(t, 100, 100, 0) }},
	"offset":   {operators.Tumbling(100).Offset(30), func(t int64) []operators.Span { return spans(t, 100, 100, 30) }},
	"sliding":  {operators.Sliding(90, 60), func(t int64) []operators.Span { return spans(t, 90, 60, 0) }},
	"uneven":   {operators.Sliding(100, 30), func(t int64) []operators.Span { return spans(t, 100, 30, 0) }},
	"growing": {operators.Cumulating(20, 100), func(t int64) (all []operators.Span) {
		for start := t/100*100 - 200; start < t+200; start += 100 {
			for end := start + 20; end <= start+100; end += 20 {
				if t >= start && t < end {
					all = append(all, operators.Span{Start: start, End: end})
				}
			}
		}
		return all
	}},
}

func spans(t, size, slide, offset int64) (all []operators.Span) {
	for start := (t/slide-20)*slide + offset; start <= t; start += slide {
		if t < start+size {
			all = append(all, operators.Span{Start: start, End: start + size})
		}
	}
	return all
}

// Windows of all kinds have what a map of windows would have, kept as one value and as lists.
func TestWindowsLikeAMap(t *testing.T) {
	for name, c := range windowsOf {
		for seed := range uint64(5) {
			items := draw(seed, 3000)
			model := map[operators.Span]map[string]*sum{}
			for _, r := range onTime(items, 15) {
				for _, w := range c.of(r.At) {
					if model[w] == nil {
						model[w] = map[string]*sum{}
					}
					if model[w][r.Key] == nil {
						model[w][r.Key] = &sum{}
					}
					sums.Add(model[w][r.Key], &r)
				}
			}
			var want []string
			for w, keys := range model {
				for key, acc := range keys {
					want = append(want, fmt.Sprint(told(key, w, acc), "@", w.End-1))
				}
			}
			slices.Sort(want)
			for _, batch := range []int{7, 500, 5000} {
				for _, build := range []func(operators.Stream[reading]) operators.Stream[string]{
					func(s operators.Stream[reading]) operators.Stream[string] {
						return operators.Aggregate(operators.KeyBy(s, keyOf), "sum", c.w, sums, told)
					},
					func(s operators.Stream[reading]) operators.Stream[string] {
						return operators.Process(operators.KeyBy(s, keyOf), "list", c.w, listed)
					},
				} {
					got, _, err := run(t, items, 15, build, job.Options{}, batch)
					slices.Sort(got)
					if err != nil || !slices.Equal(got, want) {
						t.Fatalf("%s, seed %d, batch %d: %d results, want %d; %v\n%s", name, seed, batch, len(got), len(want), err, firstDifference(got, want))
					}
				}
			}
		}
	}
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("%q, want %q", got[i], want[i])
		}
	}
	return ""
}

// Sessions are what one gets by sorting the items of a key and cutting where there is a gap.
func TestSessionsLikeSortedItems(t *testing.T) {
	for seed := range uint64(10) {
		items := draw(seed, 3000)
		byKey := map[string][]reading{}
		for _, r := range onTime(items, 15) {
			byKey[r.Key] = append(byKey[r.Key], r)
		}
		var want []string
		for key, all := range byKey {
			slices.SortStableFunc(all, func(a, b reading) int { return int(a.At - b.At) })
			for len(all) > 0 {
				n, acc := 1, sum{}
				for n < len(all) && all[n].At-all[n-1].At < 25 {
					n++
				}
				for i := range n {
					sums.Add(&acc, &all[i])
				}
				w := operators.Span{Start: all[0].At, End: all[n-1].At + 25}
				want = append(want, fmt.Sprint(told(key, w, &acc), "@", w.End-1))
				all = all[n:]
			}
		}
		slices.Sort(want)
		for _, batch := range []int{7, 500, 5000} {
			for name, build := range map[string]func(operators.Stream[reading]) operators.Stream[string]{
				"sum": func(s operators.Stream[reading]) operators.Stream[string] {
					return operators.Aggregate(operators.KeyBy(s, keyOf), "sum", operators.Sessions(25), sums, told)
				},
				"list": func(s operators.Stream[reading]) operators.Stream[string] {
					return operators.Process(operators.KeyBy(s, keyOf), "list", operators.Sessions(25), listed)
				},
			} {
				got, _, err := run(t, items, 15, build, job.Options{}, batch)
				slices.Sort(got)
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("%s, seed %d, batch %d: %d results, want %d; %v\n%s", name, seed, batch, len(got), len(want), err, firstDifference(got, want))
				}
			}
		}
	}
}

// Results come in the same order whatever the batches, the workers and the memory are.
func TestOrderOfResults(t *testing.T) {
	history := func(key string, s *string, r *reading, _ int64, emit func(string)) {
		*s = fmt.Sprint(*s, ",", r.Value)
		emit(key + *s)
	}
	inOneOrder(t, func(s operators.Stream[reading]) operators.Stream[string] {
		perKey := operators.Aggregate(operators.KeyBy(s, keyOf), "sum", operators.Sliding(90, 60), sums, func(key string, w operators.Span, acc *sum) reading {
			return reading{key[:1+len(key)/3], w.End - 1, acc.total}
		})
		return operators.Fold(operators.KeyBy(perKey, keyOf), "history", history)
	})
	inOneOrder(t, func(s operators.Stream[reading]) operators.Stream[string] {
		last := operators.Fold(operators.KeyBy(s, keyOf), "last", func(key string, last *int64, r *reading, at int64, emit func(reading)) {
			emit(reading{key[:1], at, r.Value - *last})
			*last = r.Value
		})
		all := operators.Union("all", s, operators.Filter(last, "some", func(r *reading) bool { return r.Value > 0 }))
		return operators.Fold(operators.KeyBy(all, func(r *reading) string { return fmt.Sprint(len(r.Key)) }), "history", func(key string, s *string, r *reading, at int64, emit func(string)) {
			if *s = fmt.Sprint(*s, ",", r.Value); len(*s) > 100 {
				*s = (*s)[50:]
			}
			emit(key + *s)
		})
	})
}

// inOneOrder runs a job with batches of several sizes and on more and more workers.
func inOneOrder(t *testing.T, build func(s operators.Stream[reading]) operators.Stream[string]) {
	t.Helper()
	items := draw(1, 5000)
	var want []string
	for i, batch := range []int{5000, 1, 33, 700} {
		got, m, err := run(t, items, 15, build, job.Options{Workers: 1 + i}, batch)
		if err != nil || m.Events != 5000 || m.Late == 0 {
			t.Fatalf("%d events, %d late, %v", m.Events, m.Late, err)
		}
		if i == 0 {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Fatalf("batch %d: %s", batch, firstDifference(got, want))
		}
	}
}

func TestWildTimes(t *testing.T) {
	items := draw(1, 2000)
	for i := 50; i < len(items); i += 50 {
		items[i].At = int64(i) * 1_000_000
	}
	j := operators.New("wild")
	in := operators.Slice(items, at)
	in.Disorder, in.LeapMax = 40, 1000
	n := 0
	operators.Each(operators.Aggregate(operators.KeyBy(operators.From(j, "in", in), keyOf), "sum", operators.Tumbling(100), sums, told), "out", func(*string, int64) error { n++; return nil })
	g, err := j.Plan()
	if err != nil {
		t.Fatal(err)
	}
	m, err := job.Run(context.Background(), g, job.Options{})
	if err != nil || m.Far != 39 || m.Late != 0 || n < 500 {
		t.Errorf("%d too far, %d late, %d results, %v", m.Far, m.Late, n, err)
	}
}

// Two streams meet by key and window.
func TestCoGroupLikeNestedLoops(t *testing.T) {
	items := draw(3, 1000)
	odd := func(r *reading) bool { return r.Value%2 == 1 }
	want := map[string]int{}
	for _, a := range items {
		for _, b := range items {
			if odd(&a) && !odd(&b) && a.Key == b.Key && spans(a.At, 100, 100, 0)[0] == spans(b.At, 100, 100, 0)[0] {
				want[fmt.Sprint(a.Value, " ", b.Value)]++
			}
		}
	}
	got := map[string]int{}
	out, _, err := run(t, items, 100, func(s operators.Stream[reading]) operators.Stream[string] {
		left := operators.Filter(s, "odd", odd)
		right := operators.Filter(s, "even", func(r *reading) bool { return !odd(r) })
		return operators.CoGroup(operators.KeyBy(left, keyOf), operators.KeyBy(right, keyOf), "pairs", operators.Tumbling(100),
			func(_ string, _ operators.Span, left, right []reading, emit func(string)) {
				for _, a := range left {
					for _, b := range right {
						emit(fmt.Sprint(a.Value, " ", b.Value))
					}
				}
			})
	}, job.Options{}, 64)
	for _, s := range out {
		s, _, _ = strings.Cut(s, "@")
		got[s]++
	}
	if err != nil || !maps.Equal(got, want) || len(want) < 100 {
		t.Errorf("%d pairs, want %d; %v", len(got), len(want), err)
	}
}

func TestUnionAndFlatMap(t *testing.T) {
	out, _, err := run(t, draw(1, 100), 100, func(s operators.Stream[reading]) operators.Stream[string] {
		twice := operators.FlatMap(s, "twice", func(r *reading, emit func(string)) { emit(r.Key); emit(r.Key) })
		once := operators.Map(s, "once", keyOf)
		return operators.Union("both", twice, once)
	}, job.Options{}, 10)
	if err != nil || len(out) != 300 {
		t.Errorf("%d items, %v", len(out), err)
	}
}

// Two vertices that compute the same from the same input are one in the plan.
func TestCommonVerticesAreOne(t *testing.T) {
	calls := 0
	double := func(r *reading) reading { calls++; r2 := *r; r2.Value *= 2; return r2 }
	out, m, err := run(t, draw(1, 100), 100, func(s operators.Stream[reading]) operators.Stream[string] {
		a, b := operators.Map(s, "a", double), operators.Map(s, "b", double)
		return operators.Union("both", operators.Map(a, "left", keyOf), operators.Map(b, "right", func(r *reading) string { return r.Key + "!" }))
	}, job.Options{Workers: 1}, 10)
	if err != nil || len(out) != 200 || calls != 100 || len(m.Plan.In("right")) != 1 || m.Plan.In("right")[0].From != "a" {
		t.Errorf("%d items, %d calls, %v", len(out), calls, err)
	}
}

func TestWhatGoesWrong(t *testing.T) {
	boom := func(s operators.Stream[reading]) operators.Stream[string] {
		return operators.Map(s, "boom", func(r *reading) string {
			if r.At > 50 {
				panic("no such thing")
			}
			return r.Key
		})
	}
	if _, _, err := run(t, draw(1, 100), 100, boom, job.Options{}, 10); err == nil || !strings.Contains(err.Error(), "in one of in, boom: panic: no such thing") {
		t.Errorf("a panic: %v", err)
	}
	full := vfs.NewFaulty(&vfs.Memory{})
	full.SetSpace(100_000)
	lists := func(s operators.Stream[reading]) operators.Stream[string] {
		return operators.Process(operators.KeyBy(s, keyOf), "list", operators.Tumbling(time.Second), listed)
	}
	env := operators.Env{FS: full, Dir: "w", MemoryLimit: 1}
	if _, _, err := run(t, draw(1, 200_000), 100, lists, job.Options{Env: env}, 4096); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("a full disk: %v", err)
	}
	for want, build := range map[string]func(j *operators.Job, s operators.Stream[reading]){
		"holds pointers": func(_ *operators.Job, s operators.Stream[reading]) {
			operators.Digest(operators.Aggregate(operators.KeyBy(s, keyOf), "sum", operators.Tumbling(1), operators.Aggregator[reading, []int]{}, func(string, operators.Span, *[]int) int { return 0 }), "out")
		},
		"0 < slide <= size": func(_ *operators.Job, s operators.Stream[reading]) {
			operators.Digest(operators.Process(operators.KeyBy(s, keyOf), "sum", operators.Sliding(1, 2), listed), "out")
		},
		"more than 0 is needed": func(_ *operators.Job, s operators.Stream[reading]) {
			operators.Digest(operators.Process(operators.KeyBy(s, keyOf), "sum", operators.Sessions(0), listed), "out")
		},
		"end it with a sink": func(_ *operators.Job, s operators.Stream[reading]) { operators.Map(s, "lost", keyOf) },
	} {
		j := operators.New("wrong")
		build(j, operators.From(j, "in", operators.Slice([]reading{{}}, at)))
		if _, err := j.Plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	var g *plan.Graph
	j := operators.New("stopped")
	operators.Digest(operators.From(j, "in", operators.Slice(draw(1, 1000), at)), "out")
	g, _ = j.Plan()
	ctx, cancel := context.WithCancel(context.Background())
	m, err := job.Run(ctx, g, job.Options{Passes: append(job.Passes(), job.Batch(10)), BatchDone: func(int) { cancel() }})
	if !errors.Is(err, context.Canceled) || m.Events != 10 {
		t.Errorf("an interrupt: %d events, %v", m.Events, err)
	}
}
