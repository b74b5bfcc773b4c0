package job_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/operators"
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
