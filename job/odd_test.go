package job_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
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

// place is a key that is a struct.
type place struct {
	Row  int32
	Name string
	At   [2]int8
}

// Keys of all plain types, empty ones included, and far and negative times.
func TestOddKeysAndTimes(t *testing.T) {
	var items []reading
	for i := range int64(500) {
		items = append(items, reading{[]string{"", "a", "\x00", "aa"}[i%4], -1_000_000 + 37*i, i})
	}
	items = append(items, reading{"last", 1 << 62, 1}, reading{"never", math.MaxInt64, 1}, reading{"never", math.MinInt64, 1})
	for _, batch := range []int{1, 100, 1000} {
		got, m, err := run(t, items, 0, func(s operators.Stream[reading]) operators.Stream[string] {
			byPlace := operators.KeyBy(s, func(r *reading) place { return place{int32(len(r.Key)), r.Key, [2]int8{1, -1}} })
			sum := operators.Aggregate(byPlace, "sum", operators.Sliding(100, 60), sums, func(k place, w operators.Span, acc *sum) string {
				return fmt.Sprint(k, w, acc.n)
			})
			list := operators.Process(byPlace, "list", operators.Sessions(50), func(k place, w operators.Span, items []reading, emit func(string)) {
				emit(fmt.Sprint(k, w, len(items)))
			})
			return operators.Union("both", sum, list)
		}, job.Options{}, batch)
		if err != nil || m.Late != 0 || m.Far != 2 || len(got) < 500 {
			t.Fatalf("batch %d: %d results, %d late, %v", batch, len(got), m.Late, err)
		}
	}
}

// Nothing comes of nothing.
func TestEmptyInput(t *testing.T) {
	got, m, err := run(t, nil, 0, func(s operators.Stream[reading]) operators.Stream[string] {
		left, right := sides(s)
		joined := operators.IntervalJoin(left, right, "join", 0, 1, pair)
		sums := operators.Aggregate(operators.All(s), "sum", operators.Tumbling(1), sums, func(uint64, operators.Span, *sum) string { return "?" })
		return operators.Union("both", joined, sums)
	}, job.Options{}, 10)
	if err != nil || len(got) != 0 || m.Events != 0 {
		t.Errorf("%d results, %+v, %v", len(got), m, err)
	}
}

// A stream meets itself.
func TestStreamWithItself(t *testing.T) {
	items := draw(1, 300)
	pairs := 0
	for _, a := range items {
		for _, b := range items {
			if a.Key == b.Key && a.At == b.At {
				pairs++
			}
		}
	}
	got, _, err := run(t, items, 100, func(s operators.Stream[reading]) operators.Stream[string] {
		a := operators.KeyBy(operators.Map(s, "a", func(r *reading) reading { return *r }), keyOf)
		return operators.IntervalJoin(a, a, "self", 0, 0, pair)
	}, job.Options{}, 7)
	if err != nil || len(got) != pairs {
		t.Errorf("%d pairs, want %d, %v", len(got), pairs, err)
	}
}

// A hot key and many cold ones in windows with next to no memory: what a key has may be larger
// than all of it.
func TestHotKeyInLittleMemory(t *testing.T) {
	var items []reading
	r := rng.New(1, 1)
	for i := range int64(60_000) {
		key := "hot"
		if i%2 == 0 {
			key = fmt.Sprint("cold", r.IntN(20_000))
		}
		items = append(items, reading{key, i, 1})
	}
	for name, build := range map[string]func(operators.Stream[reading]) operators.Stream[string]{
		"list": func(s operators.Stream[reading]) operators.Stream[string] {
			return operators.Process(operators.KeyBy(s, keyOf), "list", operators.Tumbling(60_000), listed)
		},
		"session": func(s operators.Stream[reading]) operators.Stream[string] {
			return operators.Process(operators.KeyBy(s, keyOf), "list", operators.Sessions(60_000), listed)
		},
	} {
		got, m, err := run(t, items, 0, build, job.Options{Env: operators.Env{MemoryLimit: 8 << 20}}, 4096)
		if err != nil || len(got) < 10_000 {
			t.Fatalf("%s: %d results, %v", name, len(got), err)
		}
		for _, st := range m.Stores {
			if st.MemoryBytesMax > 8<<20 {
				t.Errorf("%s: %d bytes of memory", name, st.MemoryBytesMax)
			}
		}
	}
}

// Windows may be many, in one batch or in many, with slices or without.
func TestManyWindowsInABatch(t *testing.T) {
	var items []reading
	for i := range int64(70_000) {
		items = append(items, reading{"a", i, 1})
	}
	for _, batch := range []int{1000, 70_000} {
		got, m, err := run(t, items, 0, func(s operators.Stream[reading]) operators.Stream[string] {
			perKey := operators.Aggregate(operators.KeyBy(s, keyOf), "sum", operators.Tumbling(1), sums, told)
			all := operators.Aggregate(operators.All(s), "all", operators.Tumbling(4), sums, func(_ uint64, w operators.Span, acc *sum) string { return told("all", w, acc) })
			return operators.Union("both", perKey, all)
		}, job.Options{Env: operators.Env{FS: &vfs.Memory{}, Dir: "w", MemoryLimit: 1 << 30}}, batch)
		if err != nil || len(got) != 70_000+17_500 || m.Far != 0 {
			t.Errorf("batch %d: %d results, %d far, %v", batch, len(got), m.Far, err)
		}
	}
	two := []reading{{"a", 0, 1}, {"a", 10, 1}}
	for _, passes := range [][]plan.Pass{nil, {}} {
		j, n := operators.New("wide"), 0
		operators.Each(operators.Aggregate(operators.KeyBy(operators.From(j, "in", operators.Slice(two, at)), keyOf), "sum", operators.Sliding(7000, 1), sums, told),
			"out", func(*string, int64) error { n++; return nil })
		g, err := j.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := job.Run(context.Background(), g, job.Options{Passes: passes}); err != nil || n != 7010 {
			t.Errorf("%d results, %v", n, err)
		}
	}
}

// What cannot be is told when a job is described, and by whom.
func TestJobsThatCannotBe(t *testing.T) {
	type wide struct{ A [700]int64 }
	other := operators.From(operators.New("other"), "in", operators.Slice(draw(1, 10), at))
	for want, build := range map[string]func(s operators.Stream[reading]){
		"has 5600 bytes: at most 4088 are allowed": func(s operators.Stream[reading]) {
			operators.Digest(operators.Aggregate(operators.KeyBy(s, keyOf), "sum", operators.Sessions(5), operators.Aggregator[reading, wide]{}, func(string, operators.Span, *wide) int { return 0 }), "out")
		},
		"float64 has numbers with a fraction": func(s operators.Stream[reading]) {
			operators.Digest(operators.Fold(operators.KeyBy(s, func(r *reading) float64 { return float64(r.Value) }), "fold", func(float64, *int, *reading, int64, func(int)) {}), "out")
		},
		"a stream of job odd, and one of job other": func(s operators.Stream[reading]) {
			operators.Digest(operators.Union("both", s, other), "out")
		},
		"an interval from 5ns to 4ns": func(s operators.Stream[reading]) {
			k := operators.KeyBy(s, keyOf)
			operators.Digest(operators.IntervalJoin(k, k, "join", 5, 4, pair), "out")
		},
		"windows of more than": func(s operators.Stream[reading]) {
			operators.Digest(operators.Aggregate(operators.KeyBy(s, keyOf), "sum", operators.Tumbling(1<<62), sums, told), "out")
		},
		"the function is func(*string) int64, items are": func(s operators.Stream[reading]) {
			w := operators.SessionsBy(func(*string) time.Duration { return 1 })
			operators.Digest(operators.Aggregate(operators.KeyBy(s, keyOf), "sum", w, sums, told), "out")
		},
		"windows of 3 items that move by 4": func(s operators.Stream[reading]) {
			operators.Digest(operators.Aggregate(operators.KeyBy(s, keyOf), "sum", operators.SlidingCounts(3, 4), sums, told), "out")
		},
	} {
		j := operators.New("odd")
		build(operators.From(j, "in", operators.Slice(draw(1, 10), at)))
		if _, err := j.Plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	j := operators.New("odd")
	operators.Digest(operators.From(j, "in", operators.Input[reading]{Total: -1, Time: at}), "out")
	if _, err := j.Plan(); err == nil || !strings.Contains(err.Error(), "none may be negative") {
		t.Error(err)
	}
}

// A join that keeps items for ever, times that are as far apart as can be, and a leap too far.
func TestExtremeTimes(t *testing.T) {
	items := []reading{{"a", 10, 1}, {"a", 20, 1}, {"a", 30, 1}}
	got, _, err := run(t, items, 0, func(s operators.Stream[reading]) operators.Stream[string] {
		k := operators.KeyBy(s, keyOf)
		return operators.RegularJoin(k, k, "join", math.MaxInt64, pair)
	}, job.Options{}, 10)
	if err != nil || len(got) != 9 {
		t.Errorf("%d pairs, %v", len(got), err)
	}
	far := []reading{{"a", -(1 << 62), 1}, {"a", 1 << 62, 1}, {"a", -(1 << 62) + 5, 1}}
	in := operators.Slice(far, at)
	in.LeapMax = 10
	j := operators.New("leap")
	d := operators.Digest(operators.From(j, "in", in), "out")
	g, err := j.Plan()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a job that is run again begins anew
		if m, err := job.Run(context.Background(), g, job.Options{}); err != nil || m.Far != 1 || d.Count() != 2 {
			t.Errorf("%d items, %+v, %v", d.Count(), m, err)
		}
	}
	in.LeapMax, in.Disorder = 0, math.MaxInt64
	j = operators.New("disorder")
	operators.Digest(operators.Aggregate(operators.KeyBy(operators.From(j, "in", in), keyOf), "sum", operators.Cumulating(1<<60, 1<<61), sums, told), "out")
	if g, err = j.Plan(); err != nil {
		t.Fatal(err)
	}
	if m, err := job.Run(context.Background(), g, job.Options{}); err != nil || m.Vertices["sum"].In.Load() != 3 {
		t.Errorf("%+v, %v", m, err)
	}
}

// Functions of the user that do what they should not: the error says where, once.
func TestFunctionsThatFail(t *testing.T) {
	items := draw(1, 3000)
	full := errors.New("disk full")
	for want, build := range map[string]func(s operators.Stream[reading]) operators.Stream[string]{
		"in out: disk full": func(s operators.Stream[reading]) operators.Stream[string] {
			return operators.Map(s, "text", func(r *reading) string { return "full" })
		},
		"a function of the user ended its goroutine": func(s operators.Stream[reading]) operators.Stream[string] {
			return operators.Map(s, "text", func(r *reading) string {
				if r.At > 2000 {
					runtime.Goexit()
				}
				return "?"
			})
		},
		"in sum/../and: panic: boom": func(s operators.Stream[reading]) operators.Stream[string] {
			return operators.Aggregate(operators.KeyBy(s, keyOf), "sum/../and", operators.Tumbling(5), sums, func(string, operators.Span, *sum) string { panic("boom") })
		},
	} {
		done := make(chan error)
		go func() { // of which the function may be called, too
			var err error
			ended := true
			defer func() {
				if ended {
					err = errors.New("a function of the user ended its goroutine")
				}
				done <- err
			}()
			j := operators.New("failing")
			operators.Each(build(operators.From(j, "in", operators.Slice(items, at))), "out", func(s *string, _ int64) error {
				if *s == "full" {
					return full
				}
				return nil
			})
			var g *plan.Graph
			if g, err = j.Plan(); err == nil {
				_, err = job.Run(context.Background(), g, job.Options{Workers: 4, Env: operators.Env{FS: &vfs.Memory{}}})
			}
			ended = false
		}()
		if err := <-done; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Any name of a vertex may be the name of files.
func TestNamesOfVertices(t *testing.T) {
	for _, name := range []string{"a/b", "../up", "..", "\x00", strings.Repeat("n", 300), "n.partial"} {
		fs := &vfs.Memory{}
		j := operators.New("names")
		s := operators.Map(operators.From(j, "src", operators.Slice(draw(1, 3000), at)), "join.1", func(r *reading) reading { return *r })
		d := operators.Digest(operators.Aggregate(operators.All(operators.Map(s, "all.partial", func(r *reading) reading { return *r })), "all", operators.Tumbling(100), sums,
			func(uint64, operators.Span, *sum) int { return 0 }), "all-out")
		k := operators.KeyBy(s, keyOf)
		operators.Digest(operators.IntervalJoin(k, k, "join", 0, 0, pair), "join-out")
		operators.Digest(operators.Process(k, name, operators.Sliding(500, 10), listed), "out")
		g, err := j.Plan()
		if err != nil {
			t.Fatal(err)
		}
		passes := slices.DeleteFunc(job.Passes(), func(p plan.Pass) bool { return p.Name() == "slicing" })
		m, err := job.Run(context.Background(), g, job.Options{Passes: passes, Env: operators.Env{FS: fs, Dir: "w/x", MemoryLimit: 1}})
		if err != nil || m.Stores[plan.ID(name)].Spills == 0 || d.Count() == 0 {
			t.Errorf("%.20q: %d spills, %v", name, m.Stores[plan.ID(name)].Spills, err)
		}
		if v, ok := m.Plan.Vertex("all.partial'"); !ok || fmt.Sprint(v.Op) != "partial aggregation" {
			t.Errorf("%v: the name of the partial aggregation is taken, it needs another one", m.Plan.Vertices())
		}
	}
}
