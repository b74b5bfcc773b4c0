package engine

import (
	"slices"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/txn"
)

// Scheme says what a state directory logs of each batch before anybody gets its
// results, and so how a run comes back from its last checkpoint.
type Scheme string

// The schemes. All come back to the same state.
const (
	// NoLog logs nothing: the batches since the last checkpoint are read from the
	// source and run again.
	NoLog Scheme = "none"
	// Command logs the events, which are run again.
	Command Scheme = "command"
	// WAL logs the rows that a batch changed, and its output.
	WAL Scheme = "wal"
	// Dependency logs the events, which of them aborted, and the level of each
	// operation in the graph; operations of one level are done again in parallel.
	Dependency Scheme = "dependency"
	// Views logs the events, which of them aborted, and what operations read of other
	// chains or, where that costs less than computing it, what they left: chains are
	// done again in parallel, without waiting and without what was dear.
	Views Scheme = "views"
)

// Schemes returns all schemes.
func Schemes() []Scheme { return []Scheme{NoLog, Command, WAL, Dependency, Views} }

// viewing makes the views of batches. A view is logged together with the next batch,
// so that it costs no sync of its own; that of the very last batch is lost in a crash.
type viewing struct {
	waiting batchView
	spare   []byte // memory that nobody uses
	lent    []byte // memory of the view that is being logged
	costs   []float64
	perItem float64 // ns to append a value, smoothed
	parts   [][]byte
	items   []int
}

type batchView struct {
	first, events int
	bytes         []byte
}

// take hands out the view that waits. It is valid until the next call.
func (v *viewing) take() batchView {
	w := v.waiting
	v.waiting = batchView{}
	v.spare, v.lent = v.lent, w.bytes
	return w
}

// What views cost, in ns: measured for transfers between accounts.
const (
	// worthLogging is how many times the time to append a value an operation has to take
	// for its result to be logged: it is also written, read and decoded.
	worthLogging = 4
	// chainsNanos is what an operation costs more when it is done again by chains than when
	// its batch is run again.
	chainsNanos = 100
	// abortsNanos is what it costs per event of a batch to tell which ones aborted, and to
	// leave them out.
	abortsNanos = 100
)

// note makes the view of a batch that was executed as a whole.
func (r *runner) note(x *txn.Batch, info *BatchInfo) error {
	d := r.durable
	if d.scheme != Dependency && d.scheme != Views || x.Rejections() > 0 {
		return nil // a view does not tell why a plan rejects an event
	}
	v := &d.view
	view := txn.View{Text: r.output != nil, Redo: txn.RedoPlain}
	if info.Strategy != "serial" && x.Viewable() {
		view.Redo = r.redoing()
	}
	switch view.Redo {
	case txn.RedoLevels:
		x.Level()
		r.noteParts(x, &view)
	case txn.RedoChains:
		view.Logged = make([]bool, len(v.costs))
		for k, cost := range v.costs {
			view.Logged[k] = cost > worthLogging*v.perItem
		}
		r.noteParts(x, &view)
	case txn.RedoPlain:
		if nanos := clock.NowNanos() - r.began; !r.opts.Checkpoints.AllViews && !abortsPay(x, nanos) {
			return nil
		}
	}
	bytes, err := x.AppendView(v.spare[:0], &view, r.graph.exec, v.parts)
	v.waiting, v.spare = batchView{x.First, x.Events, bytes}, nil
	return err
}

// redoing says how a batch that ran under the graph is done again.
func (r *runner) redoing() txn.Redo {
	v := &r.durable.view
	if r.durable.scheme == Dependency {
		return txn.RedoLevels
	}
	v.costs = r.graph.exec.MeanCosts(v.costs)
	if !r.opts.Checkpoints.AllViews && slices.Max(v.costs) < chainsNanos {
		return txn.RedoPlain
	}
	return txn.RedoChains
}

// abortsPay reports whether leaving out what aborted saves more than telling it costs: an
// event that aborts takes about half the time of the others.
func abortsPay(x *txn.Batch, nanos int64) bool {
	return float64(nanos)/2*float64(x.Aborts()) > abortsNanos*float64(x.Events)*float64(x.Events)
}

// noteParts makes the parts of a view in parallel, and learns what a value costs.
func (r *runner) noteParts(x *txn.Batch, view *txn.View) {
	v := &r.durable.view
	if v.parts == nil {
		v.parts, v.items = make([][]byte, x.RegionCount()), make([]int, x.RegionCount())
	}
	began := clock.NowNanos()
	r.team.share(len(v.parts), func(_, i int) { v.parts[i], v.items[i] = x.AppendPart(v.parts[i][:0], i, view) })
	items := 0
	for _, n := range v.items {
		items += n
	}
	if items > 0 && view.Redo == txn.RedoChains {
		perItem := float64(clock.NowNanos()-began) * float64(r.opts.Workers) / float64(items)
		if v.perItem == 0 {
			v.perItem = perItem
		}
		v.perItem += 0.2 * (perItem - v.perItem)
	}
}
