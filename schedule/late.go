package schedule

import (
	"github.com/heddle-stream/heddle/tpg"
	"github.com/heddle-stream/heddle/txn"
)

// Keys that are computed while the batch executes.
//
// Before the batch executes such an access is put into the chain of the row that
// it would have if nothing of the batch ran: most of the time that is the right
// one. A transaction finds out when it runs; if it is wrong, the transaction
// stands still until all workers have come to a halt. Then the access is put
// where it belongs, and transactions that ran behind it there without seeing it
// are reset, with those that saw theirs, and so on: the same cone as that of a
// late abort. Nothing else runs twice, and nobody waits who does not meet the row.

// move notes the accesses that have other rows than the graph says. They are dealt
// with when a worker has nothing else to do, many at a time.
func (w *Worker) move() {
	r := w.r
	moved := r.x.Moved(w.id)
	r.late.Lock()
	r.late.moved = append(r.late.moved, moved...)
	r.late.count.Add(int32(len(moved)))
	r.late.Unlock()
}

// repairMoved puts the moved accesses where they belong and makes their
// transactions ready, with those that missed them. Nobody else runs.
func (w *Worker) repairMoved() {
	r := w.r
	r.remaining = r.remaining[:0]
	for _, id := range r.late.moved {
		r.remaining = r.relink(id, r.remaining)
	}
	r.reopen()
	for _, id := range r.late.moved {
		r.affected.Add(r.g.Acc[id].Event)
	}
	r.late.moved = r.late.moved[:0]
	if r.stats.Redone > r.grain.RedoMax {
		w.rest()
		return
	}
	// The newest is taken first: so the earliest event goes in last.
	for it := r.affected.ReverseIterator(); it.HasNext(); {
		w.push(r.g.TxLo[it.Next()])
	}
}

// relink puts an access into the chain of the row that it has, and adds to list
// the transactions that ran behind it without seeing it.
func (r *Run) relink(id uint32, list []uint32) []uint32 {
	r.stats.Moved++
	if r.x.Row(id) != tpg.None {
		if r.g.Acc[id].Next == tpg.None {
			r.x.SetLast(id, r.g.Acc[id].Prev)
		}
		r.g.Remove(id)
	}
	if !r.x.Place(id) {
		return list
	}
	last, _ := r.g.Insert(id, r.x.SetLast(id, id))
	r.x.SetLast(id, last)
	if r.g.Acc[id].Writes() {
		list = r.affectedBy(id, list)
	}
	return list
}

// rest runs what is left one transaction after the other, in order: a run whose
// keys hang on each other would otherwise redo the same ones again and again.
func (w *Worker) rest() {
	r := w.r
	for e := range uint32(r.g.Events) {
		for !r.ended(e) {
			w.next(e)
		}
	}
	for _, other := range r.workers {
		other.ready.units = other.ready.units[:0]
	}
	r.cursor.Store(r.limit.Load())
	w.count()
}

// next runs a transaction before which all others have ended.
func (w *Worker) next(e uint32) {
	r := w.r
	lo, hi := r.g.TxLo[e], r.g.TxHi[e]
	for id := lo; id < hi; id++ {
		r.seesWhole(id, e)
	}
	v, at := r.x.Transaction(w.id, lo, hi)
	if v != txn.Moved {
		w.settle(e, v, at)
		return
	}
	r.affected.Clear()
	r.remaining = r.remaining[:0]
	for _, id := range r.x.Moved(w.id) {
		r.remaining = r.relink(id, r.remaining)
	}
	r.reopen()
}

// reopen makes the transactions that follow from the remaining accesses run again.
func (r *Run) reopen() {
	r.spread(r.remaining)
	r.stats.Redone += int(r.affected.GetCardinality())
	for it := r.affected.Iterator(); it.HasNext(); {
		r.state[it.Next()].Store(pending)
		r.unfinished.Add(1)
	}
}
