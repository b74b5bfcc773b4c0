package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/heddle-stream/heddle/txn"
)

// intake fetches the events of the next batch beside the job, so that a source that waits holds up nobody.
type intake struct {
	source txn.Source
	feed   *txn.Feed  // what was fetched, or is being
	busy   bool       // a goroutine fetches
	full   bool       // the feed is to be routed
	ended  bool       // nothing comes behind it
	done   chan error // of that goroutine
}

func newIntake(app *txn.App, source txn.Source) intake {
	return intake{source: source, feed: app.NewFeed(), done: make(chan error, 1)}
}

// fetch begins to fetch: as many events as are wanted if all of them are there already (whole), else as many of them as
// there are. Before that it passes over some.
func (in *intake) fetch(ctx context.Context, skip uint64, wanted int, whole bool) {
	in.busy = true
	in.feed.Reset()
	go func() { in.done <- in.fill(ctx, skip, wanted, whole) }()
}

func (in *intake) fill(ctx context.Context, skip uint64, wanted int, whole bool) error {
	for skip > 0 {
		err := in.source.Fill(ctx, in.feed, int(min(skip, uint64(wanted))))
		if err != nil && in.feed.Len() == 0 {
			return fmt.Errorf("the source has %d events fewer than it had: %w", skip, err)
		}
		skip -= uint64(in.feed.Len())
		in.feed.Reset()
	}
	for in.feed.Len() < wanted {
		if err := in.source.Fill(ctx, in.feed, wanted-in.feed.Len()); err != nil || !whole {
			return err
		}
	}
	return nil
}

// fetched takes the end of a fetch, and returns why there will be no other one if that is a failure.
func (in *intake) fetched(ctx context.Context, err error) error {
	in.busy, in.full = false, in.feed.Len() > 0
	in.ended = err != nil
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		err = nil // the end that was to come
	}
	return err
}
