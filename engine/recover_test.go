package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/source"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// A run that is compared with the model may have to do a log again first, of views, of
// effects, or of events with effects behind them.
func TestVerifyBehindALog(t *testing.T) {
	events := metamorphic.Draw(rng.New(3, 31), 60, metamorphic.Shape{Keys: 5, OpsMax: 3, Tables: 2, Plain: true})
	o := Options{Workers: 2, Batch: 7, Strategy: "ns-op-eager", Checkpoints: small(1 << 30)}
	run := func(fs vfs.FS, scheme Scheme, verify bool) error {
		o.Durability, o.Verify = scheme, verify
		_, err := liveOn(metamorphic.NewUnwatched(4), fs, events, o)
		return err
	}
	for _, first := range Schemes() {
		for _, second := range []Scheme{Command, WAL, Views} {
			for n := 25; n < 90; n += 13 {
				disk := vfs.NewCrashable()
				for _, scheme := range []Scheme{first, second} {
					_ = run(dying(disk, n), scheme, false) // or it came to its end
					disk.Kill()
				}
				if err := run(disk, second, true); err != nil {
					t.Fatalf("%s, then %s, operation %d: %v", first, second, n, err)
				}
			}
		}
	}
}

// lines writes a file of JSON lines.
func lines(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Batches that have no events, only dead letters, are batches: they make checkpoints due,
// stand at the end of a log, and are done again.
func TestBatchesOfDeadLetters(t *testing.T) {
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, `{"From":"x%d","To":"y%d","Amount":0}`+"\n"+`{"From":"ann","To":"n%d","Amount":1}`+"\n", i, i, i)
	}
	for i := range 400 {
		fmt.Fprintf(&text, "this is line %d, and no event at all\n", i)
	}
	name := lines(t, text.String())
	want, err := paid(vfs.NewCrashable(), name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range Schemes() {
		for _, every := range []int64{1500, 9000} {
			o := Options{State: "state", Durability: scheme, Batch: 10, Strategy: "serial", Checkpoints: small(every)}
			whole := vfs.NewFaulty(vfs.NewCrashable())
			for range 2 { // the second run has nothing to do
				if got, err := paid(whole, name, o); err != nil || got != want {
					t.Fatalf("%s, every %d: %v\n got %+v\nwant %+v", scheme, every, err, got, want)
				}
			}
			for n := 100; n < whole.Ops(); n += 61 {
				disk := vfs.NewCrashable()
				_, _ = paid(dying(disk, n), name, o) // or it came to its end
				disk.Kill()
				for _, next := range []Scheme{WAL, Views} {
					again := o
					again.Durability, again.Checkpoints = next, small(every/3)
					if next == WAL {
						_, _ = paid(dying(disk, n/2), name, again)
						disk.Kill()
						continue
					}
					if got, err := paid(disk, name, again); err != nil || got != want {
						t.Fatalf("%s every %d, crash at %d, then %s: %v", scheme, every, n, next, err)
					}
				}
			}
		}
	}
}

type tick struct{ Time, Key int64 }

func ticker() *txn.App {
	app := txn.New("ticker")
	table := txn.NewTable[int64, int64](app, "table")
	recent := txn.NewWindow(table, "recent", txn.Within(10))
	count := txn.Upsert(table, "count", func(c txn.Ctx, _ int64, v *int64, _ bool) txn.Verdict {
		*v++
		for range recent.All(c) {
			*v++
		}
		return txn.OK
	})
	txn.On(app, "tick", func(p *txn.Plan, e tick) { count.At(p, e.Key, e.Time, recent.Of(p, e.Key)) },
		func(txn.Outcome, tick) int64 { return 0 }, txn.EventTime[tick, int64](func(e tick) int64 { return e.Time }))
	return app
}

// An event that cannot be stops the run there, and again when it is run again: what
// stands behind it in its batch is not passed over.
func TestEventThatStopsEveryRun(t *testing.T) {
	var text strings.Builder
	for i := range 30 {
		at := 100 + i
		if i%4 == 0 {
			text.WriteString("not an event\n") // four of them before the one that stops the run
		}
		if i == 15 {
			at = 5
		}
		fmt.Fprintf(&text, `{"Time":%d,"Key":%d}`+"\n", at, i%3)
	}
	name := lines(t, text.String())
	for _, scheme := range Schemes() {
		fs := vfs.NewCrashable()
		for run := range 3 {
			app := ticker()
			in, err := source.Open(app, name, source.Options{Discard: true})
			if err != nil {
				t.Fatal(err)
			}
			m, err := Run(context.Background(), app, in, Options{FS: fs, State: "state", DeadLetters: "letters", Durability: scheme, Batch: 10, Strategy: "ns-op-eager"})
			var p *PanicError
			if !errors.As(err, &p) || p.Event != 15 {
				t.Errorf("%s, run %d: %d events done, %v", scheme, run, m.Events, err)
			}
			logs := scheme == Command || scheme == Dependency || scheme == Views
			if n := m.Resumed + m.Replayed; logs && run > 0 && n != 15 {
				t.Errorf("%s, run %d: %d events came from the state directory", scheme, run, n)
			}
			letters, err := fs.Open("letters")
			if err != nil {
				t.Fatal(err)
			}
			told, err := io.ReadAll(letters)
			if n := strings.Count(string(told), "\n"); errors.Join(err, letters.Close()) != nil || n != 4 {
				t.Errorf("%s, run %d: %d dead letters, 4 come before the event", scheme, run, n)
			}
			if err := in.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// runTill runs the application till over the payments of a file.
func runTill(t *testing.T, fs vfs.FS, name string, o Options) error {
	t.Helper()
	app, _ := till()
	in, err := source.Open(app, name, source.Options{Discard: true})
	if err != nil {
		t.Fatal(err)
	}
	o.FS = fs
	_, err = Run(context.Background(), app, in, o)
	return errors.Join(err, in.Close())
}

// Without the output of the run before the next one would leave a gap in it; without its
// dead letters nothing is added to them.
func TestFilesThatAreLeftOut(t *testing.T) {
	fs := vfs.NewCrashable()
	name, _ := payments(t, rng.New(1, 1), 60)
	o := Options{State: "state", Batch: 10}
	want, err := paid(fs, name, o)
	if err != nil {
		t.Fatal(err)
	}
	run := func(o Options) error { return runTill(t, fs, name, o) }
	if err := run(o); err == nil || !strings.Contains(err.Error(), "give the same output") {
		t.Errorf("without output: %v", err)
	}
	o.Output = "out.jsonl"
	if err := run(o); err != nil {
		t.Errorf("without dead letters: %v", err)
	}
	if got, err := paid(fs, name, Options{State: "state", Batch: 10}); err != nil || got != want {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
}

type measure struct{ A float64 }

// A rejected event that JSON cannot express is a dead letter like others.
func TestRejectionBeyondJSON(t *testing.T) {
	app := txn.New("measures")
	table := txn.NewTable[int64, int64](app, "table")
	add := txn.Upsert(table, "add", func(_ txn.Ctx, a int64, v *int64, _ bool) txn.Verdict {
		*v += a
		return txn.OK
	})
	events := txn.On(app, "measure", func(p *txn.Plan, e measure) {
		if !(e.A > 0) {
			p.Reject("not positive")
			return
		}
		add.At(p, 1, int64(e.A))
	}, func(txn.Outcome, measure) int64 { return 0 })
	in := events.Slice([]measure{{1}, {math.NaN()}, {2}})
	m, err := Run(context.Background(), app, in, Options{FS: vfs.NewCrashable(), DeadLetters: "letters"})
	if err != nil || m.Events != 3 || m.Discarded != 1 {
		t.Errorf("%d events, %d discarded, %v", m.Events, m.Discarded, err)
	}
}

type reading struct {
	Time, Key int64
	Fails     bool
}

// station is an application whose windows count all events, those that abort included.
func station(planned *int) (*txn.App, *txn.Event[reading, int64]) {
	app := txn.New("station")
	table := txn.NewTable[int64, int64](app, "table")
	last, recent := txn.NewWindow(table, "last", txn.LastEvents(6)).WithInForce(), txn.NewWindow(table, "recent", txn.Within(7))
	total := txn.NewFold(table, "total", txn.LastEvents(9), func(sum *int64, v int64) { *sum += v }, func(a, b int64) int64 { return a - b })
	broken := app.Reason("broken")
	note := txn.Upsert(table, "note", func(c txn.Ctx, e reading, v *int64, _ bool) txn.Verdict {
		if e.Fails {
			return broken
		}
		held, _ := last.InForce(c)
		*v = *v*3 + e.Time + held + total.Get(c)
		for at, old := range last.All(c) {
			*v = *v*5 + at*7 + old
		}
		for at, old := range recent.All(c) {
			*v = *v*11 + at*13 + old
		}
		return txn.OK
	})
	return app, txn.On(app, "reading", func(p *txn.Plan, e reading) {
		*planned++
		note.At(p, e.Key, e, last.Of(p, e.Key), recent.Of(p, 1-e.Key), total.Of(p, e.Key))
	}, func(out txn.Outcome, _ reading) int64 {
		v, _ := note.After(out)
		return v
	}, txn.EventTime[reading, int64](func(e reading) int64 { return e.Time }))
}

// Events that aborted are left out when their batch is done again, and windows by events and
// by time see the others where they saw them before.
func TestWindowsBehindViews(t *testing.T) {
	r := rng.New(5, 5)
	var events []reading
	for i := range 80 {
		events = append(events, reading{int64(i/3) * 2, int64(r.IntN(2)), r.IntN(3) == 0})
	}
	run := func(fs vfs.FS, scheme Scheme, planned *int) (life, Metrics, error) {
		app, ev := station(planned)
		m, err := Run(context.Background(), app, ev.Slice(events), Options{FS: fs, State: "state", Durability: scheme, Batch: 10, Workers: 1, Strategy: "ns-op-eager", HashResults: true, Checkpoints: small(1 << 20)})
		return life{state: storage.StateHash(app), results: m.ResultsHash, events: m.Events}, m, err
	}
	planned := 0
	want, _, err := run(&vfs.Memory{}, NoLog, &planned)
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []Scheme{Dependency, Views} {
		left := 0
		for n := 1; ; n++ {
			fs := vfs.NewCrashable()
			_, _, err := run(dying(fs, n), scheme, &planned)
			if err == nil {
				break
			}
			fs.Crash(rng.New(uint64(n), 7))
			planned = 0
			got, m, err := run(fs, scheme, &planned)
			if err != nil || got != want {
				t.Fatalf("%s, operation %d failed: %v\n got %v\nwant %v", scheme, n, err, got, want)
			}
			left = max(left, len(events)-m.Resumed-planned)
		}
		if left < 10 {
			t.Errorf("%s: at most %d events were left out", scheme, left)
		}
	}
}

// A sink that panics leaves nothing locked: whoever recovers can run again.
func TestRunAfterAPanicOfASink(t *testing.T) {
	fs := &vfs.Memory{}
	run := func(sink func(int64)) (m Metrics, err error) {
		planned := 0
		app, ev := station(&planned)
		ev.Each(sink)
		return Run(context.Background(), app, ev.Slice([]reading{{Time: 1}, {Time: 2}}), Options{FS: fs, State: "state", Output: "out.jsonl", Batch: 1})
	}
	func() {
		defer func() {
			if recover() != "no more" {
				t.Error("the sink did not panic")
			}
		}()
		_, _ = run(func(int64) { panic("no more") })
	}()
	if m, err := run(func(int64) {}); err != nil || m.Events != 2 {
		t.Errorf("%d events, %v", m.Events, err)
	}
}

// Two runs do not write one file, nor does one run write it twice.
func TestOutputOfAnother(t *testing.T) {
	fs := vfs.NewCrashable()
	name, _ := payments(t, rng.New(1, 1), 60)
	run := func(o Options) error { return runTill(t, fs, name, o) }
	lock, err := fs.Lock("out.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if err := run(Options{Output: "out.jsonl"}); !errors.Is(err, vfs.ErrLocked) || !strings.Contains(err.Error(), "output out.jsonl") {
		t.Errorf("the output of another run: %v", err)
	}
	if err := run(Options{DeadLetters: "out.jsonl"}); !errors.Is(err, vfs.ErrLocked) || !strings.Contains(err.Error(), "dead letters out.jsonl") {
		t.Errorf("dead letters in the output of another run: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := run(Options{Output: "out.jsonl", DeadLetters: "./out.jsonl"}); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("output and dead letters in one file: %v", err)
	}
	if err := run(Options{Output: "out.jsonl", DeadLetters: "letters"}); err != nil {
		t.Errorf("after that: %v", err)
	}
}
