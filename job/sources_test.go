package job_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/operators"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// script is a source that has what it is told, a reading at a time: nil is a pause.
type script struct {
	steps [][]reading
	reads int
}

func (s *script) read(dst []reading) (n int, err error) {
	if s.reads == len(s.steps) {
		return 0, io.EOF
	}
	n = copy(dst, s.steps[s.reads])
	s.reads++
	return n, nil
}

// The watermark does not wait for a source that is idle, and what comes too late there is late.
func TestIdleSource(t *testing.T) {
	busy := &script{steps: [][]reading{{{"a", 10, 1}}, {{"a", 150, 1}}, {{"a", 260, 1}}, {{"a", 270, 1}}, nil, nil}}
	rare := &script{steps: [][]reading{{{"b", 20, 1}}, nil, nil, {{"b", 90, 1}, {"b", 265, 1}}, nil, nil, {{"b", 280, 1}}}}
	j := operators.New("idle")
	var got []string
	union := operators.Union("union", operators.From(j, "busy", operators.Input[reading]{Read: busy.read, Time: at}), operators.From(j, "rare", operators.Input[reading]{Read: rare.read, Time: at}))
	operators.Each(operators.Aggregate(operators.All(union), "sum", operators.Tumbling(100), sums, func(_ uint64, w operators.Span, acc *sum) string { return told("all", w, acc) }),
		"out", func(s *string, _ int64) error {
			got = append(got, fmt.Sprint(*s, " after ", busy.reads))
			return nil
		})
	g, err := j.Plan()
	if err != nil {
		t.Fatal(err)
	}
	m, err := job.Run(context.Background(), g, job.Options{})
	want := []string{"all {0 100} 2 2 after 2", "all {100 200} 1 1 after 3", "all {200 300} 4 4 after 6"}
	if err != nil || !slices.Equal(got, want) || m.Late != 1 || m.Events != 8 {
		t.Errorf("%q, %d late of %d, %v; want %q", got, m.Late, m.Events, err, want)
	}
}

// When all other sources have ended, windows wait no longer than for what an idle one has told.
func TestSourceThatEndsBesideIdleOne(t *testing.T) {
	short := &script{steps: [][]reading{{{"a", 10, 1}}}}
	rare := &script{steps: [][]reading{{{"b", 310, 1}}, nil, nil, {{"b", 420, 1}}}}
	j := operators.New("ends")
	var got []string
	union := operators.Union("union", operators.From(j, "short", operators.Input[reading]{Read: short.read, Time: at}), operators.From(j, "rare", operators.Input[reading]{Read: rare.read, Time: at}))
	operators.Each(operators.Aggregate(operators.KeyBy(union, keyOf), "sum", operators.Tumbling(100), sums, told), "out", func(s *string, _ int64) error {
		got = append(got, fmt.Sprint(*s, " after ", rare.reads))
		return nil
	})
	g, err := j.Plan()
	if err != nil {
		t.Fatal(err)
	}
	_, err = job.Run(context.Background(), g, job.Options{})
	want := []string{"a {0 100} 1 1 after 2", "b {300 400} 1 1 after 4", "b {400 500} 1 1 after 4"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// Without a time of its own an item has that of the clock.
func TestProcessingTime(t *testing.T) {
	source := &script{steps: [][]reading{{{"a", 0, 1}, {"b", 0, 2}}, {{"a", 0, 3}}, {{"a", 0, 4}}, {{"b", 0, 5}}}}
	now := int64(0)
	var got []string
	j := operators.New("now")
	s := operators.From(j, "in", operators.Input[reading]{Read: source.read})
	operators.Each(operators.Aggregate(operators.KeyBy(s, keyOf), "sum", operators.Tumbling(100), sums, told), "out", func(s *string, _ int64) error {
		got = append(got, *s)
		return nil
	})
	g, err := j.Plan()
	if err != nil {
		t.Fatal(err)
	}
	clock := func() int64 { now += 60; return now }
	_, err = job.Run(context.Background(), g, job.Options{Env: operators.Env{Now: clock}})
	want := []string{"a {0 100} 1 1", "b {0 100} 1 2", "a {100 200} 2 7", "b {200 300} 1 5"}
	slices.Sort(got)
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// A source that is read comes to what one comes to of which any part can be had, is read again up to where the
// job goes on, and its errors are told.
func TestReadSource(t *testing.T) {
	items := draw(14, 900)
	build := func(in operators.Input[reading]) (*job.Metrics, []string, error) {
		in.Disorder = 15
		j := operators.New("read")
		var got []string
		operators.Each(operators.Aggregate(operators.KeyBy(operators.From(j, "in", in), keyOf), "sum", operators.Tumbling(100), sums, told), "out", func(s *string, at int64) error {
			got = append(got, fmt.Sprint(*s, "@", at))
			return nil
		})
		g, err := j.Plan()
		if err != nil {
			t.Fatal(err)
		}
		m, err := job.Run(context.Background(), g, job.Options{})
		return &m, got, err
	}
	_, want, err := build(operators.Slice(items, at))
	if err != nil {
		t.Fatal(err)
	}
	read := func(left []reading, chunk int, end error) operators.Input[reading] {
		return operators.Input[reading]{Time: at, Read: func(dst []reading) (int, error) {
			n := copy(dst, left[:min(chunk, len(left))])
			if left = left[n:]; len(left) == 0 {
				return n, end
			}
			return n, nil
		}}
	}
	m, got, err := build(read(items, 37, io.EOF))
	if err != nil || !slices.Equal(got, want) || m.Events != 900 {
		t.Errorf("%d events: %s, %v", m.Events, firstDifference(got, want), err)
	}
	if _, _, err := build(read(items, 100, errors.New("the line is cut"))); err == nil || !strings.Contains(err.Error(), "in: the line is cut") {
		t.Error(err)
	}
}

// readJob is a job over a source that is read, which writes its results to a file.
func readJob(t *testing.T, in operators.Input[reading]) *plan.Graph {
	t.Helper()
	in.Time, in.Disorder = at, 15
	j := operators.New("read")
	perKey := operators.Aggregate(operators.KeyBy(operators.From(j, "in", in), keyOf), "sum", operators.Tumbling(100), sums, told)
	operators.Lines(perKey, "out", "out", func(dst []byte, s *string, at int64) ([]byte, error) { return fmt.Append(dst, *s, "@", at), nil })
	g, err := j.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A job over a source that is read goes on where it stopped: with Seek there, without it behind what is
// read once more; with another input it is told.
func TestReadSourceGoesOn(t *testing.T) {
	items := draw(16, 900)
	want, _, err := run(t, items, 15, func(s operators.Stream[reading]) operators.Stream[string] {
		return operators.Aggregate(operators.KeyBy(s, keyOf), "sum", operators.Tumbling(100), sums, told)
	}, job.Options{}, 900)
	if err != nil {
		t.Fatal(err)
	}
	for _, seeks := range []bool{true, false} {
		fs, sought, stopped := &vfs.Memory{}, int64(-1), 0
		o := job.Options{State: "state", Passes: append(job.Passes(), job.Batch(200)), Env: operators.Env{FS: fs}}
		for {
			left := items
			in := operators.Input[reading]{Read: func(dst []reading) (int, error) {
				n := copy(dst, left)
				if left = left[n:]; len(left) == 0 {
					return n, io.EOF
				}
				return n, nil
			}}
			if seeks {
				in.Seek = func(next int64) error { sought, left = next, items[next:]; return nil }
			}
			ctx, cancel := context.WithCancel(context.Background())
			o.BatchDone = func(int) { cancel() }
			if _, err = job.Run(ctx, readJob(t, in), o); err == nil {
				break
			}
			if stopped++; !errors.Is(err, context.Canceled) || stopped > 10 {
				t.Fatal(err)
			}
			nothing := operators.Input[reading]{Read: func([]reading) (int, error) { return 0, io.EOF }}
			if _, err := job.Run(context.Background(), readJob(t, nothing), o); err == nil || !strings.Contains(err.Error(), "it belongs to another input") {
				t.Errorf("of another input: %v", err)
			}
		}
		got := linesOf(t, fs, "out")
		if !slices.Equal(got, want) || stopped < 4 || seeks != (sought == 800) {
			t.Errorf("seeks %v: to %d after %d stops, %s", seeks, sought, stopped, firstDifference(got, want))
		}
	}
}

func linesOf(t *testing.T, fs vfs.FS, name string) []string {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// A job whose sources are idle writes no checkpoint: there is nothing new to keep.
func TestIdleJobKeepsNothingNew(t *testing.T) {
	source := &script{steps: make([][]reading, 20)}
	source.steps[0], source.steps[19] = []reading{{"a", 1, 1}}, []reading{{"a", 2, 1}}
	j := operators.New("quiet")
	operators.Digest(operators.From(j, "in", operators.Input[reading]{Read: source.read, Time: at}), "out")
	g, err := j.Plan()
	if err != nil {
		t.Fatal(err)
	}
	m, err := job.Run(context.Background(), g, job.Options{State: "state", Every: 1, Env: operators.Env{FS: &vfs.Memory{}}})
	if err != nil || m.Events != 2 || m.Batches != 21 || m.Checkpoints != 3 {
		t.Errorf("%d events in %d batches, %d checkpoints, %v", m.Events, m.Batches, m.Checkpoints, err)
	}
}
