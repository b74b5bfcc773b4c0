package txn

import (
	"bytes"
	"iter"

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
	direct  *App // the application if this is a plain update, else none
	table   *Table[K, V]
	rows    *keyed.Table[K, V]
	name    string
	kind    uint16
	mode    opMode
	lenient bool

	get    func(Ctx, A, V, bool) Verdict
	update func(Ctx, A, *V) Verdict
	upsert func(Ctx, A, *V, bool) Verdict

	args    []arena.Slab[A] // by plan worker
	calls   []call[V, A]    // of the transaction of a serial run, by place among its operations
	scratch []scratch[V]    // by executing worker
	argPtrs bool
	valPtrs bool
}

// call is an operation of a serial run: what it was called with, met and left.
type call[V, A any] struct {
	arg           A
	before, after V
	row           uint32 // None when it did not come to one
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
	o.app, o.direct, o.table, o.rows, o.name = t.app, &indirect, t, t.rows, name
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
	if p.direct != o.direct {
		o.list(p, key, arg, reads)
		return
	}
	// The most frequent case, with what now does written out: a plain update that
	// runs at once.
	n, w := p.listed, p.serial
	if n >= len(o.calls) || n >= len(w.kinds) {
		o.grow(w, n)
	}
	w.kinds[n] = o.kind
	c := &o.calls[n]
	c.arg = arg
	if p.given, p.givenLen = 0, 0; len(reads) > 0 {
		p.give(reads)
	}
	p.listed = n + 1
	rec, row := o.rows.Ensure(key)
	if c.row = row; !rec.Present() {
		o.finish(p, rec, c)
		return
	}
	c.before, c.after, c.had, c.has = rec.Val, rec.Val, true, true
	if v := o.update(Ctx{w, 0}, c.arg, &c.after); v != OK {
		p.fail(v)
		return
	}
	o.rows.Changing(row)
	rec.Val = c.after
}

// list is At where the operation does not run at once, or not in the plain way.
func (o *Op[K, V, A]) list(p *Plan, key K, arg A, reads []Arg) {
	if p.app != o.app {
		panic("operation " + o.name + " belongs to another application than the event")
	}
	switch p.mode {
	case planGraph:
		args := &o.args[p.worker]
		id := p.add(o.kind, uint32(len(args.Items)), reads)
		args.Items = append(args.Items, arg)
		o.table.touch(p, key, id)
	case planAhead:
		o.rows.Fetch(key)
	case planKeys:
		o.table.nameKey(p, key)
		p.skip(reads)
	case planBoxed:
		p.step(o.kind, key, arg, reads)
	case planInPlace, planCheck:
		if p.running != nil {
			o.now(p, key, arg, reads)
			return
		}
		p.skip(reads)
	}
}

func (o *Op[K, V, A]) bind(workers int) {
	o.args = make([]arena.Slab[A], workers)
	o.scratch = make([]scratch[V], workers)
	if o.mode == modeUpdate && o.table.clone == nil && !invariants.Enabled {
		o.direct = o.app
	}
}

// indirect is no application.
var indirect App

func (o *Op[K, V, A]) reset(worker int) { o.args[worker].Reset(o.argPtrs) }

func (o *Op[K, V, A]) resetCalls() {
	if o.argPtrs || o.valPtrs {
		clear(o.calls)
	}
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
	p.give(reads)
	c := o.call(p.serial)
	c.arg, c.row = arg, None
	rec, row := o.rows.Ensure(key)
	c.row = row
	o.finish(p, rec, c)
}

// finish runs a call that is under way, whatever the row holds.
func (o *Op[K, V, A]) finish(p *Plan, rec *keyed.Record[K, V], c *call[V, A]) {
	if v := o.inPlace(p.serial, rec, c); v != OK {
		p.fail(v)
	}
}

// call begins a call of a serial run.
func (o *Op[K, V, A]) call(w *Worker) *call[V, A] {
	n := w.step(o.kind)
	o.grow(w, n)
	return &o.calls[n]
}

// grow makes room for the n-th operation of a transaction.
//
//go:noinline
func (o *Op[K, V, A]) grow(w *Worker, n int) {
	if n >= len(o.calls) {
		o.calls = append(o.calls, make([]call[V, A], n+1)...)
	}
	if n >= len(w.kinds) {
		w.kinds = append(w.kinds, make([]uint16, n+1)...)
	}
}

// inPlace runs the operation on a row and notes what it met and left. The row is
// changed last, so that there is nothing to take back from a call that failed.
func (o *Op[K, V, A]) inPlace(w *Worker, rec *keyed.Record[K, V], c *call[V, A]) Verdict {
	found := rec.Present()
	c.before, c.had = rec.Val, found
	if w.fingerprints {
		w.note(w.fingerprintNow(o.table, &rec.Val, found))
	}
	stays, v := o.apply(w, 0, &c.arg, &rec.Val, found, &c.after)
	if v == OK {
		c.has = stays
		o.put(rec, c.row, &c.after, found, stays)
	}
	return v
}

// put makes the result of an operation the row's value.
func (o *Op[K, V, A]) put(rec *keyed.Record[K, V], row uint32, out *V, found, stays bool) {
	if o.mode == modeGet {
		return
	}
	o.rows.Changing(row)
	rec.Val = *out
	if stays != found {
		rec.SetPresent(stays)
		if !stays {
			o.rows.Emptied(row)
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

func (o *Op[K, V, A]) undo(at int) {
	c := &o.calls[at]
	if o.mode == modeGet || c.row == None {
		return
	}
	rec := o.rows.At(c.row)
	rec.Val = c.before
	if rec.Present() != c.had {
		rec.SetPresent(c.had)
		if !c.had {
			o.rows.Emptied(c.row)
		}
	}
}

func (o *Op[K, V, A]) rowOf(at int) uint32 { return o.calls[at].row }

// met returns what a call of a serial run met.
func (o *Op[K, V, A]) met(at int) (V, bool) {
	c := &o.calls[at]
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
	if out.w.inPlace {
		return o.calls[id].arg
	}
	return o.args[out.w.share].Items[out.w.acc[id].Arg]
}

func (o *Op[K, V, A]) before(out Outcome, id uint32) (V, bool) {
	w, t := out.w, o.table
	switch {
	case w.boxed != nil:
		return unbox[V](w.boxed.Steps[id].Before)
	case w.inPlace:
		c := &o.calls[id]
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
		c := &o.calls[id]
		return t.copied(&c.after), c.has
	}
	slot := w.acc[id].Slot
	return t.copied(&t.rows.Ver[slot]), t.rows.Has[slot]
}

// None stands for "no access": the value before a batch.
const None = keyed.None
