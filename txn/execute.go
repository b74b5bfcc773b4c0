package txn

import (
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/segmentio/encoding/json"

	"github.com/heddle-stream/heddle/internal/arena"
	"github.com/heddle-stream/heddle/internal/clock"
)

// Executor runs the operations of a sealed and linked batch. Methods that name
// a worker may run in parallel for different ones.
type Executor struct {
	x       *Batch
	workers []Worker
	mu      struct {
		sync.Mutex
		panics map[uint32]*Panic // by access: what its last call panicked with
	}
}

// NewExecutor returns an executor for the application's batches.
func (b *Bound) NewExecutor() *Executor {
	e := &Executor{workers: make([]Worker, b.Workers)}
	e.mu.panics = map[uint32]*Panic{}
	for i := range e.workers {
		e.workers[i] = Worker{app: b.App, plan: &noPlan, id: i}
	}
	return e
}

// Use makes the batch the one to be executed.
func (e *Executor) Use(x *Batch) {
	e.x = x
	clear(e.mu.panics)
	for i := range e.workers {
		w := &e.workers[i]
		w.acc, w.src, w.txLo, w.txHi, w.fail, w.seen = x.Acc, x.Src, x.TxLo, x.TxHi, x.Fail, x.seen
		w.batch = x
		w.enter(x, 0)
	}
}

// enter makes the worker see the arguments and reads of a region.
func (w *Worker) enter(x *Batch, region int) {
	w.base, w.share, w.refs = x.bases[region], x.shares[region], x.plans[region].refs
	w.regionEnd = w.base + uint32(x.stride)
}

func (e *Executor) at(worker int, id uint32) *Worker {
	w := &e.workers[worker]
	if id < w.base || id >= w.regionEnd {
		w.enter(e.x, int(id)/e.x.stride)
	}
	return w
}

// Transaction runs the operations of an event in declaration order until one
// fails. It returns that one's verdict and place, or OK.
func (e *Executor) Transaction(worker int, lo, hi uint32) (v Verdict, at uint32) {
	if lo == hi {
		return OK, 0
	}
	w := e.at(worker, lo)
	defer e.recovered(w, &v, &at)
	w.moved = w.moved[:0]
	if w.calls++; w.calls%sampleEvery == 0 {
		return w.timed(lo, hi)
	}
	return w.transaction(lo, hi)
}

// timed is transaction with the time of each operation taken.
func (w *Worker) timed(lo, hi uint32) (Verdict, uint32) {
	for id := lo; id < hi; id++ {
		began := clock.NowNanos()
		if v, at := w.transaction(id, id+1); v != OK {
			return v, at
		}
		if a := &w.acc[id]; a.Kind&kindRead == 0 {
			w.took(a.Index(), clock.NowNanos()-began)
		}
	}
	return OK, 0
}

func (w *Worker) took(kind int, nanos int64) {
	for len(w.costs) <= kind {
		w.costs = append(w.costs, cost{})
	}
	w.costs[kind].nanos += nanos
	w.costs[kind].calls++
}

// transaction runs the operations [lo, hi) until one fails.
func (w *Worker) transaction(lo, hi uint32) (v Verdict, at uint32) {
	kinds := w.app.kinds
	for id := lo; id < hi; id++ {
		a := &w.acc[id]
		if a.Kind&kindRead != 0 {
			if a.Kind&kindLate != 0 {
				w.current = id
				if !kinds[a.Kind&kindIndex].late.(readLate).runRead(w, id) {
					w.moved = append(w.moved, id)
				}
			}
			continue
		}
		if len(w.moved) > 0 {
			return Moved, id
		}
		w.current = id
		if v := kinds[a.Kind&kindIndex].op.run(w, id); v != OK {
			if v == Moved {
				w.moved = append(w.moved, id)
			}
			return v, id
		}
	}
	return OK, 0
}

// Moved returns the accesses that the worker's last transaction found under other
// keys than the graph has them, after it said [Moved]. All reads of an operation
// are looked at before it is given up, though the key of one that is computed from
// another such is not known then.
func (e *Executor) Moved(worker int) []uint32 { return e.workers[worker].moved }

// Operation runs one operation.
func (e *Executor) Operation(worker int, id uint32) (v Verdict) {
	w := e.at(worker, id)
	w.moved = w.moved[:0]
	var at uint32
	defer e.recovered(w, &v, &at)
	if w.calls++; w.calls%sampleEvery == 0 {
		v, _ = w.timed(id, id+1)
		return v
	}
	v, _ = w.transaction(id, id+1)
	return v
}

// OperationCost is what the sampled calls of an operation took on average, the
// engine's own part included.
type OperationCost struct {
	Name  string
	Nanos float64
	Calls int64 // sampled
}

// Costs returns the cost of each operation that was sampled since the last call.
func (e *Executor) Costs() []OperationCost {
	var out []OperationCost
	for i, k := range e.workers[0].app.kinds {
		var sum cost
		for j := range e.workers {
			if costs := e.workers[j].costs; i < len(costs) {
				sum.nanos += costs[i].nanos
				sum.calls += costs[i].calls
				costs[i] = cost{}
			}
		}
		if sum.calls > 0 {
			out = append(out, OperationCost{k.name, float64(sum.nanos) / float64(sum.calls), sum.calls})
		}
	}
	return out
}

// MeanCosts returns what the sampled calls of each operation took on average since
// Costs was called, in ns, by the number of the operation; what was not sampled
// stays as it is in dst.
func (e *Executor) MeanCosts(dst []float64) []float64 {
	for len(dst) < len(e.workers[0].app.kinds) {
		dst = append(dst, 0)
	}
	for k := range dst {
		var sum cost
		for j := range e.workers {
			if costs := e.workers[j].costs; k < len(costs) {
				sum.nanos += costs[k].nanos
				sum.calls += costs[k].calls
			}
		}
		if sum.calls > 0 {
			dst[k] = float64(sum.nanos) / float64(sum.calls)
		}
	}
	return dst
}

// recovered turns a panic of a user function into a verdict: whether it counts
// is known only when the batch is settled.
func (e *Executor) recovered(w *Worker, v *Verdict, at *uint32) {
	r := recover()
	if r == nil {
		return
	}
	if len(w.moved) > 0 { // a function saw what stands under another key than its own
		*v, *at = Moved, w.current
		return
	}
	*v, *at = Panicked, w.current
	a := &w.acc[w.current]
	p := newPanic(int(a.Event), "operation", w.app.kinds[a.Index()].name, r)
	e.mu.Lock()
	e.mu.panics[w.current] = p
	e.mu.Unlock()
}

func newPanic(event int, what, name string, value any) *Panic {
	return &Panic{Event: event, What: what, Name: name, Value: value, Stack: debug.Stack()}
}

// FirstPanic returns the panic of the earliest transaction whose outcome is a
// panic, or nil. The batch is executed.
func (e *Executor) FirstPanic() *Panic {
	if len(e.mu.panics) == 0 {
		return nil
	}
	for ev := range e.x.Events {
		if f := e.x.Fail[ev]; f != committed && Verdict(f) == Panicked {
			return e.mu.panics[uint32(f>>16)]
		}
	}
	return nil
}

// Emit computes the results of a region's events, those before limit. A panic
// of a result function is returned.
func (e *Executor) Emit(worker, region, limit int) (p *Panic) {
	x := e.x
	w := &e.workers[worker]
	w.enter(x, region)
	lo, hi := x.regionEvents(region)
	ev := lo
	defer func() {
		if r := recover(); r != nil {
			p = newPanic(ev, "result", x.EventName(ev), r)
		}
	}()
	for ; ev < min(hi, limit); ev++ {
		r := x.feed.refs[ev]
		w.app.events[r.typ].emit(w, x.feed.id, r.place, uint32(ev))
		if x.Seen != nil {
			x.Seen[ev] = w.seenHash(uint32(ev))
		}
	}
	return nil
}

// seenHash folds the fingerprints of the operations that a serial run would
// have called.
func (w *Worker) seenHash(ev uint32) uint64 {
	h, last := uint64(0), w.txHi[ev]
	if f := w.fail[ev]; f != committed {
		last = uint32(f>>16) + 1
	}
	for id := w.txLo[ev]; id < last; id++ {
		if w.acc[id].Kind&kindRead == 0 {
			h = chainHash(h, w.seen[id])
		}
	}
	return h
}

// BeginResults makes room for the results of the batch.
func (x *Batch) BeginResults() {
	for _, ev := range x.bound.App.events {
		ev.begin(x.Events)
	}
}

// Deliver hands the results of the events before limit to the sinks, in order.
func (x *Batch) Deliver(limit int) {
	events := x.bound.App.events
	x.heard = arena.Resize(x.heard, len(events))
	for typ, ev := range events {
		x.heard[typ] = 0
		if ev.hasSinks() {
			x.heard[typ] = 1
		}
	}
	// First who has a sink, then the calls: types follow each other at random, and
	// a jump that is guessed wrong costs more than a look at the type.
	x.due = arena.Resize(x.due, limit+1)
	n := 0
	for ev, r := range x.feed.refs[:limit] {
		x.due[n] = uint32(ev)
		n += x.heard[r.typ]
	}
	for _, ev := range x.due[:n] {
		events[x.feed.refs[ev].typ].deliver(ev)
	}
}

// HasSinks reports whether somebody waits for results.
func (a *App) HasSinks() bool {
	for _, ev := range a.events {
		if ev.hasSinks() {
			return true
		}
	}
	return false
}

// Result returns the byte form of the result of event ev, empty when its type
// has none. It is valid until the next call with the executor's worker.
func (x *Batch) Result(e *Executor, worker, ev int) []byte {
	return x.bound.App.events[x.feed.refs[ev].typ].hashResult(&e.workers[worker], uint32(ev))
}

// AppendResult adds the result of event ev to dst as a line of JSON, with the
// event's number in the run and its type; nothing when its type has no results.
func (x *Batch) AppendResult(dst []byte, ev int) ([]byte, error) {
	r := x.feed.refs[ev]
	typ := x.bound.App.events[r.typ]
	if !typ.wantsResults() {
		return dst, nil
	}
	dst = strconv.AppendInt(append(dst, `{"event":`...), int64(x.First+ev), 10)
	dst = json.AppendEscape(append(dst, `,"type":`...), typ.Name(), 0)
	dst = append(dst, `,"result":`...)
	if x.texts != nil && x.texts[ev] != nil {
		return append(append(dst, x.texts[ev]...), "}\n"...), nil
	}
	dst, err := typ.appendResult(dst, uint32(ev))
	if err != nil {
		return dst, fmt.Errorf("result of event %d (%s): %w", x.First+ev, typ.Name(), err)
	}
	return append(dst, "}\n"...), nil
}

// Committed reports whether the transaction of event ev took effect.
func (x *Batch) Committed(ev int) bool { return x.Fail[ev] == committed }

// Verdict returns OK, or why the transaction of event ev aborted.
func (x *Batch) Verdict(ev int) Verdict {
	if f := x.Fail[ev]; f != committed {
		return Verdict(f)
	}
	return OK
}
