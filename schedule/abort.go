package schedule

import (
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/tpg"
)

// wasVisible reports whether somebody may have seen a version of a split
// transaction before its fate was known.
func (r *Run) wasVisible(e uint32) bool {
	for id := r.g.TxLo[e]; id < r.g.TxHi[e]; id++ {
		if r.g.Acc[id].Writes() && r.g.Acc[id].Next != tpg.None && r.opState[id].Load() == opDone {
			return true
		}
	}
	return false
}

// abortLate notes that a transaction aborts whose versions were visible.
func (w *Worker) abortLate(e uint32) {
	r := w.r
	r.late.Lock()
	r.late.events = append(r.late.events, e)
	r.late.count.Add(1)
	r.late.Unlock()
	if !r.s.lazy {
		r.requestStop()
	}
}

// requestStop makes every worker halt before its next unit.
func (r *Run) requestStop() {
	r.late.Lock()
	if r.stop.Load() == 0 && r.late.count.Load() > 0 {
		r.stops++
		r.stop.Store(r.stops)
	}
	r.late.Unlock()
	r.idle.wake()
}

// halt waits, step by step, for all workers to come to the stop; the last one
// resets what the aborts touched and lets all go on.
func (w *Worker) halt(stop uint32) Status {
	r := w.r
	if w.atStop == stop {
		return Idle
	}
	w.atStop = stop
	if int(r.arrived.Add(1)) < len(r.workers) {
		return Idle
	}
	began := clock.NowNanos()
	w.repair()
	r.stats.RepairNs += clock.NowNanos() - began
	r.arrived.Store(0)
	r.stop.Store(0)
	r.idle.wake()
	return Ran
}

// repair resets every transaction that ran on what the late aborts made, and
// those that ran on what these made, and so on. Nobody else runs.
func (w *Worker) repair() {
	r := w.r
	r.stats.Repairs++
	r.affected.Clear()
	r.late.count.Store(0)
	if r.whole {
		w.repairMoved()
		return
	}
	r.spread(r.late.events)
	r.late.events = r.late.events[:0]
	r.stats.Redone += int(r.affected.GetCardinality())
	if r.s.lazy || r.stats.Redone > r.grain.RedoMax {
		r.runWhole()
		return
	}
	it := r.affected.Iterator()
	for it.HasNext() {
		w.resetEvent(it.Next())
	}
}

// spread adds to the affected transactions all that may have seen a version of
// those in the list, and so on. It uses the list up.
func (r *Run) spread(list []uint32) {
	for len(list) > 0 {
		e := list[len(list)-1]
		list = list[:len(list)-1]
		for id := r.g.TxLo[e]; id < r.g.TxHi[e]; id++ {
			if r.g.Acc[id].Writes() {
				list = r.affectedBy(id, list)
			}
		}
	}
}

// affectedBy adds to list the transactions that may have seen the version of a
// writer and were not found before: those up to the next writer, whose own
// versions lead to the ones behind. A commutative operation sees nothing and
// hides nothing.
func (r *Run) affectedBy(id uint32, list []uint32) []uint32 {
	acc := r.g.Acc
	own := acc[id].Event
	for n := acc[id].Next; n != tpg.None; n = acc[n].Next {
		a := &acc[n]
		if a.Commutes() && !r.s.locked {
			continue
		}
		if a.Event == own {
			if a.Writes() {
				break // its successors are looked at by itself
			}
			continue
		}
		if r.hasRun(a.Event) && r.affected.CheckedAdd(a.Event) {
			list = append(list, a.Event)
		}
		if a.Writes() {
			break
		}
	}
	return list
}

// hasRun reports whether any operation of a transaction has run.
func (r *Run) hasRun(e uint32) bool {
	if r.ended(e) || r.whole {
		return r.ended(e)
	}
	for id := r.g.TxLo[e]; id < r.g.TxHi[e]; id++ {
		if r.opState[id].Load() >= opDone {
			return true
		}
	}
	return false
}

// resetEvent makes the operations of a transaction that have run ready again.
// Those that have not are waiting or still to be handed out.
func (w *Worker) resetEvent(e uint32) {
	r := w.r
	complete := r.ended(e)
	if complete {
		r.state[e].Store(pending)
		r.unfinished.Add(1)
	}
	n := int32(0)
	for id := r.g.TxLo[e]; id < r.g.TxHi[e]; id++ {
		if r.g.Acc[id].IsRead() {
			r.opState[id].Store(opPending)
			continue
		}
		n++
		if ran := r.opState[id].Load() >= opDone; ran || complete {
			if ran {
				r.executed.Add(-1)
			}
			r.opState[id].Store(opQueued)
			w.push(id)
		}
	}
	r.left[e].Store(n)
	r.failed[e].Store(^committed)
}

// runWhole runs the affected transactions and those that have not ended, each in
// one go and only on final versions: after that nothing is left to redo. What
// has ended on a version of one that has not is affected, too: nobody will look
// whether that one aborts.
func (r *Run) runWhole() {
	r.remaining = r.remaining[:0]
	for e := range uint32(r.g.Events) {
		if !r.ended(e) && r.hasRun(e) {
			r.remaining = append(r.remaining, e)
		}
	}
	r.spread(r.remaining)
	r.whole = true
	for _, w := range r.workers {
		w.ready.units = w.ready.units[:0]
	}
	r.remaining = r.remaining[:0]
	for e := range uint32(r.g.Events) {
		if r.ended(e) {
			if !r.affected.Contains(e) {
				continue
			}
			r.unfinished.Add(1)
		}
		r.state[e].Store(pending)
		r.remaining = append(r.remaining, e)
	}
	r.units = r.remaining
	r.cursor.Store(0)
	r.limit.Store(int64(len(r.units)))
}

// ended reports whether a transaction has an outcome, final or not.
func (r *Run) ended(e uint32) bool {
	state := r.state[e].Load()
	return state == done || state == void
}
