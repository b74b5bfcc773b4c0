package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// durable is the state directory of a run.
type durable struct {
	dir    *checkpoint.Dir
	log    bool             // events are logged before their results are released
	start  checkpoint.Point // where this process began
	logged int              // events that the log has, those of the checkpoint included
	work   chan func() error
	done   chan error
	busy   bool // a commit is under way
}

// openDurable opens the state directory and puts the application into the state
// of its checkpoint.
func openDurable(app *txn.App, o *Options) (*durable, error) {
	dir, err := checkpoint.Open(o.FS, o.State, o.Identity, o.keep)
	if err != nil {
		return nil, err
	}
	p, err := dir.Restore(app)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	d := &durable{dir: dir, log: o.Durability == "command", start: p, logged: dir.Logged(), work: make(chan func() error), done: make(chan error, 1)}
	go func() {
		for commit := range d.work {
			d.done <- commit()
		}
	}()
	return d, nil
}

// commit begins to log what of a batch is not logged yet. What is logged is the
// input: it does not depend on what comes of it, so that the disk works while the
// batch executes.
func (d *durable) commit(x *txn.Batch, feed *txn.Feed) {
	first, from, to := x.First, max(0, d.logged-x.First), x.Events
	if !d.log || from >= to {
		return
	}
	d.busy = true
	d.logged = first + to
	d.work <- func() error { return d.dir.Commit(first+from, feed, from, to) }
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

// resuming is the source of a run that goes on: first the logged events since the
// checkpoint, then the input behind what was done of it.
type resuming struct {
	dir    *checkpoint.Dir
	source txn.Source
	skip   int       // events of the source that were done
	skim   *txn.Feed // where they go
	logged bool      // the log is read to its end
	done   int
}

// Fill implements [txn.Source]. A logged batch comes as a whole, whatever the limit.
func (r *resuming) Fill(ctx context.Context, f *txn.Feed, limit int) error {
	if !r.logged {
		err := r.dir.Replay(f)
		if !errors.Is(err, io.EOF) {
			return err
		}
		r.logged = true
	}
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

// outputFile gets the results of a run, a line of JSON for each.
type outputFile struct {
	name string
	f    vfs.File
	at   int64
	buf  []byte
}

// openOutput opens the file behind what it has of the results up to a point. What
// comes after that is written again.
func openOutput(fs vfs.FS, name string, length int64) (*outputFile, error) {
	if length == 0 {
		f, err := fs.Create(name)
		if err == nil {
			err = fs.SyncDir(path.Dir(name))
		}
		return &outputFile{name: name, f: f}, err
	}
	f, err := fs.Edit(name)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err == nil && size < length {
		err = fmt.Errorf("output %s has %d bytes, of which the state directory says that %d were written: it is another file", name, size, length)
	}
	if err == nil {
		err = f.Truncate(length)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &outputFile{name: name, f: f, at: length}, nil
}

// write appends the results of the first done events of a batch, in one piece.
func (o *outputFile) write(x *txn.Batch, done int) error {
	o.buf = o.buf[:0]
	for e := range done {
		var err error
		if o.buf, err = x.AppendResult(o.buf, e); err != nil {
			return err
		}
	}
	n, err := o.f.WriteAt(o.buf, o.at)
	o.at += int64(n)
	if err != nil {
		return fmt.Errorf("output %s: %w", o.name, err)
	}
	return nil
}

// point returns where the run stands.
func (r *runner) point() checkpoint.Point {
	m := &r.m
	p := checkpoint.Point{
		Events: m.Events, Committed: m.Committed, Aborted: m.Aborted, Ops: m.Ops, Batches: m.Batches,
		LastTime: r.lastTime, Results: m.ResultsHash,
	}
	if r.output != nil {
		p.Output = r.output.at
	}
	return p
}

// resume makes the run go on from a point.
func (r *runner) resume(p checkpoint.Point) {
	m := &r.m
	m.Events, m.Committed, m.Aborted, m.Ops, m.Batches = p.Events, p.Committed, p.Aborted, p.Ops, p.Batches
	m.ResultsHash, m.Resumed = p.Results, p.Events
	r.lastTime = p.LastTime
	r.bound.Resume(p.Events, p.LastTime)
}

// checkpoint writes the state, after the output that belongs to it.
func (r *runner) checkpoint() error {
	if r.output != nil {
		if err := r.output.f.Sync(); err != nil {
			return fmt.Errorf("output %s: %w", r.output.name, err)
		}
	}
	return r.durable.dir.Checkpoint(r.app, r.point())
}

// atLogEnd reports whether all that was logged before is run again: until then the
// log is worth more than a checkpoint.
func (r *runner) atLogEnd() bool { return r.m.Events >= r.durable.logged }

// settle ends a run that came to its end or was interrupted: what was done is kept.
func (r *runner) settle(err error) error {
	if r.durable != nil && (err == nil || Interrupted(err)) && r.m.Events > r.durable.dir.At() && r.atLogEnd() {
		if failed := r.checkpoint(); failed != nil {
			return failed
		}
	}
	return err
}

// closeDurable gives the directory and the output free.
func (r *runner) closeDurable() error {
	var errs []error
	if r.output != nil {
		errs = append(errs, r.output.f.Close())
	}
	if r.durable != nil {
		errs = append(errs, r.durable.close())
	}
	return errors.Join(errs...)
}
