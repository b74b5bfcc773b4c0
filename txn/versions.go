package txn

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-stream/heddle/storage/history"
)

// This file is what a table does for its windows: it keeps versions when a batch
// is installed, and finds those that a window read sees, of which the older ones
// are kept and the newer ones stand in the chain of the batch.

// seriesAt names a series of a history.
type seriesAt struct{ shard, series uint32 }

// addWindow makes the table keep its versions for another window.
func (t *Table[K, V]) addWindow(r windowed, name string, span Span, where string) uint16 {
	t.app.declare("read", name, where)
	if span.length < 1 {
		t.app.fault(where, "window %q reaches back over nothing", name)
	}
	if t.folders != nil {
		t.app.fault(where, "table %q has commutative operations, and so no windows such as %q", t.name, name)
	}
	if t.hist == nil {
		t.hist = history.New[K, V](t.rows.ShardCount())
	}
	if span.timed {
		t.reachTime = max(t.reachTime, span.length)
		t.app.timed = append(t.app.timed, name)
	} else {
		t.reachSeq = max(t.reachSeq, span.length)
	}
	return t.app.addKind(&kind{name: name, table: t, win: r, span: span}, where) | kindRead | kindStart
}

// window lists a window read in a plan.
func (t *Table[K, V]) window(p *Plan, key K, kind uint16, name string) Arg {
	if p.app != t.app {
		panic("read " + name + " belongs to another application than the event")
	}
	if p.mode == planBoxed {
		return p.boxedRead(kind, key, nil)
	}
	switch p.mode {
	case planInPlace:
		_, row := t.rows.Ensure(key)
		return p.read(kind, row)
	case planAhead:
		t.rows.Fetch(key)
		return Arg{}
	case planCheck:
		return p.read(kind, 0)
	case planKeys:
		t.nameKey(p, key)
		p.footprint.computes(name, "looks at a window of versions")
		return p.read(kind, 0)
	}
	arg, id := p.addRead(kind, 0)
	t.touch(p, key, id)
	return arg
}

// versions returns what a window read sees, oldest first: versions from before
// the batch, the number of those of the key that are too old, which series they
// are, and versions of the batch. The latter are valid until the worker's next call.
// In a serial run id is the row.
func (t *Table[K, V]) versions(w *Worker, id uint32, span Span) (old []history.Version[V], first int, at seriesAt, fresh []history.Version[V]) {
	since := t.windowBegin(w, id, span)
	if !w.inPlace {
		fresh = t.freshVersions(w, id, span, since)
	}
	all, first, at := t.keptSince(w, id, span, since)
	return all[first:], first, at, fresh
}

// windowBegin returns the position at which a window read begins.
func (t *Table[K, V]) windowBegin(w *Worker, id uint32, span Span) int64 {
	event := w.plan.event
	if !w.inPlace {
		event = w.acc[id].Event
	}
	return back(w.batch.position(event, span), span.length)
}

// windowRow returns the row of a window read.
func (t *Table[K, V]) windowRow(w *Worker, id uint32) uint32 {
	if w.inPlace {
		return id
	}
	return t.rows.Rows[w.acc[id].Slot]
}

// keptSince returns the versions from before the batch that a window read's key has, the
// number of those that are too old, and which series they are.
func (t *Table[K, V]) keptSince(w *Worker, id uint32, span Span, since int64) (all []history.Version[V], first int, at seriesAt) {
	row := t.windowRow(w, id)
	at.shard = t.rows.ShardOf(row)
	all, at.series = t.hist.Series(int(at.shard), t.rows.At(row).Key)
	if span.timed {
		return all, history.SinceTime(all, since), at
	}
	return all, history.SinceSeq(all, since), at
}

// heldAt returns what the key of a window read held when the window begins.
func (t *Table[K, V]) heldAt(w *Worker, id uint32, span Span) (*V, bool) {
	since := t.windowBegin(w, id, span)
	if all, first, at := t.keptSince(w, id, span, since); first < len(all) {
		held := t.hist.Before(int(at.shard), at.series, first)
		return &held.Val, held.Ok
	}
	if w.inPlace {
		return t.beforeTransaction(w, id)
	}
	// Nothing from before the batch: what the first writer in the window saw, or the read.
	for p := w.src[id]; p != None && w.batch.position(w.acc[p].Event, span) >= since; p = w.src[p] {
		id = p
	}
	return t.load(w, id)
}

// beforeTransaction returns what a row held before the transaction under way of a serial
// run: what its first operation there met.
func (t *Table[K, V]) beforeTransaction(w *Worker, row uint32) (*V, bool) {
	for i, kind := range w.steps() {
		k := w.app.kinds[kind&kindIndex]
		if k.table.number() != t.id || k.op.rowOf(i) != row {
			continue
		}
		v, ok := k.op.(interface{ met(at int) (V, bool) }).met(i)
		return &v, ok
	}
	rec := t.rows.At(row)
	return &rec.Val, rec.Present()
}

// position returns what windows of the span tell of an event: its time or its
// number in the run.
func (x *Batch) position(event uint32, span Span) int64 {
	if span.timed {
		return x.Times[x.place(event)]
	}
	return int64(x.Number(event))
}

// freshVersions returns the versions of the batch that a window read sees, oldest
// first. The last one is what the read sees, and each writer saw the one before;
// the way back ends where the window does, since a batch may be much longer.
func (t *Table[K, V]) freshVersions(w *Worker, id uint32, span Span, since int64) []history.Version[V] {
	out := t.fresh[w.id].v[:0]
	event := None
	for p := w.src[id]; p != None; p = w.src[p] {
		a := &w.acc[p]
		if w.batch.position(a.Event, span) < since {
			break
		}
		if a.Event != event && (t.rows.Has[a.Slot] || t.inForce) {
			out = append(out, t.version(w.batch, a.Event, a.Slot))
		}
		event = a.Event
	}
	slices.Reverse(out)
	t.fresh[w.id].v = out
	return out
}

// record keeps the committed versions before the limit of the chain that ends
// with the access.
func (t *Table[K, V]) record(x *Batch, id, limit uint32) {
	var out []history.Version[V]
	event := None
	p := id
	if !x.Acc[id].Writes() {
		p = x.Acc[id].Pred
	}
	for ; p != None; p = x.Acc[p].Pred {
		a := &x.Acc[p]
		if a.Event >= limit || x.Fail[a.Event] != committed || a.Event == event {
			continue
		}
		event = a.Event
		if t.rows.Has[a.Slot] || t.inForce {
			out = append(out, t.version(x, event, a.Slot))
		}
	}
	if len(out) == 0 {
		return
	}
	slices.Reverse(out)
	slot := x.Acc[id].Slot
	row := t.rows.Rows[slot]
	var before history.Held[V]
	if t.inForce {
		v, ok := t.rows.Before(slot)
		before = history.Held[V]{Val: *v, Ok: ok}
	}
	t.hist.Append(int(t.rows.ShardOf(row)), t.rows.At(row).Key, before, out...)
}

// recordRow keeps the version that a committed transaction of a serial run left.
func (t *Table[K, V]) recordRow(w *Worker, x *Batch, event, row uint32) {
	rec, shard := t.rows.At(row), int(t.rows.ShardOf(row))
	v := versionOf[V](x, event)
	v.Val, v.Gone = rec.Val, !rec.Present()
	if last := t.hist.Last(shard, rec.Key); v.Gone && !t.inForce || last != nil && last.Seq == v.Seq {
		return // another operation of the transaction wrote the row, too
	}
	var before history.Held[V]
	if t.inForce {
		met, ok := t.beforeTransaction(w, row)
		before = history.Held[V]{Val: *met, Ok: ok}
	}
	t.hist.Append(shard, rec.Key, before, v)
}

// version returns the version in a slot, of an event.
func (t *Table[K, V]) version(x *Batch, event, slot uint32) history.Version[V] {
	v := versionOf[V](x, event)
	if v.Gone = !t.rows.Has[slot]; !v.Gone {
		v.Val = t.rows.Ver[slot]
	}
	return v
}

func versionOf[V any](x *Batch, event uint32) history.Version[V] {
	out := history.Version[V]{Seq: int64(x.Number(event))}
	if x.Times != nil {
		out.Time = x.Times[x.place(event)]
	}
	return out
}

func (t *Table[K, V]) windowed() bool { return t.hist != nil }

func (t *Table[K, V]) commutes() bool { return t.folders != nil }

// expire forgets what no window of an event with this number and time, or a
// later one, reaches.
func (t *Table[K, V]) expire(seq, time int64) {
	oldestSeq, oldestTime := int64(math.MaxInt64), int64(math.MaxInt64)
	if t.reachSeq > 0 {
		oldestSeq = back(seq, t.reachSeq)
	}
	if t.reachTime > 0 {
		oldestTime = back(time, t.reachTime)
	}
	t.hist.Expire(oldestSeq, oldestTime)
}

func (t *Table[K, V]) versionsKept() int {
	if t.hist == nil {
		return 0
	}
	return t.hist.Len()
}

// appendVersions adds all that a window read sees to dst.
func (t *Table[K, V]) appendVersions(dst []byte, w *Worker, id uint32, span Span) []byte {
	old, _, _, fresh := t.versions(w, id, span)
	for _, part := range [][]history.Version[V]{old, fresh} {
		for i := range part {
			if !part[i].Gone {
				dst = appendVersionTime(dst, versionAt(span, &part[i]))
				dst = t.val.Append(dst, &part[i].Val)
			}
		}
	}
	return dst
}

func appendVersionTime(dst []byte, at int64) []byte {
	return binary.AppendVarint(append(dst, 3), at)
}

// read returns the first read of a kind that the plan passed to the current
// operation, in a serial run its row.
func (c Ctx) read(kind uint16, name string) uint32 {
	w := c.w
	if w.inPlace {
		for _, r := range w.given() {
			if r.kind == kind {
				return r.at
			}
		}
		panic("read " + name + " was not passed to operation " + c.operation())
	}
	a := &w.acc[c.id]
	for _, local := range w.refs[a.Refs : a.Refs+uint32(a.NRefs)] {
		if id := w.base + local; w.acc[id].Kind == kind {
			return id
		}
	}
	panic("read " + name + " was not passed to operation " + c.operation())
}

// allBoxedVersions yields what the serial model found for a window.
func allBoxedVersions[V any](c Ctx, kind uint16, name string, yield func(int64, V) bool) {
	r := boxedWindow(c, kind, name)
	for i, row := range r.Rows {
		if !yield(r.Keys[i].(int64), row.Val.(V)) {
			return
		}
	}
}

// boxedWindow returns the window read of a kind that the current operation has.
func boxedWindow(c Ctx, kind uint16, name string) *BoxedRead {
	for i := range c.w.boxed.Reads {
		if r := &c.w.boxed.Reads[i]; r.Kind == kind&^kindStart {
			return r
		}
	}
	panic("read " + name + " was not passed to operation " + c.operation())
}

// back returns the position a length before at, or the first there is.
func back(at, length int64) int64 {
	if at < math.MinInt64+length {
		return math.MinInt64
	}
	return at - length
}

// Kept returns how many versions the tables keep for windows.
func (a *App) Kept() int {
	n := 0
	for _, t := range a.tables {
		n += t.versionsKept()
	}
	return n
}

// NeedsPreparing reports whether user functions run at the end of a batch: those of
// commutative operations and of folds.
func (x *Batch) NeedsPreparing() bool { return x.bound.prepares }

// ForgetVersions takes back what Record kept since the last Expire.
func (x *Batch) ForgetVersions() {
	for _, t := range x.bound.App.tables {
		t.forgetVersions()
	}
}

func (t *Table[K, V]) forgetVersions() {
	if t.hist != nil {
		t.hist.Forget()
	}
}

// Windowed reports whether a table keeps versions.
func (x *Batch) Windowed(table int) bool { return x.bound.App.tables[table].windowed() }

// Record keeps the versions of the row whose chain ends with the access, of events
// before the limit, for windows of later ones. Rows of different shards may be
// recorded in parallel.
func (x *Batch) Record(id, limit uint32) { x.tableAt(id).record(x, id, limit) }

// Expire forgets versions that no window can reach after the first done events of
// the batch.
func (x *Batch) Expire(done int) {
	if done == 0 {
		return
	}
	time := int64(0)
	if x.Times != nil {
		time = x.Times[done-1]
	}
	x.bound.Expire(x.First+done, time)
}

// Expire forgets versions that no window can reach after so many events, the last
// of them at the given event time.
func (b *Bound) Expire(events int, time int64) {
	for _, t := range b.App.tables {
		if t.windowed() {
			t.expire(int64(events), time)
		}
	}
}

// EventTime gives the time of an event, for windows that go by time. Times must
// not decrease from event to event.
func EventTime[E, R any](of func(event E) int64) EventOption[E, R] {
	return func(ev *Event[E, R]) { ev.time = of }
}

// TimeError tells that event time went back.
type TimeError struct{ Time, Before int64 }

func (e *TimeError) Error() string {
	return fmt.Sprintf("event time %d after %d: windows by time need events in the order of their times", e.Time, e.Before)
}

// timeOf returns the time of event i of a feed.
func (a *App) timeOf(f *Feed, i int) int64 {
	r := f.refs[i]
	return a.events[r.typ].timeOf(f.id, r.place)
}

// openTimes notes the times of the batch's events and cuts it before one whose
// time is less than that of the event before.
func (x *Batch) openTimes() {
	b := x.bound
	x.Cut, x.Times = nil, nil
	if len(b.App.timed) == 0 {
		return
	}
	x.times = x.times[:0]
	e := 0
	defer func() {
		if r := recover(); r != nil {
			x.Cut = newPanic(e, "plan", x.EventName(e), r)
			x.Events, x.Times = e, x.times
		}
	}()
	for ; e < x.Events; e++ {
		t := b.App.timeOf(x.feed, e)
		if b.begun && t < b.lastTime {
			x.Cut = newPanic(e, "plan", x.EventName(e), &TimeError{t, b.lastTime})
			x.Events = e
			break
		}
		x.times = append(x.times, t)
		b.lastTime, b.begun = t, true
	}
	x.Times = x.times
}
