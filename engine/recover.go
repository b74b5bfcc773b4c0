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

// recover does the batches of the log again, by what the log has of each.
func (r *runner) recover(ctx context.Context) error {
	d := r.durable
	if d == nil {
		r.startVerifier()
		return nil
	}
	began := clock.NowNanos()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		l, err := d.dir.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && l.First != r.m.Events {
			err = fmt.Errorf("state directory %s: the log goes on with event %d, the run with event %d", r.opts.State, l.First, r.m.Events)
		}
		if err == nil && l.Done() {
			err = r.apply(l)
		} else if err == nil {
			r.startVerifier()
			err = r.redo(l)
		}
		if err != nil {
			return err
		}
	}
	d.readBack = true
	if d.changed != nil { // what was logged already
		d.changed.Forget()
	}
	r.startVerifier()
	r.m.RecoverySeconds += float64(clock.NowNanos()-began) / 1e9
	return nil
}

// apply makes the state what it was after a batch.
func (r *runner) apply(l *checkpoint.Logged) error {
	p, lines, letters, err := l.Apply(r.app)
	if err != nil {
		return err
	}
	r.verifier = nil // it begins anew behind what is not run
	r.m.Resumed += l.Events
	r.stand(p)
	r.bound.Expire(p.Events, p.LastTime)
	return errors.Join(r.output.write(lines), r.letters.write(letters))
}

// How a batch that was not run anew went, as a strategy.
const (
	redoneByChains = "view by chains"
	redoneByLevels = "view by levels"
)

var redoneBy = map[txn.Redo]string{txn.RedoChains: redoneByChains, txn.RedoLevels: redoneByLevels}

// redo runs a batch again, with less when it is known how it went.
func (r *runner) redo(l *checkpoint.Logged) error {
	x, d := r.batches[0], r.feeds[0]
	d.reset()
	r.began = clock.NowNanos()
	x.First = l.First
	var view *txn.View
	if l.View != nil && r.verifier == nil { // which wants to see everything
		var err error
		if view, err = r.bound.ParseView(l.View, l.Events); err != nil {
			return fmt.Errorf("state directory %s: view of the batch from event %d: %w", r.opts.State, l.First, err)
		}
	}
	if err := l.Push(d.feed); err != nil {
		return err
	}
	if view != nil {
		return r.redoView(l, view)
	}
	x.Open(d.feed)
	x.BeginResults()
	r.graph.opened(0)
	info := BatchInfo{Number: r.m.Batches}
	p := r.execute(0, 1, &info)
	if err := r.app.LogErr(); err != nil {
		return err
	}
	if r.m.Replayed += l.Events; p != nil {
		r.m.Replayed += p.Event - l.Events
	}
	return r.release(x, d, p, &info)
}

// redoView runs the events of a batch that committed again, and knows of the others.
func (r *runner) redoView(l *checkpoint.Logged, v *txn.View) error {
	x, d := r.batches[0], r.feeds[0]
	p := x.OpenView(v, d.feed)
	x.BeginResults()
	r.graph.opened(0)
	info := BatchInfo{Number: r.m.Batches, Strategy: redoneBy[v.Redo]}
	if p == nil && v.Redo != txn.RedoPlain {
		if err := r.graph.redo(x, v, &info); err != nil {
			return err
		}
	} else if p == nil {
		p = r.execute(0, 1, &info)
	}
	if err := r.app.LogErr(); err != nil {
		return err
	}
	if p != nil {
		return nowPanics(x, p)
	}
	if err := x.Whole(v, d.feed); err != nil {
		return err
	}
	r.m.Replayed += l.Events
	return r.release(x, d, nil, &info)
}

// redo does a batch again by its view: the graph is built, and what it says of other
// chains is known already.
func (g *graphPath) redo(x *txn.Batch, v *txn.View, info *BatchInfo) error {
	g.r.team.do(func(int) {
		for g.planRegion(0) {
		}
	})
	x.Seal(false)
	if x.Panic != nil { // the view is of events that are not planned now
		return nowPanics(x, x.Panic)
	}
	g.graph.Reset(x)
	g.exec.Use(x)
	x.OpenLevels()
	g.shards(func(_, table, shard int) { g.graph.Link(x.Resolve(table, shard)) })
	g.shards(func(_, table, shard int) { x.SeeChains(table, shard) })
	err := g.r.team.failing(v.Parts(), func(_, part int) error { return x.Take(v, part) })
	if err == nil && v.Redo == txn.RedoChains {
		err = g.r.team.failing(len(g.tasks), func(worker, i int) error { return g.exec.Chain(worker, v, g.tasks[i].table, g.tasks[i].shard) })
	} else if err == nil {
		err = g.levels(x)
	}
	if err != nil {
		return err
	}
	if p := g.finish(x, info); p != nil {
		return nowPanics(x, p)
	}
	return nil
}

func nowPanics(x *txn.Batch, p *txn.Panic) error {
	return fmt.Errorf("event %d: %s %q committed when it ran first, and now panics: %v", x.Number(uint32(p.Event)), p.What, p.Name, p.Value)
}

// levels runs the operations of each level in parallel.
func (g *graphPath) levels(x *txn.Batch) error {
	const chunk = 64
	ids, begins := x.Order()
	for i := range len(begins) - 1 {
		level := ids[begins[i]:begins[i+1]]
		err := g.r.team.failing((len(level)+chunk-1)/chunk, func(worker, i int) error {
			return g.exec.Again(worker, level[i*chunk:min((i+1)*chunk, len(level))])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shards calls do for each shard of each table, in parallel.
func (g *graphPath) shards(do func(worker, table, shard int)) {
	g.r.team.share(len(g.tasks), func(worker, i int) { do(worker, g.tasks[i].table, g.tasks[i].shard) })
}
