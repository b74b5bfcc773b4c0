package engine

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/txn"
)

// durable is the state directory of a run.
type durable struct {
	dir    *checkpoint.Dir
	scheme Scheme
	start  checkpoint.Point // where this process began
	// The log is read to its end. Events cannot tell: at its end there may be batches
	// that have none, only dead letters.
	readBack bool
	work     chan func() error
	done     chan error
	busy     bool // a commit is under way

	view    viewing
	changed *txn.Changes // since the last batch, under wal
	effects []byte
}

// openDurable opens the state directory and puts the application into the state
// of its checkpoint.
func openDurable(bound *txn.Bound, o *Options) (*durable, error) {
	dir, err := checkpoint.Open(o.FS, o.State, o.Identity, o.Checkpoints)
	if err != nil {
		return nil, err
	}
	p, err := dir.Restore(bound.App, o.From)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	bound.Expire(p.Events, p.LastTime)
	d := &durable{dir: dir, scheme: o.Durability, start: p, work: make(chan func() error), done: make(chan error, 1)}
	if d.scheme == WAL {
		d.changed = bound.App.Track()
	}
	go func() {
		for commit := range d.work {
			d.done <- commit()
		}
	}()
	return d, nil
}

// commit begins to log a batch's events, and with them how the batch before went.
// Events do not depend on what comes of them, so that the disk works while the batch
// executes.
func (d *durable) commit(x *txn.Batch, feed *txn.Feed) {
	switch d.scheme {
	case NoLog:
		d.dir.Unlogged(x.Events)
		return
	case WAL:
		return
	case Command, Dependency, Views:
	}
	// The whole feed, also what comes behind an event that cannot be: the source stands
	// behind all of it, and doing it again comes to the same end.
	first, n, view := x.First, feed.Len(), d.view.take()
	d.busy = true
	d.work <- func() error {
		if len(view.bytes) > 0 {
			if err := d.dir.View(view.first, view.events, view.bytes); err != nil {
				return err
			}
		}
		return d.dir.Commit(first, feed, 0, n)
	}
}

// commitEffects logs what a batch did, which is known only now.
func (d *durable) commitEffects(x *txn.Batch, app *txn.App, p checkpoint.Point, output, letters []byte) (err error) {
	if d.effects, err = checkpoint.AppendEffects(d.effects[:0], app, d.changed, p, output, letters); err != nil {
		return err
	}
	return d.dir.CommitEffects(x.First, p.Events-x.First, d.effects)
}

// wait returns when the batch is logged: only then may anybody hear of it.
func (d *durable) wait() error {
	if !d.busy {
		return nil
	}
	d.busy = false
	return <-d.done
}

func (d *durable) close() error {
	err := d.wait()
	close(d.work)
	return errors.Join(err, d.dir.Close())
}

// resuming is the source of a run that goes on: the input behind what was done of it.
type resuming struct {
	source txn.Source
	skip   int       // events of the source that were done
	skim   *txn.Feed // where they go
	done   int
}

// Fill implements [txn.Source].
func (r *resuming) Fill(ctx context.Context, f *txn.Feed, limit int) error {
	for r.done < r.skip {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := r.source.Fill(ctx, r.skim, min(max(limit, BatchDefault), r.skip-r.done))
		r.done += r.skim.Len()
		r.skim.Reset()
		if errors.Is(err, io.EOF) && r.done < r.skip {
			return fmt.Errorf("the input ends after %d events, of which the state directory says that %d are done: it belongs to another input", r.done, r.skip)
		}
		if err != nil {
			return err
		}
	}
	return r.source.Fill(ctx, f, limit)
}

// point returns where the run stands.
func (r *runner) point() checkpoint.Point {
	m := &r.m
	p := checkpoint.Point{
		Events: m.Events, Committed: m.Committed, Aborted: m.Aborted, Ops: m.Ops, Batches: m.Batches,
		LastTime: r.lastTime, Results: m.ResultsHash,
	}
	p.Output, p.Letters = r.output.length(), r.letters.length()
	if r.letters == nil && r.durable != nil { // nothing was added
		p.Letters = r.durable.start.Letters
	}
	p.Discarded, p.Input, p.OutputTo = m.Discarded, r.input, r.opts.Output
	return p
}

// pointAfter returns where the run will stand after the first done events of a batch.
func (r *runner) pointAfter(x *txn.Batch, info *BatchInfo) checkpoint.Point {
	p := r.point()
	p.Events += info.Events
	p.Committed += info.Committed
	p.Aborted += info.Aborted
	p.Ops += info.Ops
	p.Batches++
	if x.Times != nil && info.Events > 0 {
		p.LastTime = x.Times[info.Events-1]
	}
	p.Output += int64(len(r.output.lines()))
	p.Letters += int64(len(r.letters.lines()))
	p.Discarded += info.Discarded
	if at, ok := x.Feed().Position(); ok && info.Events == x.Feed().Len() {
		p.Input = &at
	}
	return p
}

// stand makes the run stand at a point.
func (r *runner) stand(p checkpoint.Point) {
	m := &r.m
	m.Events, m.Committed, m.Aborted, m.Ops, m.Batches = p.Events, p.Committed, p.Aborted, p.Ops, p.Batches
	m.ResultsHash, m.Discarded, r.input = p.Results, p.Discarded, p.Input
	r.lastTime = p.LastTime
	r.bound.Resume(p.Events, p.LastTime)
}

// secure writes the output and the dead letters of a batch once the batch survives a
// crash. What a panic cut short is not logged as done: it is done again.
func (r *runner) secure(x *txn.Batch, info *BatchInfo, whole bool) error {
	if err := r.output.results(x, info.Events, r.team); err != nil {
		return err
	}
	r.letters.discards(x, info)
	if d := r.durable; d != nil {
		began := clock.NowNanos()
		if d.scheme == WAL && d.readBack && whole {
			if err := d.commitEffects(x, r.app, r.pointAfter(x, info), r.output.lines(), r.letters.lines()); err != nil {
				return err
			}
		}
		if err := d.wait(); err != nil {
			return err
		}
		info.waited = clock.NowNanos() - began
	}
	x.Expire(info.Events)
	return errors.Join(r.output.write(r.output.lines()), r.letters.write(r.letters.lines()))
}

// beginCheckpoint begins to write the state as it is, after the output that belongs
// to it.
func (r *runner) beginCheckpoint() error {
	if err := errors.Join(r.output.sync(), r.letters.sync()); err != nil {
		return err
	}
	return r.durable.dir.Begin(r.app, r.point())
}

// rowsPerAccess is how many rows go into a checkpoint under way for each access of the
// batch before: so that the batches take no longer than twice their time.
const rowsPerAccess = 1

// keep goes on with the checkpoint under way, or begins one when it is due.
func (r *runner) keep(x *txn.Batch) error {
	d := r.durable
	switch {
	case d == nil || !r.atLogEnd():
		return nil
	case d.dir.Writing():
		return d.dir.Continue(max(sliceMin, rowsPerAccess*x.Accesses))
	case d.dir.Due():
		return r.beginCheckpoint()
	}
	return nil
}

// sliceMin is how many rows go into a checkpoint after a batch at least.
const sliceMin = 1024

// atLogEnd reports whether all that was logged before is done again: until then the
// log is worth more than a checkpoint.
func (r *runner) atLogEnd() bool { return r.durable.readBack }

// settle ends a run that came to its end or was interrupted: what was done is kept.
func (r *runner) settle(err error) error {
	d := r.durable
	if d == nil || err != nil && !Interrupted(err) || !r.atLogEnd() {
		return err
	}
	if d.dir.Writing() {
		if failed := d.dir.Finish(); failed != nil {
			return failed
		}
	}
	if r.m.Events > d.dir.At() {
		if failed := r.beginCheckpoint(); failed != nil {
			return failed
		}
		if failed := d.dir.Finish(); failed != nil {
			return failed
		}
	}
	if name := r.opts.Savepoint; name != "" {
		if failed := d.dir.Savepoint(r.app, name, r.point()); failed != nil {
			return failed
		}
	}
	return err
}

// closeDurable gives the directory and the output free.
func (r *runner) closeDurable() error {
	var errs []error
	errs = append(errs, r.output.close(), r.letters.close())
	if r.durable != nil {
		errs = append(errs, r.durable.close())
	}
	return errors.Join(errs...)
}
