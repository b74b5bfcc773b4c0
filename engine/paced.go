package engine

import (
	"context"
	"time"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/txn"
)

// paced delivers the events of a source at a fixed rate, whether the engine keeps
// up or not (open loop): event i arrives i/rate after the first. What is late is
// handed over at once, and its latency counts from when it should have come.
type paced struct {
	ctx    context.Context
	source txn.Source
	clock  clock.Clock
	gap    float64 // ns between arrivals
	linger time.Duration
	start  int64 // arrival of event 0
	began  bool
	events int // handed over
}

func newPaced(ctx context.Context, source txn.Source, c clock.Clock, rate float64, linger time.Duration) *paced {
	return &paced{ctx: ctx, source: source, clock: c, gap: 1e9 / rate, linger: linger}
}

// arrival is when event i arrives.
func (p *paced) arrival(i int) int64 { return p.start + int64(float64(i)*p.gap) }

// next waits for the next event, and for more of them until the linger is over or
// the batch is full.
func (p *paced) next(d *delivery, limit int) {
	if !p.began {
		p.start, p.began = p.clock.NowNanos(), true
	}
	if d.err = p.until(p.arrival(p.events)); d.err != nil {
		return
	}
	closes := max(p.clock.NowNanos(), p.arrival(p.events)+int64(p.linger))
	for {
		now := p.clock.NowNanos()
		due := int(float64(now-p.start)/p.gap) + 1 - p.events
		if d.err = p.take(d, min(due, limit-d.feed.Len())); d.err != nil || d.feed.Len() >= limit || d.feed.Discards() > 0 || now >= closes {
			return
		}
		full := p.arrival(p.events + limit - d.feed.Len() - 1) // of the last one that fits
		if d.err = p.until(min(closes, full)); d.err != nil {
			return
		}
	}
}

// take hands over n events.
func (p *paced) take(d *delivery, n int) error {
	for n > 0 {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		had := d.feed.Len()
		err := p.source.Fill(p.ctx, d.feed, n)
		if got := d.feed.Len() - had; got > 0 {
			d.marks = append(d.marks, mark{upTo: d.feed.Len(), nanos: p.arrival(p.events), gap: p.gap})
			p.events += got
			n -= got
		}
		if err != nil || d.feed.Discards() > 0 { // of which nobody knows when they were due
			return err
		}
	}
	return nil
}

func (p *paced) until(nanos int64) error {
	if wait := nanos - p.clock.NowNanos(); wait > 0 {
		select {
		case <-p.clock.After(time.Duration(wait)):
		case <-p.ctx.Done():
		}
	}
	return p.ctx.Err()
}

func (p *paced) close() {}
