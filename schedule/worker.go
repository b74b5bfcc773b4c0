package schedule

import (
	"sync"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/tpg"
	"github.com/heddle-stream/heddle/txn"
)

// Status is what a step came to.
type Status uint8

// The outcomes of a step.
const (
	Ran      Status = iota // something was done
	Idle                   // there is nothing to do for now
	Finished               // the run is over
)

const (
	noUnit = ^uint32(0)
	// holdSteps is how often a held unit is looked at before it is put aside:
	// long enough for a neighbour to finish an operation, short enough not to burn
	// a core on a long one.
	holdSteps = 32
	// sampleEvery is how many calls of the executor share one timing.
	sampleEvery = 128
)

// Worker executes units of a run, one step at a time. One goroutine at a time.
type Worker struct {
	r  *Run
	id int

	// Units that this worker made ready. The owner takes the newest, whose data
	// is still in its cache; thieves take the oldest half.
	ready struct {
		sync.Mutex
		units []uint32
	}
	loot      []uint32 // what was stolen last
	held      uint32   // a unit that is waited for
	heldSteps int
	atStop    uint32 // the stop that this worker has come to

	completed int64 // events and operations not yet counted in the run
	ran       int64

	steals, waits, waitNs int64
	calls, sampledNs      int64
	samples               int64
	_                     [64]byte
}

func (w *Worker) start() {
	w.ready.units = w.ready.units[:0]
	w.held, w.heldSteps, w.atStop = noUnit, 0, 0
	w.completed, w.ran = 0, 0
	w.steals, w.waits, w.waitNs = 0, 0, 0
	w.calls, w.sampledNs, w.samples = 0, 0, 0
}

// Step runs a few units at most, and never waits.
func (w *Worker) Step() Status {
	r := w.r
	if stop := r.stop.Load(); stop != 0 {
		return w.halt(stop)
	}
	worked := w.work()
	w.count()
	if worked {
		return Ran
	}
	switch {
	case r.Finished():
		r.idle.wake()
		return Finished
	case r.late.count.Load() > 0 && (r.whole || r.unfinished.Load() == 0):
		r.requestStop()
		return Ran
	case r.nextStratum():
		return Ran
	}
	return Idle
}

// count makes the step's progress known.
func (w *Worker) count() {
	if w.ran > 0 {
		w.r.executed.Add(w.ran)
		w.ran = 0
	}
	if w.completed > 0 {
		if w.r.unfinished.Add(-w.completed) == 0 {
			w.r.idle.wake()
		}
		w.completed = 0
	}
}

// work runs what comes next and reports whether there was anything.
func (w *Worker) work() bool {
	if u, ok := w.pop(); ok {
		w.unit(u)
		return true
	}
	if w.held != noUnit && w.r.whole {
		w.held = noUnit // an operation, from before the run gave up speculating
	}
	if w.held != noUnit {
		u := w.held
		if w.heldSteps++; w.heldSteps > holdSteps {
			w.held = noUnit
			w.heldSteps = 0
			w.operations(u, false)
			return true
		}
		w.held = noUnit
		before := w.ran
		w.operations(u, true)
		return w.held == noUnit || w.ran != before
	}
	if w.takeUnits() {
		return true
	}
	if u, ok := w.steal(); ok {
		w.unit(u)
		return true
	}
	return false
}

// takeUnits claims the next units in order and runs them.
func (w *Worker) takeUnits() bool {
	r := w.r
	n := int64(r.grain.Events)
	if r.s.hold || r.bins != nil {
		n = 1 // what is taken behind a held unit would wait with it
	}
	var from, to int64
	for {
		from = r.cursor.Load()
		limit := r.limit.Load()
		if from >= limit {
			return false
		}
		to = min(from+n, limit)
		if r.cursor.CompareAndSwap(from, to) {
			break
		}
	}
	if r.bins != nil {
		for _, e := range r.units[r.bins[from]:r.bins[to]] {
			w.transaction(e)
		}
		return true
	}
	if r.units == nil || r.whole {
		for i := from; i < to; i++ {
			e := uint32(i)
			if r.units != nil {
				e = r.units[i]
			}
			w.transaction(e)
		}
		return true
	}
	for _, u := range r.units[from:to] {
		r.opState[u].Store(opQueued)
		w.operations(u, r.s.hold)
	}
	return true
}

// unit runs what waited before: a transaction or an operation.
func (w *Worker) unit(u uint32) {
	if w.r.whole {
		w.transaction(w.r.g.Acc[u].Event)
		return
	}
	w.operations(u, false)
}

// transaction runs all operations of an event in one go when what they see is
// there, and else waits; or it splits it.
func (w *Worker) transaction(e uint32) {
	r := w.r
	lo, hi := r.g.TxLo[e], r.g.TxHi[e]
	if !r.whole {
		w.split(e)
		return
	}
	for id := lo; id < hi; id++ {
		if on, ok := r.seesWhole(id, e); !ok {
			w.wait(lo, on)
			return
		}
	}
	began := w.sample()
	v, at := r.x.Transaction(w.id, lo, hi)
	w.sampled(began)
	if v == txn.Moved {
		w.move()
		return
	}
	w.settle(e, v, at)
}

// settle publishes the outcome of a transaction that ran in one go.
func (w *Worker) settle(e uint32, v txn.Verdict, at uint32) {
	r := w.r
	outcome := uint32(done)
	r.fail[e] = committed
	if v != txn.OK {
		r.fail[e] = uint64(at)<<16 | uint64(v)
		outcome = void
	}
	w.completed++
	w.publish(e, outcome)
}

// split runs the operations of an event one by one, so that those which are
// ready need not wait for the others.
func (w *Worker) split(e uint32) {
	r := w.r
	if r.splitEvent(e) == 0 {
		r.fail[e] = committed
		w.completed++
		w.publish(e, done)
		return
	}
	for id := r.g.TxLo[e]; id < r.g.TxHi[e]; id++ {
		if !r.g.Acc[id].IsRead() {
			r.opState[id].Store(opQueued)
			w.operations(id, false)
		}
	}
}

// operations runs an operation and, when units are chains, those behind it as
// far as they are ready and the step allows.
func (w *Worker) operations(id uint32, hold bool) {
	r := w.r
	for n := 1; ; n++ {
		if on, ok := w.sees(id); !ok {
			if hold {
				w.held = id
				return
			}
			w.wait(id, on)
			return
		}
		w.heldSteps = 0
		w.operation(id)
		if r.s.unit != byChain {
			return
		}
		next := r.g.NextOperation(id)
		if next == tpg.None || r.levels != nil && r.levels[next] != r.levels[id] {
			return
		}
		if !r.opState[next].CompareAndSwap(opPending, opQueued) {
			return // it was reset, and somebody has it
		}
		id = next
		if n >= r.grain.Operations {
			w.push(id)
			return
		}
	}
}

// operation runs one operation of a split transaction and publishes it.
func (w *Worker) operation(id uint32) {
	r := w.r
	e := r.g.Acc[id].Event
	w.ran++
	result := uint32(opDone)
	if r.failure(e) < uint64(id)<<16 {
		result = opFailed // an operation before it has failed already
	} else {
		began := w.sample()
		v := r.x.Operation(w.id, id)
		w.sampled(began)
		if v != txn.OK {
			result = opFailed
			if first := r.failAt(e, uint64(id)<<16|uint64(v)); first && r.wasVisible(e) {
				w.abortLate(e)
			}
		}
	}
	r.opState[id].Store(result)
	if r.left[e].Add(-1) == 0 {
		w.complete(e)
		return
	}
	w.rouse(e)
}

// failAt notes a failure unless an earlier operation has failed, and reports
// whether it is the first one noted. From then on the transaction counts as void.
func (r *Run) failAt(e uint32, f uint64) (first bool) {
	for {
		was := r.failure(e)
		if was <= f {
			return false
		}
		if r.failed[e].CompareAndSwap(^was, ^f) {
			return was == committed
		}
	}
}

// complete settles a split transaction whose last operation has run.
func (w *Worker) complete(e uint32) {
	r := w.r
	f := r.failure(e)
	r.fail[e] = f
	if f == committed {
		w.completed++
		w.publish(e, done)
		return
	}
	w.completed++
	w.publish(e, void)
}

// publish sets the outcome of a transaction and takes up what waited for it.
func (w *Worker) publish(e, outcome uint32) {
	if list := w.r.state[e].Swap(outcome); list != pending {
		w.takeUp(list)
	}
}

// rouse takes up what waits for a transaction of which one more operation ran.
func (w *Worker) rouse(e uint32) {
	state := &w.r.state[e]
	for {
		list := state.Load()
		if list < firstWaiter {
			return
		}
		if state.CompareAndSwap(list, pending) {
			w.takeUp(list)
			return
		}
	}
}

// takeUp makes the units of a waiting list ready.
func (w *Worker) takeUp(list uint32) {
	w.ready.Lock()
	n := len(w.ready.units)
	for u := list - firstWaiter; u != noUnit; {
		next := w.r.waitNext[u]
		w.ready.units = append(w.ready.units, u)
		u = next
	}
	more := len(w.ready.units)-n > 1
	w.ready.Unlock()
	if more {
		w.r.idle.wake()
	}
}

// wait puts a unit on the waiting list of the transaction that the operation on
// belongs to. If that is done meanwhile, the unit is ready at once.
func (w *Worker) wait(unit, on uint32) {
	r := w.r
	e := r.g.Acc[on].Event
	state := &r.state[e]
	for {
		was := state.Load()
		if was == done || was == void {
			w.push(unit)
			return
		}
		r.waitNext[unit] = noUnit
		if was >= firstWaiter {
			r.waitNext[unit] = was - firstWaiter
		}
		if state.CompareAndSwap(was, unit+firstWaiter) {
			break
		}
	}
	w.waits++
	// The operation may have run between our look and the list: then nobody
	// might come by again before this unit has run.
	if !r.whole && r.opState[on].Load() >= opDone {
		w.rouse(e)
	}
}

func (w *Worker) push(u uint32) {
	w.ready.Lock()
	w.ready.units = append(w.ready.units, u)
	w.ready.Unlock()
}

func (w *Worker) pop() (uint32, bool) {
	w.ready.Lock()
	defer w.ready.Unlock()
	n := len(w.ready.units)
	if n == 0 {
		return 0, false
	}
	u := w.ready.units[n-1]
	w.ready.units = w.ready.units[:n-1]
	return u, true
}

// steal takes the older half of another worker's ready units.
func (w *Worker) steal() (uint32, bool) {
	r := w.r
	for i := 1; i < len(r.workers); i++ {
		v := r.workers[(w.id+i)%len(r.workers)]
		v.ready.Lock()
		n := (len(v.ready.units) + 1) / 2
		if n == 0 {
			v.ready.Unlock()
			continue
		}
		w.loot = append(w.loot[:0], v.ready.units[:n]...)
		v.ready.units = append(v.ready.units[:0], v.ready.units[n:]...)
		v.ready.Unlock()
		w.steals += int64(n)
		w.ready.Lock()
		w.ready.units = append(w.ready.units, w.loot[1:]...)
		w.ready.Unlock()
		return w.loot[0], true
	}
	return 0, false
}

// nextStratum opens the next stratum when all operations up to here have run.
func (r *Run) nextStratum() bool {
	if r.s.explore != bfs || r.whole || r.s.unit == byTransaction {
		return false
	}
	s := r.stratum.Load()
	if int(s)+1 >= r.strata.Count() || r.executed.Load() < int64(r.strata.Through[s]) || r.cursor.Load() < r.limit.Load() {
		return false
	}
	if r.stratum.CompareAndSwap(s, s+1) {
		r.limit.Store(int64(r.strata.Start[s+2]))
		r.idle.wake()
	}
	return true
}

// sample starts a timing now and then.
func (w *Worker) sample() int64 {
	if w.calls++; w.calls%sampleEvery != 0 {
		return 0
	}
	return clock.NowNanos()
}

func (w *Worker) sampled(began int64) {
	if began != 0 {
		w.sampledNs += clock.NowNanos() - began
		w.samples++
	}
}

func (w *Worker) usefulNs() int64 {
	if w.samples == 0 {
		return 0
	}
	return w.sampledNs * w.calls / w.samples
}
