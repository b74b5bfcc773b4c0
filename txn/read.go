package txn

import (
	"cmp"
	"iter"

	"github.com/heddle-stream/heddle/internal/arena"
)

// Arg is a read that a plan made, to be passed to the operations that look at it:
// its number among those of the event.
type Arg struct {
	id   uint32
	kind uint16
}

// Param is a handle for reading other keys of a table within an operation.
type Param[K comparable, V any] struct {
	app   *App
	table *Table[K, V]
	name  string
	kind  uint16

	// The first read of the event of a serial run, unless values need cloning.
	stamp uint64
	first uint
	val   V
	ok    bool
}

// NewParam declares a read handle. One handle may stand for several keys of
// one operation.
func NewParam[K comparable, V any](t *Table[K, V], name string) *Param[K, V] {
	where := caller()
	r := &Param[K, V]{app: t.app, table: t, name: name}
	t.app.declare("read", name, where)
	r.kind = t.app.addKind(&kind{name: name, table: t}, where) | kindRead
	return r
}

// Of reads the key as it stands just before the operation that the read is
// passed to: after all earlier transactions and after the earlier operations of
// its own. It belongs to one operation.
func (r *Param[K, V]) Of(p *Plan, key K) Arg { return r.plan(p, key, r.kind) }

// AtStart reads the key as it stood before the transaction, whatever its own
// operations do. It may be passed to several operations.
func (r *Param[K, V]) AtStart(p *Plan, key K) Arg { return r.plan(p, key, r.kind|kindStart) }

func (r *Param[K, V]) plan(p *Plan, key K, kind uint16) Arg {
	if p.running != r.app {
		return r.list(p, key, kind)
	}
	t := r.table
	rec, row := t.rows.Ensure(key)
	n := len(p.reads)
	if n == cap(p.reads) {
		p.growReads()
	}
	p.reads = p.reads[:n+1]
	read := &p.reads[n]
	read.at, read.listed, read.kind, read.passed = uint32(n), uint32(p.listed), kind, passedNowhere
	if n >= len(t.held) {
		t.growHeld(n)
	}
	held := &t.held[n]
	if held.val, held.ok = rec.Val, rec.Present(); kind&kindStart != 0 && p.listed > 0 {
		r.holdEarlier(p.serial, held, row)
	}
	if r.stamp != p.stamp && t.clone == nil {
		r.stamp, r.first, r.val, r.ok = p.stamp, uint(n), held.val, held.ok
	}
	return Arg{uint32(n), kind}
}

// list is plan where operations do not run at once.
func (r *Param[K, V]) list(p *Plan, key K, kind uint16) Arg {
	if p.app != r.app {
		panic("read " + r.name + " belongs to another application than the event")
	}
	switch p.mode {
	case planBoxed:
		return p.boxedRead(kind, key, nil)
	case planAhead:
		r.table.rows.Fetch(key)
		return Arg{}
	case planKeys:
		r.table.nameKey(p, key)
		return p.read(kind, 0)
	case planInPlace, planCheck:
		return p.read(kind, 0)
	}
	arg, at := p.addRead(kind, 0)
	r.table.touch(p, key, at)
	return arg
}

// holdEarlier corrects what a read at the start sees when operations of its
// transaction ran already: what the first of them on the row met.
func (r *Param[K, V]) holdEarlier(w *Worker, held *seen[V], row uint32) {
	for i, kind := range w.kinds[:w.plan.listed] {
		k := w.app.kinds[kind&kindIndex]
		if k.table == tableRuntime(r.table) && k.op.rowOf(i) == row {
			held.val, held.ok = k.op.(interface{ met(at int) (V, bool) }).met(i)
			return
		}
	}
}

// Get returns the value of the handle's first key in the current operation, and
// whether there was one. It panics when the plan passed no such read.
func (r *Param[K, V]) Get(c Ctx) (V, bool) {
	w := c.w
	if p := w.plan; r.stamp == p.stamp && r.first-p.given < p.givenLen {
		return r.val, r.ok // what a serial run asks for most often
	}
	if w.inPlace || w.boxed != nil {
		return r.getSerial(c)
	}
	a := &w.acc[c.id]
	for _, local := range w.refs[a.Refs : a.Refs+uint32(a.NRefs)] {
		id := w.base + local
		b := &w.acc[id]
		if b.Kind&(kindRead|kindIndex) != r.kind {
			continue
		}
		v, ok := r.table.see(w, id, b)
		if !ok || r.table.clone != nil {
			return r.table.out(v, ok)
		}
		return *v, true
	}
	r.notPassed(c)
	panic("unreachable")
}

// getSerial is Get in a serial run, ours or that of the model.
func (r *Param[K, V]) getSerial(c Ctx) (V, bool) {
	if c.w.boxed != nil {
		return r.getBoxed(c)
	}
	for _, read := range c.w.given() {
		if read.kind&(kindRead|kindIndex) == r.kind {
			return r.table.out(r.table.look(read))
		}
	}
	r.notPassed(c)
	panic("unreachable")
}

// out returns a value as user functions get it.
func (t *Table[K, V]) out(v *V, ok bool) (V, bool) {
	if !ok {
		var zero V
		return zero, false
	}
	if t.clone != nil {
		return t.clone(*v), true
	}
	return *v, true
}

func (r *Param[K, V]) getBoxed(c Ctx) (V, bool) {
	for _, b := range c.w.boxed.Reads {
		if b.Kind == r.kind {
			return unbox[V](b.Rows[0])
		}
	}
	r.notPassed(c)
	panic("unreachable")
}

func (r *Param[K, V]) notPassed(c Ctx) {
	panic("read " + r.name + " was not passed to operation " + c.operation())
}

// All yields the value of each of the handle's keys in the current operation,
// in the order in which the plan passed them, and whether there was one.
func (r *Param[K, V]) All(c Ctx) iter.Seq2[V, bool] {
	return func(yield func(V, bool) bool) {
		w := c.w
		if w.boxed != nil {
			for _, b := range w.boxed.Reads {
				if b.Kind == r.kind {
					if v, ok := unbox[V](b.Rows[0]); !yield(v, ok) {
						return
					}
				}
			}
			return
		}
		if w.inPlace {
			for _, read := range w.given() {
				if read.kind&(kindRead|kindIndex) == r.kind && !yield(r.table.out(r.table.look(read))) {
					return
				}
			}
			return
		}
		a := &w.acc[c.id]
		for _, local := range w.refs[a.Refs : a.Refs+uint32(a.NRefs)] {
			id := w.base + local
			if w.acc[id].Kind&(kindRead|kindIndex) == r.kind && !yield(r.table.out(r.table.load(w, id))) {
				return
			}
		}
	}
}

// Range is a handle for reading all keys of an interval within an operation.
type Range[K cmp.Ordered, V any] struct {
	app   *App
	table *Table[K, V]
	name  string
	kind  uint16
	args  []arena.Slab[[2]K] // by plan worker
}

// NewRange declares a read handle for intervals of an ordered table.
func NewRange[K cmp.Ordered, V any](t *Ordered[K, V], name string) *Range[K, V] {
	where := caller()
	r := &Range[K, V]{app: t.app, table: t.Table, name: name}
	t.app.declare("read", name, where)
	r.kind = t.app.addKind(&kind{name: name, table: t.Table, rng: r}, where) | kindRead | kindRange
	return r
}

// Of reads all keys from lo up to but not including hi as they stand just before
// the operation that the read is passed to. No key can slip in or out.
func (r *Range[K, V]) Of(p *Plan, lo, hi K) Arg {
	if p.app != r.app {
		panic("read " + r.name + " belongs to another application than the event")
	}
	if p.mode == planBoxed {
		return p.boxedRead(r.kind, lo, hi)
	}
	switch p.mode {
	case planAhead:
		return Arg{}
	case planCheck:
		return p.read(r.kind, 0)
	case planKeys:
		p.footprint.computes(r.name, "reads an interval")
		return p.read(r.kind, 0)
	}
	args := &r.args[p.worker]
	at := uint32(len(args.Items))
	args.Items = append(args.Items, [2]K{lo, hi})
	if p.mode == planInPlace {
		r.recall(p.worker, at)
		return p.read(r.kind, at)
	}
	arg, id := p.addRead(r.kind, at)
	reads := &r.table.ranges[p.worker]
	reads.ids = append(reads.ids, id)
	return arg
}

// All yields the keys of the interval that hold a value, in key order. With
// several intervals passed it yields one after the other.
func (r *Range[K, V]) All(c Ctx) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		w := c.w
		if w.boxed != nil {
			r.allBoxed(w.boxed, yield)
			return
		}
		if w.inPlace {
			for _, b := range w.given() {
				if b.kind == r.kind && !r.now(w, b.at, yield) {
					return
				}
			}
			return
		}
		a := &w.acc[c.id]
		for _, local := range w.refs[a.Refs : a.Refs+uint32(a.NRefs)] {
			if id := w.base + local; w.acc[id].Kind == r.kind && !r.interval(w, id, yield) {
				return
			}
		}
	}
}

// recall brings the rows of an interval into memory, before an operation holds on to a
// row: those that come may make others move.
func (r *Range[K, V]) recall(worker int, arg uint32) {
	if t := r.table; t.rows.Limited() {
		from := len(t.rowBuf)
		t.rowBuf = r.expand(worker, arg, t.rowBuf)[:from]
	}
}

// now yields an interval in a serial run. Nested iterations share the buffer like
// a stack.
func (r *Range[K, V]) now(w *Worker, arg uint32, yield func(K, V) bool) bool {
	t := r.table
	from := len(t.rowBuf)
	t.rowBuf = r.expand(w.share, arg, t.rowBuf)
	defer func() { t.rowBuf = t.rowBuf[:from] }()
	for i := from; i < len(t.rowBuf); i++ {
		rec := t.rows.At(t.rowBuf[i])
		if rec.Present() && !yield(rec.Key, t.copied(&rec.Val)) {
			return false
		}
	}
	return true
}

func (r *Range[K, V]) interval(w *Worker, id uint32, yield func(K, V) bool) bool {
	t := r.table
	a := &w.acc[id]
	for m := a.Slot; m < a.Slot+a.Refs; m++ {
		v, ok := t.load(w, m)
		if ok && !yield(t.rows.At(t.rows.Rows[w.acc[m].Slot]).Key, t.copied(v)) {
			return false
		}
	}
	return true
}

func (r *Range[K, V]) allBoxed(f *Frame, yield func(K, V) bool) {
	for _, b := range f.Reads {
		if b.Kind != r.kind {
			continue
		}
		for i, row := range b.Rows {
			if v, _ := unbox[V](row); !yield(b.Keys[i].(K), v) {
				return
			}
		}
	}
}

func (r *Range[K, V]) bind(workers int) { r.args = make([]arena.Slab[[2]K], workers) }
func (r *Range[K, V]) reset(worker int) { r.args[worker].Reset(true) }

func (r *Range[K, V]) bounds(worker int, arg uint32) (lo, hi any) {
	b := r.args[worker].Items[arg]
	return b[0], b[1]
}

// expand appends the rows of the interval.
func (r *Range[K, V]) expand(worker int, arg uint32, dst []uint32) []uint32 {
	b := r.args[worker].Items[arg]
	return r.table.rows.Range(dst, b[0], b[1])
}
