package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Input makes a fresh instance of the recorded application, in its state at the
// start of the trace and with the recorded batches as its source.
type Input func() (*program.Instance, error)

// limited ends a source of batches with the one that has the given event.
func limited(source txn.Source, limit int) txn.Source {
	if limit == 0 {
		return source
	}
	seen := 0
	return txn.SourceFunc(func(ctx context.Context, f *txn.Feed, n int) error {
		if seen >= limit {
			return io.EOF
		}
		before := f.Len()
		err := source.Fill(ctx, f, n)
		seen += f.Len() - before
		return err
	})
}

// replay is a run of the engine that goes on batch by batch, as it is asked to:
// several of them can take turns.
type replay struct {
	next func() (nanos float64, more bool)
	stop func()
	err  error
	in   *program.Instance
}

func startReplay(ctx context.Context, input Input, limit int, o engine.Options) (*replay, error) {
	in, err := input()
	if err != nil {
		return nil, err
	}
	r := &replay{in: in}
	source := limited(in.Source, limit)
	r.next, r.stop = iter.Pull(func(yield func(float64) bool) {
		var done []float64 // by batch; more than one when the engine had fetched ahead
		told := func() bool {
			for len(done) > 0 {
				if !yield(done[0]) {
					return false
				}
				done = done[1:]
			}
			return true
		}
		o.NoLatency = true
		o.Listener.BatchDone = func(b engine.BatchInfo) { done = append(done, float64(b.Nanos)) }
		wait := txn.SourceFunc(func(ctx context.Context, f *txn.Feed, n int) error {
			if !told() {
				done = nil
				return io.EOF
			}
			return source.Fill(ctx, f, n)
		})
		if _, r.err = engine.Run(ctx, in.App, wait, o); r.err == nil {
			told()
		}
	})
	return r, nil
}

// close ends the run where it is.
func (r *replay) close() {
	r.stop()
	if r.in.Close != nil {
		_ = r.in.Close() // of what was read
	}
}

// batch runs the next batch and returns how long it took; io.EOF after the last.
func (r *replay) batch() (float64, error) {
	nanos, more := r.next()
	switch {
	case more:
		return nanos, nil
	case r.err != nil:
		return 0, r.err
	}
	return 0, io.EOF
}

// each hands the batches of the trace to fn, in a pipeline of their own.
func each(ctx context.Context, input Input, limit int, fn func(p *pipeline, batch int, feed *txn.Feed) error) error {
	in, err := input()
	if err != nil {
		return err
	}
	if in.Close != nil {
		defer in.Close()
	}
	feed := in.App.NewFeed()
	p, err := newPipeline(in.App)
	if err != nil {
		return err
	}
	source := limited(in.Source, limit)
	for batch := 0; ; batch++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		feed.Reset()
		err := source.Fill(ctx, feed, engine.BatchDefault)
		if feed.Len() > 0 {
			if err := fn(p, batch, feed); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func panicked(p *txn.Panic) error {
	return fmt.Errorf("event %d of its batch: %s %q panicked: %v", p.Event, p.What, p.Name, p.Value)
}
