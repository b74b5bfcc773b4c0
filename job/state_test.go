package job_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/operators"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// depot is a job that remembers things of every kind, and writes what comes of it to a file.
type depot struct {
	g     *plan.Graph
	told  *operators.Digester[string]
	tally *job.Transactions[reading, reading]
}

func newDepot(t *testing.T, items []reading) *depot {
	t.Helper()
	app := txn.New("tally")
	totals := txn.NewTable[string, int64](app, "totals")
	add := txn.Upsert(totals, "add", func(_ txn.Ctx, n int64, total *int64, _ bool) txn.Verdict { *total += n; return txn.OK })
	events := txn.On(app, "add", func(p *txn.Plan, r reading) { add.At(p, r.Key, r.Value) }, func(out txn.Outcome, r reading) reading {
		total, _ := add.After(out)
		return reading{r.Key, r.At, total}
	})
	d := &depot{}
	var err error
	if d.tally, err = job.NewTransactions(app, events, engine.Options{Workers: 2, Verify: true}); err != nil {
		t.Fatal(err)
	}
	j := operators.New("depot")
	in := operators.Slice(items, at)
	in.Disorder = 15
	s := operators.From(j, "in", in)
	left, right := sides(s)
	wide := operators.Process(operators.KeyBy(s, keyOf), "wide", operators.Sliding(150, 5), listed)
	counts := operators.Aggregate(operators.KeyBy(s, keyOf), "counts", operators.Sessions(20), sums, told)
	panes := operators.Aggregate(operators.KeyBy(s, keyOf), "panes", operators.After(30), sums, told)
	few := operators.Process(operators.KeyBy(s, keyOf), "few", operators.SlidingCounts(6, 4), listed)
	enriched := operators.Enrich(operators.KeyBy(s, keyOf), operators.Filter(s, "changes", func(r *reading) bool { return change(r) > 0 }), "enrich",
		func(last *reading, c *reading, _ int64) { *last = *c }, func(k string, last *reading, r *reading, _ int64, emit func(string)) {
			emit(fmt.Sprint(k, r.Value, *last))
		})
	ends := operators.Until(operators.KeyBy(s, keyOf), "ends", func(_ string, total *int64, r *reading, at int64) int64 {
		*total += r.Value
		return at/50*50 + 70
	}, func(k string, total *int64, emit func(string)) { emit(fmt.Sprint(k, " until ", *total)) })
	totalled := operators.Map(operators.Transact("tally", d.tally, s), "totalled", func(r *reading) string { return fmt.Sprint(r.Key, " in all ", r.Value) })
	visits := operators.CoGroup(left, right, "visits", operators.Sessions(25), func(k string, w operators.Span, l, r []reading, emit func(string)) {
		emit(fmt.Sprint(k, w, " visit ", l, r))
	})
	both := operators.CoGroup(left, right, "both", operators.Tumbling(40), func(k string, w operators.Span, l, r []reading, emit func(string)) {
		emit(fmt.Sprint(k, w, len(l), len(r)))
	})
	all := append(shelves(s, left, right, operators.Sliding(200, 5)), wide, counts, ends, totalled, both, panes, few, enriched, visits)
	out := operators.Union("union", all[0], all[1:]...)
	operators.Lines(out, "file", "out", func(dst []byte, s *string, at int64) ([]byte, error) {
		return fmt.Appendf(dst, "%s@%d", *s, at), nil
	})
	d.told = operators.Digest(out, "told")
	d.told.Keep = true
	if d.g, err = j.Plan(); err != nil {
		t.Fatal(err)
	}
	return d
}

// outcome is what a depot came to.
type outcome struct {
	lines, told []string
	hash        string
	committed   int
	in          int64
	strategies  map[string]int // batches of transactions by each
}

// live runs a depot over a state directory from wherever it stands.
func (d *depot) live(fs vfs.FS, o job.Options) (out outcome, m job.Metrics, err error) {
	o.State, o.Env.FS, o.Env.MemoryLimit = "state", fs, 1<<20
	m, err = job.Run(context.Background(), d.g, o)
	t, failed := d.tally.Close()
	if err = errors.Join(err, failed); err != nil {
		return out, m, err
	}
	f, err := fs.Open("out")
	if err != nil {
		return out, m, err
	}
	text, err := io.ReadAll(f)
	out = outcome{strings.Split(string(text), "\n"), d.told.Items(), d.told.Hash(), t.Committed, m.Vertices["in"].In.Load(), t.Strategies}
	return out, m, errors.Join(err, f.Close())
}

func (x *outcome) difference(want *outcome) string {
	switch {
	case !slices.Equal(x.lines, want.lines):
		return "lines: " + firstDifference(x.lines, want.lines)
	case !slices.Equal(x.told, want.told):
		return "told: " + firstDifference(x.told, want.told)
	case x.hash != want.hash || x.committed != want.committed || x.in != want.in:
		return fmt.Sprint(x.hash, x.committed, x.in, ", want ", want.hash, want.committed, want.in)
	}
	return ""
}

var errCrash = errors.New("the power is gone")

// dying is a file system of which everything fails from the operation on that changes something
// for the nth time: what only reads leaves nothing for a crash to find.
type dying struct {
	*vfs.Faulty
	changes int
}

func dyingAt(fs vfs.FS, n int) *dying {
	d := &dying{Faulty: vfs.NewFaulty(fs)}
	d.SetHook(func(op vfs.Op) error {
		switch op.Kind {
		case "open", "edit", "list", "size", "read", "close":
		default:
			d.changes++
		}
		if d.changes >= n {
			return errCrash
		}
		return nil
	})
	return d
}

// drawOptions draws how a depot is run: often kept, with slices or without, so that much or
// little is on disk.
func drawOptions(r *rng.RNG) job.Options {
	o := job.Options{Workers: 1 + r.IntN(3), Every: int64(1 + r.IntN(4))}
	o.Passes = slices.DeleteFunc(job.Passes(), func(p plan.Pass) bool { return p.Name() == "slicing" && r.IntN(2) == 0 })
	few := chance{"few", []plan.PropID{plan.Parallelism}, func(v *plan.View) error {
		for _, x := range v.Vertices() {
			if err := plan.Parallelism.Set(v, x.ID, min(2, plan.Parallelism.Of(v.Graph, x.ID))); err != nil {
				return err
			}
		}
		return nil
	}}
	o.Passes = append(o.Passes, few, job.Batch(40+r.IntN(100)))
	return o
}

// A job that loses its power at any operation of the file system, and may lose it again, ends
// as if nothing had happened: the same results in the same order, each once.
func TestCrashAtEveryOperation(t *testing.T) {
	seeds, step, points := uint64(4), 12, 25
	switch {
	case testing.Short():
		seeds, points = 2, 8
	case metamorphic.Seeds(0) > 0: // a campaign
		seeds, step, points = uint64(metamorphic.Seeds(0)), 1, 1000
	}
	for seed := range seeds {
		r := rng.New(seed, 8)
		items, o := draw(seed, 500), drawOptions(r)
		whole := dyingAt(&vfs.Memory{}, 1<<30)
		want, m, err := newDepot(t, items).live(whole, o)
		if err != nil || len(want.lines) < 2000 || m.Checkpoints < 2 {
			t.Fatalf("seed %d: %d lines, %d checkpoints, %v", seed, len(want.lines), m.Checkpoints, err)
		}
		resumed := 0
		step := max(step, whole.changes/points)
		for at := 1 + r.IntN(step); at < whole.changes; at += 1 + r.IntN(2*step) {
			disk := vfs.NewCrashable()
			for n := at; ; n += r.IntN(whole.changes) {
				if _, _, err := newDepot(t, items).live(dyingAt(disk, n), o); err == nil {
					break
				} else if !errors.Is(err, errCrash) {
					t.Fatalf("seed %d, operation %d: %v", seed, n, err)
				}
				disk.Crash(r)
			}
			got, m, err := newDepot(t, items).live(disk, o) // what is done is done
			if err != nil {
				t.Fatalf("seed %d, operation %d: %v", seed, at, err)
			}
			if d := got.difference(&want); d != "" {
				t.Fatalf("seed %d, operation %d: %s", seed, at, d)
			}
			if m.Resumed != m.Events || m.Events != int64(len(items)) {
				t.Fatalf("seed %d: %d events, %d of them before", seed, m.Events, m.Resumed)
			}
			resumed++
		}
		if resumed < 5 {
			t.Errorf("seed %d: %d crashes", seed, resumed)
		}
	}
}

// Ctrl-C keeps what was done, and other workers, batches and memory go on with it.
func TestInterruptedJobGoesOn(t *testing.T) {
	items := draw(3, 800)
	want, _, err := newDepot(t, items).live(&vfs.Memory{}, job.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(10) {
		r, disk := rng.New(seed, 9), &vfs.Memory{}
		for step := 0; ; step++ {
			ctx, cancel := context.WithCancel(context.Background())
			d, batches := newDepot(t, items), 1+r.IntN(3)
			o := job.Options{Workers: 1 + r.IntN(3), State: "state", Env: operators.Env{FS: disk, MemoryLimit: int64(1+r.IntN(8)) << 20}}
			o.Passes = append(job.Passes(), job.Batch(30+r.IntN(200)))
			o.BatchDone = func(int) {
				if batches--; batches == 0 {
					cancel()
				}
			}
			m, err := job.Run(ctx, d.g, o)
			cancel()
			if _, failed := d.tally.Close(); failed != nil {
				t.Fatal(failed)
			}
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) || m.Checkpoints != 1 {
				t.Fatalf("seed %d, step %d: %d checkpoints, %v", seed, step, m.Checkpoints, err)
			}
		}
		got, _, err := newDepot(t, items).live(disk, job.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d := got.difference(&want); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
	}
}

// What is not this job's state is refused, or told to be damaged, and left as it is.
func TestStateOfAnotherJob(t *testing.T) {
	items, disk := draw(3, 300), &vfs.Memory{}
	o := job.Options{Identity: map[string]string{"events": "300"}}
	if _, _, err := newDepot(t, items).live(disk, o); err != nil {
		t.Fatal(err)
	}
	var refused *checkpoint.RefusalError
	_, _, err := newDepot(t, items).live(disk, job.Options{Identity: map[string]string{"events": "301"}})
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), `events "300", now "301"`) {
		t.Errorf("of other events: %v", err)
	}
	_, _, err = newDepot(t, items).live(disk, job.Options{Identity: o.Identity, Passes: []plan.Pass{}})
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "plan: sum") {
		t.Errorf("of another plan: %v", err)
	}
	f, err := disk.Edit("state/checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	size, _ := f.Size()
	for _, offset := range []int64{3, size / 2, size - 5} {
		flip(t, f, offset)
		if _, _, err := newDepot(t, items).live(disk, o); err == nil || !strings.Contains(err.Error(), "state/checkpoint: offset") {
			t.Errorf("damaged at %d: %v", offset, err)
		}
		flip(t, f, offset)
	}
	if _, _, err := newDepot(t, items).live(disk, o); err != nil {
		t.Errorf("mended: %v", err)
	}
}

func flip(t *testing.T, f vfs.File, offset int64) {
	t.Helper()
	var b [1]byte
	_, err := f.ReadAt(b[:], offset)
	b[0] ^= 8
	if err == nil {
		_, err = f.WriteAt(b[:], offset)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A state that has no plain form is told of before the job begins.
func TestStateThatCannotBeKept(t *testing.T) {
	j := operators.New("maps")
	seen := operators.Fold(operators.KeyBy(operators.From(j, "in", operators.Slice(draw(1, 10), at)), keyOf), "seen",
		func(_ string, s *map[int64]bool, r *reading, _ int64, emit func(int)) {
			if *s == nil {
				*s = map[int64]bool{}
			}
			(*s)[r.Value] = true
			emit(len(*s))
		})
	operators.Digest(seen, "out")
	g, err := j.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := job.Run(context.Background(), g, job.Options{}); err != nil {
		t.Errorf("not kept: %v", err)
	}
	_, err = job.Run(context.Background(), g, job.Options{State: "state", Env: operators.Env{FS: &vfs.Memory{}}})
	if err == nil || !strings.Contains(err.Error(), "seen: its state cannot be kept: map[int64]bool is a map") {
		t.Error(err)
	}
}
