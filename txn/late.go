package txn

import (
	"iter"

	"github.com/heddle-stream/heddle/internal/arena"
)

// Moved is what running a transaction comes to when the key of an access is
// computed and is another one than the graph has it under. Only schedulers see it.
const Moved Verdict = 0xfffe

// LateOp is an operation whose key is computed from values read in its own
// transaction, and so is known only while the transaction runs.
type LateOp[K comparable, V, A any] struct {
	op   *Op[K, V, A] // a copy with memory of its own
	key  func(Ctx, A) (K, Verdict)
	want []arena.Slab[wanted[K]] // by plan worker, beside the operation's arguments
}

// wanted is the key that an access was found to have, or that it has none.
type wanted[K comparable] struct {
	key K
	ok  bool
}

// Late gives an operation a computed key. The key function sees the reads that
// Then passes, and may abort the transaction. The key may be new to the table.
//
// The engine guesses the key from the state before the batch. A guess that turns
// out wrong costs a second run of the transactions that saw too little.
func Late[K comparable, V, A any](op *Op[K, V, A], key func(c Ctx, arg A) (K, Verdict)) *LateOp[K, V, A] {
	where := caller()
	inner := *op
	o := &LateOp[K, V, A]{op: &inner, key: key}
	if key == nil {
		op.app.fault(where, "late operation %q has a nil function", op.name)
	}
	inner.kind = op.app.addKind(&kind{name: op.name, table: op.table, op: o, late: o}, where) | kindLate | op.kind&kindPassive
	return o
}

// Name returns the name of the operation.
func (o *LateOp[K, V, A]) Name() string { return o.op.name }

// Then lists the operation in a plan. The reads are those that the key function
// and the operation may look at.
func (o *LateOp[K, V, A]) Then(p *Plan, arg A, reads ...Arg) {
	if p.app != o.op.app {
		panic("operation " + o.op.name + " belongs to another application than the event")
	}
	if p.running != nil {
		o.now(p, arg, reads)
		return
	}
	switch p.mode {
	case planAhead:
	case planKeys:
		p.footprint.computes(o.op.name, "computes its key")
		p.skip(reads)
	case planInPlace, planCheck:
		p.skip(reads)
	case planBoxed:
		p.step(o.op.kind, nil, arg, reads)
	case planGraph:
		args, want := &o.op.args[p.worker], &o.want[p.worker]
		id := p.add(o.op.kind, uint32(len(args.Items)), reads)
		args.Items, want.Items = append(args.Items, arg), append(want.Items, wanted[K]{})
		p.lates = append(p.lates, id)
	}
}

// Key returns the key that the first occurrence of the operation computed, and
// false when it did not come to that.
func (o *LateOp[K, V, A]) Key(out Outcome) (K, bool) {
	var none K
	for id := range out.accesses(o.op.kind) {
		if !out.ran(id) {
			break
		}
		w := out.w
		switch {
		case w.boxed != nil:
			key, ok := w.boxed.Steps[id].Key.(K)
			return key, ok
		case !w.inPlace:
			want := &o.want[w.share].Items[w.acc[id].Arg]
			return want.key, want.ok
		}
		if row := o.op.calls[id].row; row != None {
			return o.op.table.rows.At(row).Key, true
		}
		break
	}
	return none, false
}

// Before is that of [Op.Before]; there is nothing when no key was computed.
func (o *LateOp[K, V, A]) Before(out Outcome) (V, bool) {
	if w := out.w; w.boxed == nil && !w.inPlace {
		for id := range out.accesses(o.op.kind) {
			if !o.want[w.share].Items[w.acc[id].Arg].ok {
				var none V
				return none, false
			}
			break
		}
	}
	return o.op.Before(out)
}

// After is that of [Op.After].
func (o *LateOp[K, V, A]) After(out Outcome) (V, bool) { return o.op.After(out) }

// All is that of [Op.All].
func (o *LateOp[K, V, A]) All(out Outcome) iter.Seq2[A, V] { return o.op.All(out) }

// now runs the operation at once, see [Serial].
func (o *LateOp[K, V, A]) now(p *Plan, arg A, reads []Arg) {
	w := p.serial
	p.give(reads)
	c := o.op.call(w)
	var none V
	c.arg, c.row, c.before, c.had = arg, None, none, false
	key, v := o.key(Ctx{w, 0}, arg)
	if v != OK {
		if w.fingerprints {
			w.note(w.fingerprintNow(o.op.table, nil, false))
		}
		p.fail(v)
		return
	}
	rec, row := o.op.table.rows.Ensure(key)
	c.row = row
	if v := o.op.inPlace(w, rec, c); v != OK {
		p.fail(v)
	}
}

func (o *LateOp[K, V, A]) undo(at int) { o.op.undo(at) }

func (o *LateOp[K, V, A]) rowOf(at int) uint32 { return o.op.rowOf(at) }

func (o *LateOp[K, V, A]) met(at int) (V, bool) { return o.op.met(at) }

func (o *LateOp[K, V, A]) run(w *Worker, id uint32) Verdict {
	at := w.acc[id].Arg
	key, v := o.key(Ctx{w, id}, o.op.args[w.share].Items[at])
	if v != OK {
		o.want[w.share].Items[at] = wanted[K]{}
		if w.seen != nil {
			w.seen[id] = w.fingerprint(o.op.table, id, nil, false)
		}
		return v
	}
	o.want[w.share].Items[at] = wanted[K]{key, true} // an earlier run may have found none
	if !o.op.table.placedAt(w, id, key) {
		return Moved
	}
	return o.op.run(w, id)
}

func (o *LateOp[K, V, A]) boxed(f *Frame, arg, before any, present bool) (any, bool, Verdict) {
	return o.op.boxed(f, arg, before, present)
}

func (o *LateOp[K, V, A]) boxedKey(f *Frame, arg any) (any, Verdict) {
	return o.key(Ctx{&Worker{app: o.op.app, plan: &noPlan, boxed: f}, 0}, arg.(A))
}

func (o *LateOp[K, V, A]) guess(w *Worker, id uint32) bool {
	at := w.acc[id].Arg
	key, v := o.key(Ctx{w, id}, o.op.args[w.share].Items[at])
	o.want[w.share].Items[at] = wanted[K]{key, v == OK}
	return v == OK
}

func (o *LateOp[K, V, A]) place(share int, a *Access) bool {
	return o.op.table.place(a.Slot, o.want[share].Items[a.Arg])
}

func (o *LateOp[K, V, A]) bind(workers int) {
	o.op.bind(workers)
	o.want = make([]arena.Slab[wanted[K]], workers)
}

func (o *LateOp[K, V, A]) reset(worker int) {
	o.op.reset(worker)
	o.want[worker].Reset(o.op.table.keyPtrs)
}

func (o *LateOp[K, V, A]) resetCalls() { o.op.resetCalls() }

// LateParam is a handle for reading a key that is computed from other reads of
// the same transaction.
type LateParam[K comparable, V, A any] struct {
	read Param[K, V]
	key  func(Ctx, A) (K, bool)
	args []arena.Slab[lateArg[K, A]]
	ptrs bool
}

// lateArg is the argument of a late read and the key that it was found to have.
type lateArg[K comparable, A any] struct {
	arg  A
	want wanted[K]
}

// NewLateParam declares a read handle with a computed key. The key function sees
// the reads that Then passes; false reads nothing, as of an absent key.
func NewLateParam[K comparable, V, A any](t *Table[K, V], name string, key func(c Ctx, arg A) (K, bool)) *LateParam[K, V, A] {
	where := caller()
	r := &LateParam[K, V, A]{read: Param[K, V]{app: t.app, table: t, name: name}, key: key}
	t.app.declare("read", name, where)
	if key == nil {
		t.app.fault(where, "late read %q has a nil function", name)
	}
	r.ptrs = arena.HasPointers[A]() || arena.HasPointers[K]()
	r.read.kind = t.app.addKind(&kind{name: name, table: t, late: r}, where) | kindRead
	return r
}

// Then reads the computed key as it stands just before the operation that the
// read is passed to. The given reads are those that the key function may look
// at; they may be passed to the operation, too.
func (r *LateParam[K, V, A]) Then(p *Plan, arg A, reads ...Arg) Arg {
	if p.app != r.read.app {
		panic("read " + r.read.name + " belongs to another application than the event")
	}
	kind := r.read.kind | kindLate
	if p.mode == planBoxed {
		return p.boxedLateRead(kind, arg, reads)
	}
	if p.running != nil {
		return r.now(p, kind, arg, reads)
	}
	switch p.mode {
	case planAhead:
		return Arg{}
	case planKeys:
		p.footprint.computes(r.read.name, "computes its key")
		p.passToRead(reads)
		return p.read(kind, 0)
	case planInPlace, planCheck:
		p.passToRead(reads)
		return p.read(kind, 0)
	}
	args := &r.args[p.worker]
	read, id := p.addLateRead(kind, uint32(len(args.Items)), reads)
	args.Items = append(args.Items, lateArg[K, A]{arg: arg})
	p.lates = append(p.lates, id)
	return read
}

// Get is that of [Param.Get].
func (r *LateParam[K, V, A]) Get(c Ctx) (V, bool) { return r.read.Get(c) }

// All is that of [Param.All].
func (r *LateParam[K, V, A]) All(c Ctx) iter.Seq2[V, bool] { return r.read.All(c) }

// now finds the row in a serial run. A read of nothing is one of a value that is
// kept as absent.
func (r *LateParam[K, V, A]) now(p *Plan, kind uint16, arg A, reads []Arg) Arg {
	w := p.serial
	p.passToRead(reads)
	p.gather(reads)
	w.keying = kind
	key, ok := r.key(Ctx{w, 0}, arg)
	w.keying = 0
	n, t := len(p.reads), r.read.table
	if !ok {
		var none V
		t.hold(n, none, false)
		return p.read(kind, uint32(n))
	}
	rec, _ := t.rows.Ensure(key)
	t.hold(n, rec.Val, rec.Present())
	return p.read(kind, uint32(n))
}

// runRead computes the key and reports whether the graph has the read under it.
func (r *LateParam[K, V, A]) runRead(w *Worker, id uint32) bool {
	a := &r.args[w.share].Items[w.acc[id].Arg]
	key, ok := r.key(Ctx{w, id}, a.arg)
	if ok && r.read.table.placedAt(w, id, key) || !ok && !r.read.table.placed(w.acc[id].Slot) {
		return true
	}
	a.want = wanted[K]{key, ok}
	return false
}

func (r *LateParam[K, V, A]) boxedKey(f *Frame, arg any) (any, Verdict) {
	key, ok := r.key(Ctx{&Worker{app: r.read.app, plan: &noPlan, boxed: f}, 0}, arg.(A))
	if !ok {
		return nil, Missing
	}
	return key, OK
}

func (r *LateParam[K, V, A]) guess(w *Worker, id uint32) bool {
	a := &r.args[w.share].Items[w.acc[id].Arg]
	key, ok := r.key(Ctx{w, id}, a.arg)
	a.want = wanted[K]{key, ok}
	return ok
}

func (r *LateParam[K, V, A]) place(share int, a *Access) bool {
	return r.read.table.place(a.Slot, r.args[share].Items[a.Arg].want)
}

func (r *LateParam[K, V, A]) bind(workers int) { r.args = make([]arena.Slab[lateArg[K, A]], workers) }

func (r *LateParam[K, V, A]) reset(worker int) { r.args[worker].Reset(r.ptrs) }

// late is an operation or read with a computed key.
type late interface {
	// guess computes the key from the state before the batch.
	guess(w *Worker, id uint32) bool
	// place gives the access's slot the row of the key found last, and reports
	// whether there is one.
	place(share int, a *Access) bool
	boxedKey(f *Frame, arg any) (any, Verdict)
	bind(workers int)
	reset(worker int)
}

// readLate is a late read.
type readLate interface {
	runRead(w *Worker, id uint32) bool
}

// placed reports whether a slot has a row.
func (t *Table[K, V]) placed(slot uint32) bool { return t.rows.Rows[slot] != None }

// placedAt reports whether an access's slot has the row of the key.
func (t *Table[K, V]) placedAt(w *Worker, id uint32, key K) bool {
	row := t.rows.Rows[w.acc[id].Slot]
	return row != None && t.rows.At(row).Key == key
}

// place gives a slot the row of a key, made when there is none, or no row.
func (t *Table[K, V]) place(slot uint32, want wanted[K]) bool {
	if !want.ok {
		t.rows.Displace(slot)
		return false
	}
	_, row := t.rows.Ensure(want.key)
	t.rows.Place(slot, row)
	return true
}
