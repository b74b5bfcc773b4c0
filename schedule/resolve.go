package schedule

import (
	"runtime"
	"sync/atomic"

	"github.com/heddle-stream/heddle/tpg"
)

// seesWhole finds what an access of transaction e sees, for a transaction that
// runs in one go: its own earlier operations count as done. If that is not to be
// had yet, it returns an operation to wait for.
func (r *Run) seesWhole(id, e uint32) (on uint32, ok bool) {
	a := &r.g.Acc[id]
	if a.IsRange() {
		for m := a.Slot; m < a.Slot+a.Refs; m++ {
			if on, ok := r.seesOne(m, e, true); !ok {
				return on, false
			}
		}
		return 0, true
	}
	if a.Prev == tpg.None {
		r.src[id] = tpg.None
		return 0, true
	}
	if a.Commutes() && !r.s.locked {
		return 0, true
	}
	return r.seesOne(id, e, true)
}

// sees finds what an operation and its reads see, for an operation that runs on
// its own.
func (w *Worker) sees(id uint32) (on uint32, ok bool) {
	r := w.r
	e := r.g.Acc[id].Event
	if r.failure(e) < uint64(id)<<16 {
		return 0, true // it will not be run
	}
	if !r.g.Acc[id].Commutes() || r.s.locked {
		if on, ok := r.seesOne(id, e, false); !ok {
			return on, false
		}
	}
	for {
		on, result := w.seesReads(id, e)
		switch result {
		case seen:
			return 0, true
		case unready:
			return on, false
		}
		runtime.Gosched() // another worker decides a shared read: a few loads
	}
}

// sight is what came of looking for what a read sees.
type sight uint8

const (
	seen    sight = iota
	unready       // it waits for an operation
	busy          // another worker is about to decide it
)

// seesReads finds what all reads of an operation see. If one of them is not to
// be had, it lets go of those that it holds: two operations may hold what the
// other one needs.
func (w *Worker) seesReads(id, e uint32) (on uint32, result sight) {
	local, base := w.r.g.Reads(id)
	for i, l := range local {
		if on, result := w.seesRead(base+l, e); result != seen {
			w.settleShared(local[:i], base, opPending)
			return on, result
		}
	}
	w.settleShared(local, base, opDone)
	return 0, seen
}

func (w *Worker) seesRead(id, e uint32) (on uint32, result sight) {
	r := w.r
	a := &r.g.Acc[id]
	if a.AtStart() {
		return w.seesShared(id, e)
	}
	first, last := id, id+1
	if a.IsRange() {
		first, last = a.Slot, a.Slot+a.Refs
	}
	for m := first; m < last; m++ {
		if on, ok := r.seesOne(m, e, false); !ok {
			return on, unready
		}
	}
	return 0, seen
}

// seesShared finds what a read at the start of the transaction sees. Several
// operations may look at it, on several workers, and must see the same: the first
// one that runs decides, for as long as its transaction is not reset. Until it
// runs or has to wait it holds the read.
func (w *Worker) seesShared(id, e uint32) (on uint32, result sight) {
	state := &w.r.opState[id]
	switch s := state.Load(); {
	case s == opDone || s == w.holding():
		return 0, seen
	case s != opPending || !state.CompareAndSwap(opPending, w.holding()):
		return 0, busy
	}
	if on, ok := w.r.seesOne(id, e, false); !ok {
		state.Store(opPending)
		return on, unready
	}
	return 0, seen
}

// holding is the state of a shared read that this worker is about to decide.
func (w *Worker) holding() uint32 { return opHeld + uint32(w.id) }

// settleShared gives the shared reads that the worker holds their next state.
func (w *Worker) settleShared(local []uint32, base, next uint32) {
	for _, l := range local {
		if w.r.g.Acc[base+l].AtStart() {
			w.r.opState[base+l].CompareAndSwap(w.holding(), next)
		}
	}
}

// seesOne finds the version that an access sees: the nearest earlier writer
// whose transaction has not aborted. Where that is a commutative operation, the
// access sees it and what stands before it; such operations are linked by src,
// which every access that looks at them sets alike once their fate is known.
func (r *Run) seesOne(id, e uint32, whole bool) (on uint32, ok bool) {
	if r.s.locked {
		if on, ok := r.holdsLock(id, e); !ok {
			return on, false
		}
	}
	for at := id; ; {
		p, ready := r.nearest(id, r.g.Acc[at].Pred, e, whole)
		if !ready {
			return p, false
		}
		if at == id {
			r.src[id] = p
		} else {
			atomic.StoreUint32(&r.src[at], p)
		}
		if p == tpg.None || !r.g.Acc[p].Commutes() {
			return 0, true
		}
		at = p
	}
}

// nearest returns the first writer from p on backwards that counts for an access
// of transaction e, or one to wait for and false.
func (r *Run) nearest(id, p, e uint32, whole bool) (uint32, bool) {
	acc := r.g.Acc
	for p != tpg.None {
		q := &acc[p]
		if q.Event == e {
			if acc[id].AtStart() {
				p = q.Pred
				continue
			}
			return p, whole || r.opState[p].Load() >= opDone
		}
		state := r.state[q.Event].Load()
		if state == done {
			break
		}
		if state == void {
			p = q.Pred
			continue
		}
		if r.whole {
			return p, false
		}
		// The state of the operation first: one that ran after another had failed
		// must not count.
		ran := r.opState[p].Load() == opDone
		if r.failure(q.Event) != committed {
			p = q.Pred
			continue
		}
		return p, ran // speculate: the version is there, its transaction undecided
	}
	return p, true
}

// holdsLock reports whether all earlier accesses of the row, reads included,
// have ended; else it returns the nearest one.
func (r *Run) holdsLock(id, e uint32) (on uint32, ok bool) {
	p := r.g.Acc[id].Prev
	for p != tpg.None && r.g.Acc[p].Event == e {
		p = r.g.Acc[p].Prev
	}
	if p == tpg.None {
		return 0, true
	}
	state := r.state[r.g.Acc[p].Event].Load()
	return p, state == done || state == void
}
