package job_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/operators"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// gapOf is a gap that differs from item to item.
func gapOf(r *reading) time.Duration { return time.Duration(3 + r.Value%40) }

// byKey puts items in order by key.
func byKey(items []reading) map[string][]reading {
	all := map[string][]reading{}
	for _, r := range items {
		all[r.Key] = append(all[r.Key], r)
	}
	return all
}

func spanOf(items []reading) operators.Span {
	w := operators.Span{Start: items[0].At, End: items[0].At + 1}
	for _, r := range items {
		w.Start, w.End = min(w.Start, r.At), max(w.End, r.At+1)
	}
	return w
}

func toldOf(key string, w operators.Span, items []reading) string {
	var acc sum
	for i := range items {
		sums.Add(&acc, &items[i])
	}
	return told(key, w, &acc)
}

// ownWindows lists windows of one key each, naively.
var ownWindows = map[string]struct {
	w  operators.Windows
	of func(key string, items []reading) []string
}{
	"sessions by item": {operators.SessionsBy(gapOf), func(key string, items []reading) (out []string) {
		slices.SortStableFunc(items, func(a, b reading) int { return cmp.Compare(a.At, b.At) })
		for from := 0; from < len(items); {
			to, end := from, items[from].At
			for to < len(items) && (to == from || items[to].At < end) {
				end = max(end, items[to].At+int64(gapOf(&items[to])))
				to++
			}
			out = append(out, fmt.Sprint(toldOf(key, operators.Span{Start: items[from].At, End: end}, items[from:to]), "@", end-1))
			from = to
		}
		return out
	}},
	"after the first": {operators.After(30), func(key string, items []reading) (out []string) {
		slices.SortStableFunc(items, func(a, b reading) int { return cmp.Compare(a.At, b.At) })
		for from := 0; from < len(items); {
			to, end := from, items[from].At+30
			for to < len(items) && items[to].At < end {
				to++
			}
			out = append(out, fmt.Sprint(toldOf(key, operators.Span{Start: items[from].At, End: end}, items[from:to]), "@", end-1))
			from = to
		}
		return out
	}},
	"counts":         {operators.Counts(7), func(key string, items []reading) []string { return countsOf(key, items, 7, 7) }},
	"sliding counts": {operators.SlidingCounts(9, 6), func(key string, items []reading) []string { return countsOf(key, items, 9, 6) }},
	"last few":       {operators.SlidingCounts(5, 1), func(key string, items []reading) []string { return countsOf(key, items, 5, 1) }},
}

func countsOf(key string, items []reading, n, slide int) (out []string) {
	for to := n; to <= len(items); to += slide {
		some := items[to-n : to]
		out = append(out, fmt.Sprint(toldOf(key, spanOf(some), some), "@", some[n-1].At))
	}
	return out
}

// ways are different runs of a job that have to come to the same in the same order.
func ways(t *testing.T, items []reading, build func(operators.Stream[reading]) operators.Stream[string], want []string) {
	t.Helper()
	slices.Sort(want)
	var first []string
	for _, batch := range []int{1, 7, 130, 5000} {
		o := job.Options{Workers: 1 + batch%3, Env: operators.Env{FS: &vfs.Memory{}, Dir: "w", MemoryLimit: 1 << 20}}
		got, _, err := run(t, items, 15, build, o, batch)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = slices.Clone(got)
		}
		if !slices.Equal(got, first) {
			t.Fatalf("batch %d: %s", batch, firstDifference(got, first))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("batch %d: %d results, want %d: %s", batch, len(got), len(want), firstDifference(got, want))
		}
	}
}

func TestOwnWindows(t *testing.T) {
	items := draw(11, 2000)
	for name, c := range ownWindows {
		t.Run(name, func(t *testing.T) {
			var want []string
			for key, some := range byKey(onTime(items, 15)) {
				want = append(want, c.of(key, some)...)
			}
			ways(t, items, func(s operators.Stream[reading]) operators.Stream[string] {
				return operators.Aggregate(operators.KeyBy(s, keyOf), "sum", c.w, sums, told)
			}, want)
			ways(t, items, func(s operators.Stream[reading]) operators.Stream[string] {
				return operators.Process(operators.KeyBy(s, keyOf), "list", c.w, listed)
			}, want)
		})
	}
}

// A side stream changes the table that items see, in the order of event times.
func TestEnrich(t *testing.T) {
	items := draw(12, 2000)
	isChange := func(r *reading) bool { return r.Value%10 == 0 }
	sorted := onTime(items, 15)
	slices.SortStableFunc(sorted, func(a, b reading) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(change(&b), change(&a)))
	})
	var want []string
	table := int64(0)
	for _, r := range sorted {
		if isChange(&r) {
			table = table*31 + r.Value
		} else {
			want = append(want, fmt.Sprint(r.Key, r.Value, table, "@", r.At))
		}
	}
	ways(t, items, func(s operators.Stream[reading]) operators.Stream[string] {
		changes := operators.Filter(s, "changes", isChange)
		others := operators.Filter(s, "others", func(r *reading) bool { return !isChange(r) })
		return operators.Enrich(operators.KeyBy(others, keyOf), changes, "enrich", func(table *int64, c *reading, _ int64) { *table = *table*31 + c.Value },
			func(key string, table *int64, r *reading, _ int64, emit func(string)) {
				emit(fmt.Sprint(key, r.Value, *table))
			})
	}, want)
}

func change(r *reading) int {
	if r.Value%10 == 0 {
		return 1
	}
	return 0
}

func higher(a, b *reading) int { return cmp.Compare(b.Value, a.Value) }

// derivedModel computes what derived operators come to.
type derivedModel struct{ once, again, best, top, quantiles []string }

func (m *derivedModel) take(kept []reading) {
	first, last := map[string]bool{}, map[string]int64{}
	before := map[string][]int64{}
	for _, r := range kept {
		if !first[r.Key] {
			first[r.Key] = true
			m.once = append(m.once, fmt.Sprint(r, "@", r.At))
		}
		if at, ok := last[r.Key]; !ok || r.At-at >= 50 {
			last[r.Key] = r.At
			m.again = append(m.again, fmt.Sprint(r, "@", r.At))
		}
		rank := 1
		for _, v := range before[r.Key] {
			if v >= r.Value {
				rank++
			}
		}
		before[r.Key] = append(before[r.Key], r.Value)
		if rank <= 3 {
			m.best = append(m.best, fmt.Sprint(rank, r, "@", r.At))
		}
	}
}

func (m *derivedModel) takeWindow(key string, w operators.Span, some []reading) {
	slices.SortStableFunc(some, func(a, b reading) int { return higher(&a, &b) })
	for i := range min(2, len(some)) {
		m.top = append(m.top, fmt.Sprint(i+1, some[i], "@", w.End-1))
	}
	for _, q := range []float64{0, 0.5, 0.9, 1} {
		at := 0
		for float64(at+1) < q*float64(len(some)) {
			at++
		}
		m.quantiles = append(m.quantiles, fmt.Sprint(key, q, len(some), some[len(some)-1-at].Value, "@", w.End-1))
	}
}

func TestDerivedOperators(t *testing.T) {
	items := draw(13, 1500)
	kept := onTime(items, 15)
	var m derivedModel
	m.take(kept)
	for key, all := range byKey(kept) {
		windows := map[operators.Span][]reading{}
		for _, r := range all {
			for _, w := range spans(r.At, 100, 100, 0) {
				windows[w] = append(windows[w], r)
			}
		}
		for w, some := range windows {
			m.takeWindow(key, w, some)
		}
	}
	text := func(s operators.Stream[reading]) operators.Stream[string] {
		return operators.Map(s, "text", func(r *reading) string { return fmt.Sprint(*r) })
	}
	ranked := func(s operators.Stream[operators.Ranked[reading]]) operators.Stream[string] {
		return operators.Map(s, "text", func(r *operators.Ranked[reading]) string { return fmt.Sprint(r.Rank, r.Item) })
	}
	type keyed = operators.Keyed[string, reading]
	for name, c := range map[string]struct {
		build func(k keyed) operators.Stream[string]
		want  []string
	}{
		"once":  {func(k keyed) operators.Stream[string] { return text(operators.Deduplicate(k, "once", 0)) }, m.once},
		"again": {func(k keyed) operators.Stream[string] { return text(operators.Deduplicate(k, "again", 50)) }, m.again},
		"best":  {func(k keyed) operators.Stream[string] { return ranked(operators.TopN(k, "best", 3, higher)) }, m.best},
		"top": {func(k keyed) operators.Stream[string] {
			return ranked(operators.Top(k, "top", operators.Tumbling(100), 2, higher))
		}, m.top},
		"quantiles": {func(k keyed) operators.Stream[string] {
			all := operators.Quantiles(k, "quantiles", operators.Tumbling(100), func(r *reading) int64 { return r.Value }, 0, 0.5, 0.9, 1)
			return operators.Map(all, "text", func(q *operators.Quantile[string, int64]) string { return fmt.Sprint(q.Key, q.Q, q.N, q.Value) })
		}, m.quantiles},
	} {
		t.Run(name, func(t *testing.T) {
			ways(t, items, func(s operators.Stream[reading]) operators.Stream[string] { return c.build(operators.KeyBy(s, keyOf)) }, c.want)
		})
	}
}

const (
	lateDisorder  = 4
	lateness      = 10
	inputLateness = 25 // that of the input: some items are too late for windows, yet not for those behind them
)

// lateModel computes what windows that allow for lateness come to, how many items are too late for
// all of their windows, and how many for those who do not allow for it.
func lateModel(name string, items []reading) (want []string, corrections int, late, lateForOthers int64) {
	type place struct {
		w   operators.Span
		key string
	}
	first, all, corrected := map[place][]reading{}, map[place][]reading{}, map[place]bool{}
	latest := items[0].At
	for _, r := range items {
		latest = max(latest, r.At)
		mark := latest - lateDisorder
		if r.At < mark-inputLateness {
			continue
		}
		if r.At < mark {
			lateForOthers++
		}
		taken := false
		for _, s := range naive(name, r.At) {
			p := place{s, r.Key}
			switch {
			case s.End > mark || r.At >= mark:
				first[p] = append(first[p], r)
			case s.End+lateness > mark:
				corrected[p] = true
			default:
				continue
			}
			taken = true
			all[p] = append(all[p], r)
		}
		if !taken {
			late++
		}
	}
	for p, some := range first {
		want = append(want, fmt.Sprint(toldOf(p.key, p.w, some), "@", p.w.End-1))
	}
	for p := range corrected {
		want = append(want, fmt.Sprint(toldOf(p.key, p.w, all[p]), "@", p.w.End-1+lateness))
	}
	slices.Sort(want)
	return want, len(corrected), late, lateForOthers
}

// runLate runs a job over items that may be late.
func runLate(t *testing.T, items []reading, build func(operators.Stream[reading]) operators.Stream[string], batch int) ([]string, job.Metrics) {
	t.Helper()
	j := operators.New("late")
	in := operators.Slice(items, at)
	in.Disorder, in.Lateness = lateDisorder, inputLateness
	var got []string
	s := operators.From(j, "in", in)
	operators.Each(build(s), "out", func(s *string, at int64) error {
		got = append(got, fmt.Sprint(*s, "@", at))
		return nil
	})
	operators.Digest(operators.Fold(operators.KeyBy(s, keyOf), "fold", func(_ string, n *int, _ *reading, _ int64, emit func(int)) {
		*n++
		emit(*n)
	}), "folded")
	operators.Digest(operators.Aggregate(operators.All(s), "all", operators.Tumbling(50), sums, func(_ uint64, w operators.Span, acc *sum) string { return told("all", w, acc) }), "others")
	g, err := j.Plan()
	if err != nil {
		t.Fatal(err)
	}
	m, err := job.Run(context.Background(), g, job.Options{Passes: append(job.Passes(), job.Batch(batch))})
	if err != nil {
		t.Fatal(err)
	}
	return got, m
}

// Windows that allow for lateness fire once more for the keys to which late items came, and nobody else
// hears of these.
func TestLateness(t *testing.T) {
	items := draw(15, 3000)
	windows := map[string]operators.Windows{"tumbling": operators.Tumbling(50), "sliding": operators.Sliding(40, 15), "growing": operators.Cumulating(20, 100)}
	for name, w := range windows {
		want, corrections, late, lateForOthers := lateModel(name, items)
		if corrections < 100 || late < 10 && name == "tumbling" || late > lateForOthers/2 {
			t.Fatalf("%s: %d are corrected, %d late of %d", name, corrections, late, lateForOthers)
		}
		w = w.Lateness(lateness)
		for vertex, build := range map[plan.ID]func(operators.Stream[reading]) operators.Stream[string]{
			"sum": func(s operators.Stream[reading]) operators.Stream[string] {
				return operators.Aggregate(operators.KeyBy(s, keyOf), "sum", w, sums, told)
			},
			"list": func(s operators.Stream[reading]) operators.Stream[string] {
				return operators.Process(operators.KeyBy(s, keyOf), "list", w, listed)
			},
		} {
			order, _ := runLate(t, items, build, 1)
			for _, batch := range []int{1, 40, 5000} {
				got, m := runLate(t, items, build, batch)
				if !slices.Equal(got, order) {
					t.Fatalf("%s, %s, batch %d: %s", name, vertex, batch, firstDifference(got, order))
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Fatalf("%s, %s, batch %d: %d results, want %d: %s", name, vertex, batch, len(got), len(want), firstDifference(got, want))
				}
				if n := m.Vertices[vertex].Late.Load(); n != late {
					t.Errorf("%s, %s: %d are late, want %d", name, vertex, n, late)
				}
				for _, other := range []plan.ID{"all.partial", "fold"} {
					if n := m.Vertices[other].Late.Load(); n != lateForOthers {
						t.Errorf("%s, %s: %d are late for %s, want %d", name, vertex, n, other, lateForOthers)
					}
				}
				if n := m.Vertices["folded"].In.Load(); n != m.Events-m.Vertices["in"].Late.Load()-lateForOthers {
					t.Errorf("%s, %s: %d are folded, of %d", name, vertex, n, m.Events)
				}
			}
		}
	}
}

// naive lists the windows of a time.
func naive(name string, at int64) []operators.Span {
	switch name {
	case "tumbling":
		return spans(at, 50, 50, 0)
	case "sliding":
		return spans(at, 40, 15, 0)
	}
	return windowsOf["growing"].of(at)
}
