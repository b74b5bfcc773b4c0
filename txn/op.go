package txn

import (
	"bytes"
	"iter"
	"slices"

	"github.com/heddle-stream/heddle/internal/arena"
	"github.com/heddle-stream/heddle/internal/invariants"
	"github.com/heddle-stream/heddle/storage/keyed"
)

type opMode uint8

const (
	modeGet opMode = iota
	modeUpdate
	modeUpsert
	modeInsert
	modeDelete
)

// Op is an operation on one key of a table, with an argument of type A. It is
// declared once and listed by plans with At.
type Op[K comparable, V, A any] struct {
	app     *App
	table   *Table[K, V]
	name    string
	kind    uint16
	mode    opMode
	lenient bool

	get    func(Ctx, A, V, bool) Verdict
	update func(Ctx, A, *V) Verdict
	upsert func(Ctx, A, *V, bool) Verdict

	args    []arena.Slab[A]          // by plan worker
	calls   []arena.Slab[call[V, A]] // by plan worker, of serial runs instead of args
	scratch []scratch[V]             // by executing worker
	argPtrs bool
	valPtrs bool
}

// call is an operation of a serial run: what it was called with, met and left.
type call[V, A any] struct {
	arg           A
	before, after V
	had, has      bool
}

// scratch is the copy of a value that a user function works on, apart from its
// neighbours' cache lines. It lives here because a local variable whose address
// goes to a function value would be allocated anew in each call.
type scratch[V any] struct {
	v V
	_ [120]byte
}

// Get declares an operation that looks at a key, present or not, and changes
// nothing. It may abort the transaction.
func Get[K comparable, V, A any](t *Table[K, V], name string, fn func(c Ctx, arg A, value V, found bool) Verdict) *Op[K, V, A] {
	o := &Op[K, V, A]{mode: modeGet, get: fn}
	return o.declare(t, name, fn == nil, caller())
}

// Update declares an operation that changes the value of an existing key. An
// absent key aborts the transaction with [Missing].
func Update[K comparable, V, A any](t *Table[K, V], name string, fn func(c Ctx, arg A, value *V) Verdict) *Op[K, V, A] {
	o := &Op[K, V, A]{mode: modeUpdate, update: fn}
	return o.declare(t, name, fn == nil, caller())
}

// Upsert declares an operation that changes or makes the value of a key. For
// an absent key the function gets the zero value and false.
func Upsert[K comparable, V, A any](t *Table[K, V], name string, fn func(c Ctx, arg A, value *V, found bool) Verdict) *Op[K, V, A] {
	o := &Op[K, V, A]{mode: modeUpsert, upsert: fn}
	return o.declare(t, name, fn == nil, caller())
}

// Insert declares an operation that makes the value of an absent key, from the
// zero value. A present key aborts the transaction with [Exists].
func Insert[K comparable, V, A any](t *Table[K, V], name string, fn func(c Ctx, arg A, value *V) Verdict) *Op[K, V, A] {
	o := &Op[K, V, A]{mode: modeInsert, update: fn}
	return o.declare(t, name, fn == nil, caller())
}

// Delete declares an operation that removes a key, after a look at its value.
// An absent key aborts the transaction with [Missing].
func Delete[K comparable, V, A any](t *Table[K, V], name string, fn func(c Ctx, arg A, value V) Verdict) *Op[K, V, A] {
	o := &Op[K, V, A]{mode: modeDelete}
	if fn != nil {
		o.get = func(c Ctx, arg A, value V, _ bool) Verdict { return fn(c, arg, value) }
	}
	return o.declare(t, name, fn == nil, caller())
}

// Lenient makes a missing key of an Update or Delete, and an existing one of an
// Insert, no reason to abort: the operation then does nothing. It returns o.
func (o *Op[K, V, A]) Lenient() *Op[K, V, A] {
	o.lenient = true
	return o
}

func (o *Op[K, V, A]) declare(t *Table[K, V], name string, noFunc bool, where string) *Op[K, V, A] {
	o.app, o.table, o.name = t.app, t, name
	t.app.declare("operation", name, where)
	if noFunc {
		t.app.fault(where, "operation %q has a nil function", name)
	}
	o.argPtrs, o.valPtrs = arena.HasPointers[A](), arena.HasPointers[V]()
	o.kind = t.app.addKind(&kind{name: name, table: t, op: o}, where)
	if o.mode == modeGet {
		o.kind |= kindPassive
	}
	return o
}

// Name returns the declared name.
func (o *Op[K, V, A]) Name() string { return o.name }

// At lists the operation in a plan, on the given key with the given argument.
// The reads are those that its function may look at.
func (o *Op[K, V, A]) At(p *Plan, key K, arg A, reads ...Arg) {
	if p.app != o.app {
		panic("operation " + o.name + " belongs to another application than the event")
	}
	switch p.mode {
	case planInPlace:
		o.now(p, key, arg, reads)
		return
	case planSerial:
		o.later(p, key, arg, reads)
		return
	case planBoxed:
		p.step(o.kind, key, arg, reads)
		return
	}
	args := &o.args[p.worker]
	id, _ := p.add(o.kind, uint32(len(args.Items)), reads)
	args.Items = append(args.Items, arg)
	o.table.touch(p, key, id)
}

// later lists the operation for a group that is looked up together, see [Serial].
func (o *Op[K, V, A]) later(p *Plan, key K, arg A, reads []Arg) {
	c, at := o.nextCall(p.worker)
	c.arg = arg
	id, _ := p.add(o.kind, at, reads)
	o.table.touch(p, key, id)
}

func (o *Op[K, V, A]) nextCall(share int) (c *call[V, A], at uint32) {
	calls := &o.calls[share].Items
	n := len(*calls)
	if n == cap(*calls) {
		*calls = slices.Grow(*calls, 1)
	}
	*calls = (*calls)[:n+1]
	return &(*calls)[n], uint32(n)
}

func (o *Op[K, V, A]) bind(workers int) {
	o.args = make([]arena.Slab[A], workers)
	o.calls = make([]arena.Slab[call[V, A]], workers)
	o.scratch = make([]scratch[V], workers)
}

func (o *Op[K, V, A]) reset(worker int) {
	o.args[worker].Reset(o.argPtrs)
	o.calls[worker].Reset(o.argPtrs || o.valPtrs)
}

// precondition tells whether the function is to be called at all, and if not,
// what becomes of the transaction.
func (o *Op[K, V, A]) precondition(found bool) (call bool, v Verdict) {
	switch {
	case o.mode == modeInsert && found:
		v = Exists
	case (o.mode == modeUpdate || o.mode == modeDelete) && !found:
		v = Missing
	default:
		return true, OK
	}
	if o.lenient {
		v = OK
	}
	return false, v
}

// apply calls the user's function on *out, made a copy of *in. When it says OK,
// *out holds the new value and stays tells whether there is one.
func (o *Op[K, V, A]) apply(w *Worker, id uint32, arg *A, in *V, found bool, out *V) (stays bool, v Verdict) {
	if invariants.Enabled {
		return o.applyChecked(w, id, arg, in, found, out)
	}
	return o.applyPlain(w, id, arg, in, found, out)
}

// applyChecked gives the function memory of its own, so that a pointer which it
// keeps reaches nothing of ours, and makes sure that it leaves the value that it
// was given a copy of alone: a copy that shares memory needs a Clone.
func (o *Op[K, V, A]) applyChecked(w *Worker, id uint32, arg *A, in *V, found bool, out *V) (stays bool, v Verdict) {
	own := new(V)
	before := o.table.val.Append(nil, in)
	stays, v = o.applyPlain(w, id, arg, in, found, own)
	invariants.Check(bytes.Equal(before, o.table.val.Append(nil, in)),
		"operation %q changed the value that it was given a copy of: table %q needs a txn.Clone that copies deeper", o.name, o.table.name)
	*out = *own
	return stays, v
}

func (o *Op[K, V, A]) applyPlain(w *Worker, id uint32, arg *A, in *V, found bool, out *V) (stays bool, v Verdict) {
	call, v := o.precondition(found)
	t := o.table
	switch {
	case found && t.clone != nil:
		*out = t.clone(*in)
	case found:
		*out = *in
	default:
		var zero V
		*out = zero
	}
	if !call {
		return found, v
	}
	c := Ctx{w, id}
	switch o.mode {
	case modeGet:
		return found, o.get(c, *arg, *out, found)
	case modeUpdate, modeInsert:
		return true, o.update(c, *arg, out)
	case modeUpsert:
		return true, o.upsert(c, *arg, out, found)
	default:
		v = o.get(c, *arg, *out, true)
		var zero V
		*out = zero
		return false, v
	}
}

// now runs the operation while the plan lists it, see [Serial].
func (o *Op[K, V, A]) now(p *Plan, key K, arg A, reads []Arg) {
	if p.failed != OK { // listed, so that the plan's mistakes are found, and not run
		p.add(o.kind, 0, reads)
		return
	}
	rec, row := o.table.rows.Ensure(key)
	c, at := o.nextCall(p.worker)
	c.arg = arg
	id, a := p.add(o.kind, at, reads)
	a.Slot = row
	if v := o.inPlace(p.serial, id, rec, row, c); v != OK {
		p.failed, p.ran = v, id
		return
	}
	p.ran = id + 1
}

// serial runs an operation that the plan has listed.
func (o *Op[K, V, A]) serial(w *Worker, id uint32) Verdict {
	a := &w.acc[id]
	return o.inPlace(w, id, o.table.rows.At(a.Slot), a.Slot, &o.calls[w.share].Items[a.Arg])
}

// inPlace runs the operation on a row and notes what it met and left.
func (o *Op[K, V, A]) inPlace(w *Worker, id uint32, rec *keyed.Record[K, V], row uint32, c *call[V, A]) Verdict {
	found := rec.Present()
	c.before, c.had = rec.Val, found
	if w.fingerprints {
		w.note(id, w.fingerprint(o.table, id, &rec.Val, found))
	}
	if found && o.mode == modeUpdate && o.table.clone == nil && !invariants.Enabled { // the common case
		c.after, c.has = rec.Val, true
		v := o.update(Ctx{w, id}, c.arg, &c.after)
		if v == OK {
			o.table.rows.Changing(row)
			rec.Val = c.after
		}
		return v
	}
	stays, v := o.apply(w, id, &c.arg, &rec.Val, found, &c.after)
	if v == OK {
		c.has = stays
		o.put(rec, row, &c.after, found, stays)
	}
	return v
}

// put makes the result of an operation the row's value.
func (o *Op[K, V, A]) put(rec *keyed.Record[K, V], row uint32, out *V, found, stays bool) {
	if o.mode == modeGet {
		return
	}
	o.table.rows.Changing(row)
	rec.Val = *out
	if stays != found {
		rec.SetPresent(stays)
		if !stays {
			o.table.rows.Emptied(row)
		}
	}
}

func (o *Op[K, V, A]) run(w *Worker, id uint32) Verdict {
	a := &w.acc[id]
	t := o.table
	in, found := t.load(w, id)
	if in == &t.folding[w.id].v { // which the reads of the function may fill anew
		t.rows.Ver[a.Slot] = *in
		in = &t.rows.Ver[a.Slot]
	}
	if w.seen != nil {
		w.seen[id] = w.fingerprint(t, id, in, found)
	}
	arg, out := &o.args[w.share].Items[a.Arg], &t.rows.Ver[a.Slot]
	if found && o.mode == modeUpdate && t.clone == nil && !invariants.Enabled { // the common case
		*out = *in
		t.rows.Has[a.Slot] = true
		return o.update(Ctx{w, id}, *arg, out)
	}
	if o.mode == modeGet {
		out = &o.scratch[w.id].v
	}
	stays, v := o.apply(w, id, arg, in, found, out)
	if o.mode != modeGet {
		t.rows.Has[a.Slot] = stays
	}
	return v
}

func (o *Op[K, V, A]) undo(w *Worker, id uint32) {
	a := &w.acc[id]
	if o.mode == modeGet {
		return
	}
	rec, c := o.table.rows.At(a.Slot), &o.calls[w.share].Items[a.Arg]
	rec.Val = c.before
	if rec.Present() != c.had {
		rec.SetPresent(c.had)
		if !c.had {
			o.table.rows.Emptied(a.Slot)
		}
	}
}

// met returns what a call of a serial run met.
func (o *Op[K, V, A]) met(share int, at uint32) (V, bool) {
	c := &o.calls[share].Items[at]
	return c.before, c.had
}

// Before returns what the first occurrence of the operation in the event's
// transaction saw, and whether there was a value; also in a transaction that
// aborted, as far as it ran.
func (o *Op[K, V, A]) Before(out Outcome) (V, bool) {
	for id := range out.accesses(o.kind) {
		if out.ran(id) {
			return o.before(out, id)
		}
	}
	var zero V
	return zero, false
}

// After returns what the first occurrence of the operation left, and whether
// there was a value; nothing when the transaction aborted.
func (o *Op[K, V, A]) After(out Outcome) (V, bool) {
	if out.Committed() {
		for id := range out.accesses(o.kind) {
			return o.after(out, id)
		}
	}
	var zero V
	return zero, false
}

// All yields the argument and what it left for each occurrence of the operation
// in a committed transaction, in declaration order. A deleted key's value is
// the zero value.
func (o *Op[K, V, A]) All(out Outcome) iter.Seq2[A, V] {
	return func(yield func(A, V) bool) {
		if !out.Committed() {
			return
		}
		for id := range out.accesses(o.kind) {
			v, _ := o.after(out, id)
			if !yield(o.arg(out, id), v) {
				return
			}
		}
	}
}

func (o *Op[K, V, A]) arg(out Outcome, id uint32) A {
	if out.w.boxed != nil {
		return out.w.boxed.Steps[id].Arg.(A)
	}
	at := out.w.acc[id].Arg
	if out.w.inPlace {
		return o.calls[out.w.share].Items[at].arg
	}
	return o.args[out.w.share].Items[at]
}

func (o *Op[K, V, A]) before(out Outcome, id uint32) (V, bool) {
	w, t := out.w, o.table
	switch {
	case w.boxed != nil:
		return unbox[V](w.boxed.Steps[id].Before)
	case w.inPlace:
		c := &o.calls[w.share].Items[w.acc[id].Arg]
		return t.copied(&c.before), c.had
	}
	v, ok := t.load(w, id)
	if !ok {
		var zero V
		return zero, false
	}
	return t.copied(v), true
}

func (o *Op[K, V, A]) after(out Outcome, id uint32) (V, bool) {
	w, t := out.w, o.table
	switch {
	case w.boxed != nil:
		return unbox[V](w.boxed.Steps[id].After)
	case o.mode == modeGet:
		return o.before(out, id)
	case w.inPlace:
		c := &o.calls[w.share].Items[w.acc[id].Arg]
		return t.copied(&c.after), c.has
	}
	slot := w.acc[id].Slot
	return t.copied(&t.rows.Ver[slot]), t.rows.Has[slot]
}

// None stands for "no access": the value before a batch.
const None = keyed.None
