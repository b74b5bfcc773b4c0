package txn

import (
	"sync/atomic"

	"github.com/heddle-stream/heddle/internal/arena"
	"github.com/heddle-stream/heddle/storage/keyed"
)

// MergeOp is a commutative operation: it computes a delta without a look at the
// value of its key, and merges it into that. Several of them on one key have no
// order among themselves, so that a counter that everybody changes orders
// nothing. Any other operation on the key, and any read of it, comes after the
// deltas before it.
type MergeOp[K comparable, V, A, D any] struct {
	app   *App
	table *Table[K, V]
	name  string
	kind  uint16
	delta func(Ctx, A) (D, Verdict)
	merge func(*V, D)

	args   []arena.Slab[A]      // by plan worker
	deltas []arena.Slab[D]      // by plan worker, beside the arguments
	calls  []mergeCall[V, A, D] // of the transaction of a serial run
	ptrs   bool                 // in arguments, deltas or values
}

// mergeCall is a commutative operation of a serial run.
type mergeCall[V, A, D any] struct {
	delta  D
	before V
	row    uint32
	had    bool
}

// folder applies a delta of a commutative operation to a value.
type folder[V any] interface {
	fold(share int, at uint32, v *V)
}

// Merge declares a commutative operation. delta computes what is to be added; it
// may look at the reads that the plan passed and abort the transaction, and runs
// in parallel. merge adds it to the value, the zero value for an absent key;
// merging must be associative, commutative and exact (sums of integers, sets,
// maxima), and cheap: it runs one after the other for each key. The engine keeps
// to event order even so. A delta is merged several times, into different copies of
// the value: merge must neither change it nor keep its memory.
func Merge[K comparable, V, A, D any](t *Table[K, V], name string, delta func(c Ctx, arg A) (D, Verdict), merge func(value *V, delta D)) *MergeOp[K, V, A, D] {
	where := caller()
	o := &MergeOp[K, V, A, D]{app: t.app, table: t, name: name, delta: delta, merge: merge}
	t.app.declare("operation", name, where)
	if delta == nil || merge == nil {
		t.app.fault(where, "operation %q has a nil function", name)
	}
	o.ptrs = arena.HasPointers[A]() || arena.HasPointers[D]() || arena.HasPointers[V]()
	number := t.app.addKind(&kind{name: name, table: t, op: o}, where)
	o.kind = number | kindDelta
	if t.hist != nil {
		t.app.fault(where, "table %q has windows, and so no commutative operations such as %q", t.name, name)
	}
	if t.folders == nil {
		t.folders = map[int]folder[V]{}
	}
	t.folders[int(number)] = o
	return o
}

// Name returns the declared name.
func (o *MergeOp[K, V, A, D]) Name() string { return o.name }

// At lists the operation in a plan, see [Op.At].
func (o *MergeOp[K, V, A, D]) At(p *Plan, key K, arg A, reads ...Arg) {
	if p.app != o.app {
		panic("operation " + o.name + " belongs to another application than the event")
	}
	if p.running != nil {
		o.now(p, key, arg, reads)
		return
	}
	switch p.mode {
	case planAhead:
		o.table.rows.Fetch(key)
	case planKeys:
		o.table.nameKey(p, key)
		p.skip(reads)
	case planInPlace, planCheck:
		p.skip(reads)
	case planBoxed:
		p.step(o.kind, key, arg, reads)
	case planGraph:
		args, deltas := &o.args[p.worker], &o.deltas[p.worker]
		id := p.add(o.kind, uint32(len(args.Items)), reads)
		var none D
		args.Items, deltas.Items = append(args.Items, arg), append(deltas.Items, none)
		o.table.touch(p, key, id)
	}
}

// Delta returns what the first occurrence of the operation merged, and false
// when the transaction aborted.
func (o *MergeOp[K, V, A, D]) Delta(out Outcome) (D, bool) {
	var none D
	if !out.Committed() {
		return none, false
	}
	for id := range out.accesses(o.kind) {
		w := out.w
		switch {
		case w.boxed != nil:
			return w.boxed.Steps[id].Delta.(D), true
		case w.inPlace:
			return o.calls[id].delta, true
		}
		return o.deltas[w.share].Items[w.acc[id].Arg], true
	}
	return none, false
}

// now runs the operation at once, see [Serial].
func (o *MergeOp[K, V, A, D]) now(p *Plan, key K, arg A, reads []Arg) {
	w := p.serial
	p.give(reads)
	rec, row := o.table.rows.Ensure(key)
	n := w.step(o.kind)
	if n >= len(o.calls) {
		o.calls = append(o.calls, make([]mergeCall[V, A, D], n+1)...)
	}
	c := &o.calls[n]
	c.before, c.row, c.had = rec.Val, row, rec.Present()
	if v := o.inPlace(w, arg, rec, c); v != OK {
		p.fail(v)
	}
}

// inPlace merges into the row at once. The value before is kept whole: there is
// no way to take a delta out again.
func (o *MergeOp[K, V, A, D]) inPlace(w *Worker, arg A, rec *keyed.Record[K, V], c *mergeCall[V, A, D]) Verdict {
	if w.fingerprints {
		w.note(w.fingerprintNow(o.table, nil, false))
	}
	delta, v := o.delta(Ctx{w, 0}, arg)
	if v != OK {
		return v
	}
	c.delta = delta
	after := o.table.start(&rec.Val, c.had)
	o.merge(&after, delta)
	o.table.rows.Changing(c.row)
	rec.Val = after
	rec.SetPresent(true)
	return OK
}

func (o *MergeOp[K, V, A, D]) undo(at int) {
	c := &o.calls[at]
	rec := o.table.rows.At(c.row)
	rec.Val = c.before
	if !c.had {
		rec.SetPresent(false)
		o.table.rows.Emptied(c.row)
	}
}

func (o *MergeOp[K, V, A, D]) rowOf(at int) uint32 { return o.calls[at].row }

// met returns what a call of a serial run met.
func (o *MergeOp[K, V, A, D]) met(at int) (V, bool) {
	c := &o.calls[at]
	return c.before, c.had
}

func (o *MergeOp[K, V, A, D]) run(w *Worker, id uint32) Verdict {
	at := w.acc[id].Arg
	if w.seen != nil {
		w.seen[id] = w.fingerprint(o.table, id, nil, false)
	}
	delta, v := o.delta(Ctx{w, id}, o.args[w.share].Items[at])
	o.deltas[w.share].Items[at] = delta
	return v
}

func (o *MergeOp[K, V, A, D]) fold(share int, at uint32, v *V) { o.merge(v, o.deltas[share].Items[at]) }

func (o *MergeOp[K, V, A, D]) boxed(f *Frame, arg, before any, present bool) (any, bool, Verdict) {
	var in V
	if present {
		in = before.(V)
	}
	w := &Worker{app: o.app, plan: &noPlan, boxed: f}
	delta, v := o.delta(Ctx{w, 0}, arg.(A))
	if v != OK {
		return in, present, v
	}
	f.Delta = delta
	out := o.table.start(&in, present)
	o.merge(&out, delta)
	return out, true, OK
}

func (o *MergeOp[K, V, A, D]) reset(worker int) {
	o.args[worker].Reset(o.ptrs)
	o.deltas[worker].Reset(o.ptrs)
}

func (o *MergeOp[K, V, A, D]) resetCalls() {
	if o.ptrs {
		clear(o.calls)
	}
}

func (o *MergeOp[K, V, A, D]) bind(workers int) {
	o.args = make([]arena.Slab[A], workers)
	o.deltas = make([]arena.Slab[D], workers)
}

// start returns a copy of a value that deltas may be merged into.
func (t *Table[K, V]) start(v *V, found bool) V {
	if !found {
		var zero V
		return zero
	}
	return t.copied(v)
}

// folded returns the value after the delta: what the last writer before left, with
// all visible deltas up to this one merged in. They are linked by src. The value
// is valid until the worker folds another of the table.
func (t *Table[K, V]) folded(w *Worker, delta uint32) *V {
	w.deltas = w.deltas[:0]
	from := delta
	for from != None && w.acc[from].Commutes() {
		w.deltas = append(w.deltas, from)
		from = atomic.LoadUint32(&w.src[from])
	}
	out := &t.folding[w.id].v
	t.fold(w.batch, from, w.deltas, out)
	return out
}

// fold computes into out the version of an access, None for the row, with the
// deltas, of which there is one at least and the last is the first to be merged.
func (t *Table[K, V]) fold(x *Batch, from uint32, deltas []uint32, out *V) {
	var v *V
	var found bool
	if from == None {
		v, found = t.rows.Before(x.Acc[deltas[0]].Slot)
	} else {
		slot := x.Acc[from].Slot
		v, found = &t.rows.Ver[slot], t.rows.Has[slot]
	}
	*out = t.start(v, found)
	for i := len(deltas) - 1; i >= 0; i-- {
		a := &x.Acc[deltas[i]]
		t.folders[a.Index()].fold(x.shares[int(deltas[i])/x.stride], a.Arg, out)
	}
}

// SettleDeltas gives a committed commutative operation the version that stands
// after it, from the committed ones before it and before the event limit. It
// uses the list and returns it.
func (x *Batch) SettleDeltas(id, limit uint32, list []uint32) []uint32 {
	return x.bound.App.kinds[x.Acc[id].Index()].table.settleDeltas(x, id, limit, list)
}

func (t *Table[K, V]) settleDeltas(x *Batch, id, limit uint32, list []uint32) []uint32 {
	list = append(list[:0], id)
	from := x.Acc[id].Pred
	for ; from != None; from = x.Acc[from].Pred {
		a := &x.Acc[from]
		if a.Event >= limit || x.Fail[a.Event] != committed {
			continue
		}
		if !a.Commutes() {
			break
		}
		list = append(list, from)
	}
	slot := x.Acc[id].Slot
	t.rows.Has[slot] = true
	t.fold(x, from, list, &t.rows.Ver[slot])
	return list
}
