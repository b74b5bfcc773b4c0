package txn_test

import (
	"fmt"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/txn"
)

type pair struct {
	from, to uint64
	n        int64
}

// bound is an application of two updates per event over a number of keys, with
// a feed of one batch.
func bound(b *testing.B, keys, events int) (*txn.Bound, *txn.Feed) {
	b.Helper()
	app := txn.New("bench")
	t := txn.NewTable[uint64, int64](app, "t")
	for k := range uint64(keys) {
		t.Load(k, 1)
	}
	add := txn.Update(t, "add", func(_ txn.Ctx, n int64, v *int64) txn.Verdict { *v += n; return txn.OK })
	moves := txn.On(app, "move", func(p *txn.Plan, e pair) {
		add.At(p, e.from, -e.n)
		add.At(p, e.to, e.n)
	}, func(out txn.Outcome, _ pair) bool { return out.Committed() })
	r := rng.New(1, 1)
	feed := app.NewFeed()
	for range events {
		moves.Push(feed, pair{r.Uint64N(uint64(keys)), r.Uint64N(uint64(keys)), 1})
	}
	run, err := txn.Bind(app, 1)
	if err != nil {
		b.Fatal(err)
	}
	return run, feed
}

const benchEvents = 16384

func perEvent(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchEvents, "ns/event")
}

// BenchmarkPlan is planning alone: no key is looked up.
func BenchmarkPlan(b *testing.B) {
	run, feed := bound(b, 1000, benchEvents)
	x := run.NewBatch(0)
	x.Open(feed)
	x.PlanRegion(0)
	x.Seal(false) // which learns how much room the plans need
	b.ReportAllocs()
	for b.Loop() {
		x.Open(feed)
		x.PlanRegion(0)
	}
	perEvent(b)
}

// BenchmarkResolve is finding the rows of planned accesses and chaining them.
func BenchmarkResolve(b *testing.B) {
	for _, keys := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			run, feed := bound(b, keys, benchEvents)
			x := run.NewBatch(0)
			x.Open(feed)
			x.PlanRegion(0)
			b.ReportAllocs()
			for b.Loop() {
				x.Seal(false)
				for s := range x.Shards(0) {
					x.Resolve(0, s)
				}
			}
			perEvent(b)
		})
	}
}

// BenchmarkSerial is a batch run in place: events of two updates each.
func BenchmarkSerial(b *testing.B) {
	for _, keys := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			run, feed := bound(b, keys, benchEvents)
			x, s := run.NewBatch(0), run.NewSerial()
			b.ReportAllocs()
			for b.Loop() {
				x.Open(feed)
				x.BeginResults()
				if p := s.Run(x, false); p != nil {
					b.Fatal(p.Value)
				}
			}
			perEvent(b)
		})
	}
}
