package engine

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/txn"
)

// delivery is the events of a batch with the times of their hand-over.
type delivery struct {
	feed  *txn.Feed
	marks []mark
	err   error // why there is nothing after it; io.EOF at the end of the source
}

// mark tells that the events up to upTo were handed over at the time, or that they
// arrived one after the other from then on.
type mark struct {
	upTo  int
	nanos int64
	gap   float64 // ns between two of them
}

func (d *delivery) reset() {
	d.feed.Reset()
	d.marks, d.err = d.marks[:0], nil
}

// intake forms batches of what the source delivers.
type intake interface {
	// next fills the delivery with a batch's events, limit at most. When it has no
	// events it has an error.
	next(d *delivery, limit int)
	close()
}

// inline calls the source when a batch is wanted: nothing runs beside the
// engine, and what the source takes can be told from what the engine takes.
type inline struct {
	ctx    context.Context
	source txn.Source
}

func (in *inline) next(d *delivery, limit int) {
	for d.feed.Len() == 0 && d.feed.Discards() == 0 {
		if err := in.ctx.Err(); err != nil {
			d.err = err
			return
		}
		n := d.feed.Len()
		d.err = in.source.Fill(in.ctx, d.feed, limit-n)
		if d.feed.Len() > n {
			d.marks = append(d.marks, mark{upTo: d.feed.Len(), nanos: clock.NowNanos()})
		}
		if d.err != nil {
			return
		}
	}
}

func (in *inline) close() {}

// lingering reads the source in a goroutine of its own, because a batch must be
// closed in time even while the source waits for its next event.
type lingering struct {
	cancel context.CancelFunc
	staged chan staging // filled, one at a time: the source waits for the engine
	empty  chan *txn.Feed
	done   chan struct{}
	chunk  int // events in a staging at most
	linger time.Duration
	clock  clock.Clock
	rest   error
}

type staging struct {
	feed  *txn.Feed
	nanos int64
	err   error
}

func newLingering(ctx context.Context, source txn.Source, feeds [2]*txn.Feed, chunk int, linger time.Duration) *lingering {
	ctx, cancel := context.WithCancel(ctx)
	l := &lingering{
		cancel: cancel, chunk: min(chunk, stagingMax), linger: linger, clock: clock.System{},
		staged: make(chan staging), empty: make(chan *txn.Feed, 2), done: make(chan struct{}),
	}
	l.empty <- feeds[0]
	l.empty <- feeds[1]
	go l.read(ctx, source)
	return l
}

// read stages what the source delivers. The channel hands over at most one
// staging ahead, which is the back-pressure on the source.
func (l *lingering) read(ctx context.Context, source txn.Source) {
	defer close(l.done)
	for {
		var f *txn.Feed
		select {
		case f = <-l.empty:
		case <-ctx.Done():
			return
		}
		err := source.Fill(ctx, f, l.chunk)
		select {
		case l.staged <- staging{f, l.clock.NowNanos(), err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// stagingMax bounds a staging: small enough that a batch fills evenly.
const stagingMax = 1024

func (l *lingering) next(d *delivery, limit int) {
	if l.rest != nil {
		d.err = l.rest
		return
	}
	var deadline <-chan time.Time
	for d.feed.Len()+l.chunk <= max(limit, l.chunk) {
		select {
		case s := <-l.staged:
			if l.take(d, s) {
				return
			}
			if deadline == nil && (d.feed.Len() > 0 || d.feed.Discards() > 0) {
				deadline = l.clock.After(l.linger)
			}
		case <-deadline:
			return
		case <-l.done:
			l.rest = context.Canceled
			d.err = l.rest
			return
		}
		if d.feed.Len() >= limit {
			return
		}
	}
}

// take moves a staging into the batch and reports whether it was the last.
func (l *lingering) take(d *delivery, s staging) bool {
	n := d.feed.Len()
	s.feed.MoveTo(d.feed)
	if d.feed.Len() > n {
		d.marks = append(d.marks, mark{upTo: d.feed.Len(), nanos: s.nanos})
	}
	l.empty <- s.feed
	if s.err != nil {
		l.rest, d.err = s.err, s.err
	}
	return s.err != nil
}

// close ends the reader. A source that ignores its context ends with its next
// event.
func (l *lingering) close() { l.cancel() }

// sourceEnded tells whether the error is the end of the source.
func sourceEnded(err error) bool { return errors.Is(err, io.EOF) }
