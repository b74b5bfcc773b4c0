package txn

import "iter"

// committed is the outcome of a transaction that no operation aborted.
const committed = ^uint64(0)

// Outcome is how an event's transaction ended. Operations tell with Before,
// After and All what it saw and left. It is valid until the result function
// returns.
type Outcome struct {
	w     *Worker
	event uint32
}

// Committed reports whether the transaction took effect.
func (o Outcome) Committed() bool { return o.Verdict() == OK }

// Verdict returns OK, or the verdict of the first operation in declaration
// order that aborted the transaction.
func (o Outcome) Verdict() Verdict {
	if o.w.boxed != nil {
		return o.w.boxed.Verdict
	}
	if f := o.w.fail[o.event]; f != committed {
		return Verdict(f)
	}
	return OK
}

// Reason returns the text of the verdict, "" for a committed transaction.
func (o Outcome) Reason() string { return o.w.app.ReasonText(o.Verdict()) }

// accesses yields the transaction's accesses of one kind, in declaration order.
func (o Outcome) accesses(kind uint16) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		w := o.w
		if w.boxed != nil {
			for i := range w.boxed.Steps {
				if w.boxed.Steps[i].kind == kind && !yield(uint32(i)) {
					return
				}
			}
			return
		}
		if w.inPlace {
			for i, ran := range w.steps() {
				if ran == kind && !yield(uint32(i)) {
					return
				}
			}
			return
		}
		for id := w.txLo[o.event]; id < w.txHi[o.event]; id++ {
			if w.acc[id].Kind == kind && !yield(id) {
				return
			}
		}
	}
}

// ran reports whether a serial run would have called the operation.
func (o Outcome) ran(id uint32) bool {
	if o.w.boxed != nil {
		return int(id) < o.w.boxed.Ran
	}
	if o.w.inPlace {
		return true // the others are no steps
	}
	f := o.w.fail[o.event]
	return f == committed || id <= uint32(f>>16)
}
