package txn

import (
	"cmp"
	"iter"

	"github.com/heddle-stream/heddle/internal/arena"
)

// Arg is a read that a plan made, to be passed to the operations that look at it.
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
}

// NewParam declares a read handle. One handle may stand for several keys of
// one operation.
func NewParam[K comparable, V any](t *Table[K, V], name string) *Param[K, V] {
	where := caller()
	r := &Param[K, V]{app: t.app, table: t, name: name}
	t.app.declare("read", name, where)
	r.kind = t.app.addKind(&kind{name: name, table: t, load: r}, where) | kindRead
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
	if p.app != r.app {
		panic("read " + r.name + " belongs to another application than the event")
	}
	if p.mode == planBoxed {
		return p.boxedRead(kind, key, nil)
	}
	id, a := p.addRead(kind, 0)
	if p.mode != planInPlace {
		r.table.touch(p, key, id)
		return Arg{id, kind}
	}
	rec, row := r.table.rows.Ensure(key)
	a.Slot = row
	if kind&kindStart != 0 {
		a.Arg = r.table.hold(rec.Val, rec.Present())
		if p.ops > 0 {
			r.holdEarlier(p, a)
		}
	}
	return Arg{id, kind}
}

// holdEarlier corrects what a read at the start sees in a transaction whose
// operations run as they are listed: what the first of them on the row met.
func (r *Param[K, V]) holdEarlier(p *Plan, a *Access) {
	ran := p.acc[p.txFirst:max(p.ran, p.txFirst)]
	for i := range ran {
		b := &ran[i]
		if k := p.app.kinds[b.Index()]; b.Kind&kindRead == 0 && b.Slot == a.Slot && k.table == tableRuntime(r.table) {
			held := &r.table.held[a.Arg]
			held.val, held.ok = k.op.(interface {
				met(share int, at uint32) (V, bool)
			}).met(p.worker, b.Arg)
			return
		}
	}
}

// Get returns the value of the handle's first key in the current operation, and
// whether there was one. It panics when the plan passed no such read.
func (r *Param[K, V]) Get(c Ctx) (V, bool) {
	w := c.w
	if w.boxed != nil {
		return r.getBoxed(c)
	}
	a := &w.acc[c.id]
	for _, local := range w.refs[a.Refs : a.Refs+uint32(a.NRefs)] {
		id := w.base + local
		b := &w.acc[id]
		if b.Kind&(kindRead|kindIndex) != r.kind {
			continue
		}
		v, ok := r.table.see(w, id, b)
		if !ok {
			var zero V
			return zero, false
		}
		if r.table.clone != nil {
			return r.table.clone(*v), true
		}
		return *v, true
	}
	r.notPassed(c)
	panic("unreachable")
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
		a := &w.acc[c.id]
		for _, local := range w.refs[a.Refs : a.Refs+uint32(a.NRefs)] {
			id := w.base + local
			if w.acc[id].Kind&(kindRead|kindIndex) != r.kind {
				continue
			}
			var out V
			v, ok := r.table.load(w, id)
			if ok {
				out = r.table.copied(v)
			}
			if !yield(out, ok) {
				return
			}
		}
	}
}

// hold keeps the value at the start of the transaction for a serial run.
func (r *Param[K, V]) hold(w *Worker, id uint32) {
	a := &w.acc[id]
	rec := r.table.rows.At(a.Slot)
	a.Arg = r.table.hold(rec.Val, rec.Present())
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
	args := &r.args[p.worker]
	id, _ := p.addRead(r.kind, uint32(len(args.Items)))
	args.Items = append(args.Items, [2]K{lo, hi})
	reads := &r.table.ranges[p.worker]
	reads.ids = append(reads.ids, id)
	return Arg{id, r.kind}
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
		a := &w.acc[c.id]
		for _, local := range w.refs[a.Refs : a.Refs+uint32(a.NRefs)] {
			if id := w.base + local; w.acc[id].Kind == r.kind && !r.interval(w, id, yield) {
				return
			}
		}
	}
}

func (r *Range[K, V]) interval(w *Worker, id uint32, yield func(K, V) bool) bool {
	t := r.table
	a := &w.acc[id]
	if w.inPlace {
		// Nested iterations share the buffer like a stack.
		from := len(t.rowBuf)
		t.rowBuf = r.expand(w.share, a.Arg, t.rowBuf)
		defer func() { t.rowBuf = t.rowBuf[:from] }()
		for i := from; i < len(t.rowBuf); i++ {
			rec := t.rows.At(t.rowBuf[i])
			if rec.Present() && !yield(rec.Key, t.copied(&rec.Val)) {
				return false
			}
		}
		return true
	}
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
