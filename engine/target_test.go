package engine

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/txn"
)

// Closed loop: the size follows what an event takes, in both directions.
func TestTargetFollowsTheCost(t *testing.T) {
	g := newTarget(10*time.Millisecond, false)
	run := func(perEvent int64, batches int) (size int) {
		for range batches {
			size = g.size(1 << 20)
			nanos := int64(size)*perEvent + 20_000
			g.took(size, nanos, nanos)
		}
		return size
	}
	for _, per := range []int64{1000, 10_000, 100, 1000} {
		size := run(per, 200)
		if took := int64(size)*per + 20_000; took > g.goal || took < g.goal/2 {
			t.Errorf("%d ns per event: batches of %d take %d of %d ns", per, size, took, g.goal)
		}
	}
}

// Open loop: when more arrives than is done, batches are as large as they may be.
func TestTargetGivesUpWhenBehind(t *testing.T) {
	g := newTarget(10*time.Millisecond, true)
	g.took(256, 256*1000, 256*1000)
	if size := g.size(100_000); size > 3500 || size < 1000 {
		t.Errorf("size %d for 1 us per event and 10 ms", size)
	}
	g.took(3000, 3_000_000, 50_000_000)
	if size := g.size(100_000); size != 100_000 {
		t.Errorf("size %d with events that waited for 47 ms", size)
	}
	g.took(3000, 3_000_000, 5_000_000)
	if size := g.size(100_000); size > 3500 {
		t.Errorf("size %d after the queue was worked off", size)
	}
}

// fakeClock jumps to whatever somebody waits for.
type fakeClock struct{ now int64 }

func (c *fakeClock) NowNanos() int64 { return c.now }

func (c *fakeClock) After(d time.Duration) <-chan time.Time {
	c.now += int64(d)
	ch := make(chan time.Time, 1)
	ch <- time.Time{}
	return ch
}

func TestPacedDeliversWhatIsDue(t *testing.T) {
	app := txn.New("paced")
	numbers := txn.NewTable[int, int](app, "numbers")
	put := txn.Upsert(numbers, "put", func(_ txn.Ctx, _ int, _ *int, _ bool) txn.Verdict { return txn.OK })
	events := txn.On[int, int](app, "event", func(p *txn.Plan, e int) { put.At(p, e, e) }, nil)
	c := &fakeClock{now: 5_000}
	p := newPaced(context.Background(), events.Slice(make([]int, 100)), c, 1e6, 10*time.Microsecond) // an event each us
	d := &delivery{feed: app.NewFeed()}

	p.next(d, 1000)
	if n := d.feed.Len(); n != 11 || d.err != nil { // those of 0 to 10 us
		t.Errorf("%d events in the first 10 us, error %v", n, d.err)
	}
	d.reset()
	c.now += 40_000 // the engine was busy: what came meanwhile is handed over at once
	p.next(d, 1000)
	if n := d.feed.Len(); n != 40 || d.marks[0].nanos != 16_000 || d.marks[0].gap != 1000 {
		t.Errorf("%d events after 40 us, marks %v", n, d.marks)
	}
	d.reset()
	p.next(d, 4)
	if n := d.feed.Len(); n != 4 || c.now != 5_000+54_000 {
		t.Errorf("%d events in a full batch, at %d", n, c.now)
	}
	d.reset()
	c.now += 1_000_000
	p.next(d, 1000)
	if n := d.feed.Len(); n != 45 || !errors.Is(d.err, io.EOF) {
		t.Errorf("%d events at the end, error %v", n, d.err)
	}
}
