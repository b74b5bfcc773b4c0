package schedule

import "github.com/heddle-stream/heddle/tpg"

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
	return r.seesOne(id, e, true)
}

// sees finds what an operation and its reads see, for an operation that runs on
// its own.
func (r *Run) sees(id uint32) (on uint32, ok bool) {
	e := r.g.Acc[id].Event
	if r.failure(e) < uint64(id)<<16 {
		return 0, true // it will not be run
	}
	if on, ok := r.seesOne(id, e, false); !ok {
		return on, false
	}
	local, base := r.g.Reads(id)
	for _, l := range local {
		a := &r.g.Acc[base+l]
		if !a.IsRange() {
			if on, ok := r.seesOne(base+l, e, false); !ok {
				return on, false
			}
			continue
		}
		for m := a.Slot; m < a.Slot+a.Refs; m++ {
			if on, ok := r.seesOne(m, e, false); !ok {
				return on, false
			}
		}
	}
	return 0, true
}

// seesOne finds the version that an access sees: the nearest earlier writer
// whose transaction has not aborted.
func (r *Run) seesOne(id, e uint32, whole bool) (on uint32, ok bool) {
	acc := r.g.Acc
	a := &acc[id]
	if r.s.locked {
		if on, ok := r.holdsLock(id, e); !ok {
			return on, false
		}
	}
	p := a.Pred
	for p != tpg.None {
		q := &acc[p]
		if q.Event == e {
			if a.AtStart() {
				p = q.Pred
				continue
			}
			if !whole && r.opState[p].Load() < opDone {
				return p, false
			}
			break
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
		if !ran {
			return p, false
		}
		break // speculate: the version is there, its transaction undecided
	}
	r.src[id] = p
	return 0, true
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
