package engine_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/invariants"
	m "github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/txn"
)

// counter is the smallest application: adds to one key, panics on request.
type counter struct {
	app    *txn.App
	counts *txn.Table[string, int64]
	adds   *txn.Event[int64, int64]
	got    []int64
}

const (
	panicInPlan   = 1001
	panicInOp     = 1002
	panicInResult = 1003
)

func newCounter() *counter {
	c := &counter{app: txn.New("counter")}
	c.counts = txn.NewTable[string, int64](c.app, "counts")
	add := txn.Upsert(c.counts, "add", func(_ txn.Ctx, n int64, v *int64, _ bool) txn.Verdict {
		if n == panicInOp {
			panic("operation")
		}
		*v += n
		return txn.OK
	})
	c.adds = txn.On(c.app, "add", func(p *txn.Plan, n int64) {
		if n == panicInPlan {
			panic("plan")
		}
		add.At(p, "k", n)
	}, func(out txn.Outcome, n int64) int64 {
		if n == panicInResult {
			panic("result")
		}
		v, _ := add.After(out)
		return v
	})
	c.adds.Each(func(v int64) { c.got = append(c.got, v) })
	return c
}

// A panic that a serial run would meet stops the run: events before it are
// committed and their results delivered, whatever the strategy and the batch.
func TestPanicStopsAtItsEvent(t *testing.T) {
	for what, n := range map[string]int64{"plan": panicInPlan, "operation": panicInOp, "result": panicInResult} {
		for _, s := range schedule.Strategies() {
			for _, batch := range []int{1, 3, 100} {
				c := newCounter()
				events := []int64{1, 2, 3, 4, n, 5, n, 6}
				metrics, err := engine.Run(context.Background(), c.app, c.adds.Slice(events), engine.Options{Strategy: s.String(), Workers: 3, Batch: batch, Verify: true})
				var p *engine.PanicError
				if !errors.As(err, &p) || p.Event != 4 || p.What != what || !strings.Contains(err.Error(), "event 4") {
					t.Fatalf("%s, %s, batch %d: %v", what, s, batch, err)
				}
				if p.Name != "add" || len(p.Stack) == 0 || metrics.Events != 4 || len(c.got) != 4 || c.got[3] != 10 {
					t.Fatalf("%s, %s, batch %d: panic of %q, %d events, results %v", what, s, batch, p.Name, metrics.Events, c.got)
				}
				if v, _ := c.counts.Peek("k"); v != 10 {
					t.Fatalf("%s, %s, batch %d: the count is %d, expected 10", what, s, batch, v)
				}
			}
		}
	}
}

// Functions that divide by zero or panic on values that only speculation shows
// do not stop the run.
func TestSpeculativePanicsDoNotCount(t *testing.T) {
	var events []m.Event
	for range 30 {
		events = append(events,
			list(add(0, -5), add(1, -99)), // makes key 0 negative until it aborts
			list(m.Op{Kind: m.Strict, Key: 0, Arg: 0}),
			list(m.Op{Kind: m.Divide, Key: 2, Arg: 0, Reads: []m.Read{at(0)}}, m.Op{Kind: m.Put, Key: 2, Arg: 3}),
			list(add(3, -2), add(1, -99)),
			list(m.Op{Kind: m.Strict, Key: 3, Reads: []m.Read{{Key: 0}, {Key: 0}}}),
		)
	}
	everywhere(t, events)
}

func TestCancelEndsAfterTheBatch(t *testing.T) {
	c := newCounter()
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	o := engine.Options{Batch: 10, Listener: engine.EventListener{BatchDone: func(engine.BatchInfo) {
		if n++; n == 3 {
			cancel()
		}
	}}}
	metrics, err := engine.Run(ctx, c.app, c.adds.Slice(make([]int64, 1000)), o)
	if !engine.Interrupted(err) || metrics.Events != 30 || len(c.got) != 30 {
		t.Fatalf("%v after %d events and %d results, expected 30", err, metrics.Events, len(c.got))
	}
}

func TestSourceErrorIsReturnedAfterItsEvents(t *testing.T) {
	c := newCounter()
	broken := errors.New("disk on fire")
	metrics, err := engine.Run(context.Background(), c.app, txn.SourceFunc(func(_ context.Context, f *txn.Feed, _ int) error {
		c.adds.Push(f, 1)
		c.adds.Push(f, 2)
		return broken
	}), engine.Options{})
	if !errors.Is(err, broken) || metrics.Events != 2 {
		t.Fatalf("%v after %d events", err, metrics.Events)
	}
}

// A batch is closed by its linger while the source waits for its next event.
func TestLingerClosesABatch(t *testing.T) {
	c := newCounter()
	more := make(chan struct{})
	sent := 0
	source := txn.SourceFunc(func(ctx context.Context, f *txn.Feed, _ int) error {
		if sent == 2 {
			select {
			case <-more: // opened when the first batch is done
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if sent == 4 {
			return io.EOF
		}
		c.adds.Push(f, 1)
		sent++
		return nil
	})
	var sizes []int
	_, err := engine.Run(context.Background(), c.app, source, engine.Options{
		Batch: 5000, Linger: 5 * time.Millisecond,
		Listener: engine.EventListener{BatchDone: func(b engine.BatchInfo) {
			if sizes = append(sizes, b.Events); len(sizes) == 1 {
				close(more)
			}
		}},
	})
	total := 0
	for _, n := range sizes {
		total += n
	}
	if err != nil || total != 4 || len(sizes) < 2 {
		t.Fatalf("%v, batches %v", err, sizes)
	}
}

// A source is never asked for more than one batch ahead.
func TestBackPressure(t *testing.T) {
	c := newCounter()
	filled, done := 0, 0
	source := txn.SourceFunc(func(_ context.Context, f *txn.Feed, limit int) error {
		for range limit {
			c.adds.Push(f, 1)
		}
		if filled += limit; filled-done > 2*10 {
			t.Errorf("%d events are filled and %d done", filled, done)
		}
		if filled >= 500 {
			return io.EOF
		}
		return nil
	})
	_, err := engine.Run(context.Background(), c.app, source, engine.Options{
		Batch: 10, Workers: 2, Strategy: "ns-op-eager", Listener: engine.EventListener{BatchDone: func(b engine.BatchInfo) { done += b.Events }},
	})
	if err != nil || done != 500 {
		t.Fatal(err, done)
	}
}

func TestOptionsNameAllFaults(t *testing.T) {
	err := engine.Options{Workers: 100, Batch: -1, Linger: -1, Strategy: "fast"}.Validate()
	for _, want := range []string{"workers 100: 1 to 64", "batch -1", "linger -1ns", `"fast": one of auto`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestAnApplicationRunsOnce(t *testing.T) {
	c := newCounter()
	if _, err := engine.Run(context.Background(), c.app, c.adds.Slice([]int64{1}), engine.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Run(context.Background(), c.app, c.adds.Slice([]int64{1}), engine.Options{}); err == nil {
		t.Fatal("a second run was accepted")
	}
}

// Steady state allocates nothing per event.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	if invariants.Enabled {
		t.Log("checks allocate: this test is for plain builds")
		return
	}
	for _, s := range []string{"serial", "ns-op-eager"} {
		c := newCounter()
		c.got = make([]int64, 0, 400_000)
		left := 400_000
		source := txn.SourceFunc(func(_ context.Context, f *txn.Feed, limit int) error {
			for range limit {
				c.adds.Push(f, 1)
			}
			if left -= limit; left <= 0 {
				return io.EOF
			}
			return nil
		})
		metrics, err := engine.Run(context.Background(), c.app, source, engine.Options{Strategy: s, Workers: 2, Batch: 4000})
		if err != nil {
			t.Fatal(err)
		}
		if per := float64(metrics.Mallocs) / float64(metrics.Events); per > 0.05 {
			t.Errorf("%s: %.3f allocations per event", s, per)
		}
	}
}

func TestManySmallBatchesAreExact(t *testing.T) {
	l := m.New(4)
	events := m.Draw(rng.New(1, 8), 3000, m.Shape{Keys: 200, OpsMax: 2, Tables: 3})
	if _, err := engine.Run(context.Background(), l.App, l.Events.Slice(events), engine.Options{Strategy: "ns-op-eager", Batch: 17, Verify: true}); err != nil {
		t.Fatal(err)
	}
}

// On one key that everybody touches, each abort takes all that follow with it.
// Resetting them again and again made the time grow with the square of the
// aborts; a run now stops speculating after a while.
func TestAbortStormStaysLinear(t *testing.T) {
	const n = 2000
	var events []m.Event
	for i := range n {
		events = append(events, list(add(0, 1), add(int16(1+i%3), -int64(i%2*99))))
	}
	for _, s := range schedule.Strategies() {
		l := m.New(4)
		metrics, err := engine.Run(context.Background(), l.App, l.Events.Slice(events), engine.Options{Strategy: s.String(), Workers: 4, Batch: n, Verify: true})
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if metrics.Redone > 3*n {
			t.Errorf("%s: %d of %d transactions were redone", s, metrics.Redone, n)
		}
	}
}
