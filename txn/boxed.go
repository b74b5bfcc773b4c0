package txn

// This file is the slow way into an application: values in interfaces, one
// operation at a time. The serial model in internal/oracle is written on it, so
// that it shares with the engine the user's functions and nothing else.

import "github.com/zeebo/xxh3"

// Boxed is a value in an interface, or the absence of one.
type Boxed struct {
	Val any
	Ok  bool
}

func unbox[V any](b Boxed) (V, bool) {
	if !b.Ok {
		var zero V
		return zero, false
	}
	return b.Val.(V), true
}

// BoxedRead is a read of an operation: a key, or an interval when Hi is set.
type BoxedRead struct {
	Kind  uint16 // the number of the handle
	Table int
	Start bool
	Key   any
	Hi    any
	Keys  []any   // of an interval, sorted; filled by whoever runs the step
	Rows  []Boxed // one value, or one for each of Keys

	Window  bool  // of versions, whose numbers or times go into Keys
	Timed   bool  // the window goes by event time
	Length  int64 // how far back it goes
	Begins  bool  // it wants InForce: what the key held when the window begins
	InForce Boxed

	late    bool // the key is to be computed, see ReadKey
	arg     any
	Sources []BoxedRead // what the key is computed from
}

// BoxedStep is one operation of a transaction. Before and After are filled by
// whoever runs it.
type BoxedStep struct {
	kind          uint16
	Table         int
	Name          string
	Key, Arg      any
	Reads         []BoxedRead
	Before, After Boxed
	Delta         any // of a commutative operation
}

// Frame is what an operation's function sees of a boxed run.
type Frame = BoxedTxn

// BoxedTxn is an event's transaction as a list of steps.
type BoxedTxn struct {
	app     *App
	Steps   []BoxedStep
	Ran     int     // steps whose function was called
	Verdict Verdict // of the whole
	Reads   []BoxedRead
	Current Access // kind of the running step
	Delta   any    // what the running step merged
	pending []BoxedRead
}

// step records an operation; reads were recorded in order of their ids.
func (p *Plan) step(kind uint16, key, arg any, reads []Arg) {
	f := p.frame
	s := BoxedStep{kind: kind, Table: f.app.tableOf(kind), Name: f.app.kinds[kind&kindIndex].name, Key: key, Arg: arg}
	for _, r := range reads {
		s.Reads = append(s.Reads, f.pending[r.id])
	}
	f.Steps = append(f.Steps, s)
}

func (p *Plan) boxedRead(kind uint16, key, hi any) Arg {
	f := p.frame
	r := BoxedRead{
		Kind: kind & (kindRead | kindRange | kindIndex), Table: f.app.tableOf(kind), Start: kind&kindStart != 0, Key: key, Hi: hi,
	}
	if k := f.app.kinds[kind&kindIndex]; k.win != nil {
		r.Start, r.Window, r.Timed, r.Length, r.Begins = false, true, k.span.timed, k.span.length, k.inForce
	}
	f.pending = append(f.pending, r)
	return Arg{uint32(len(f.pending) - 1), kind}
}

func (p *Plan) boxedLateRead(kind uint16, arg any, reads []Arg) Arg {
	at := p.boxedRead(kind, nil, nil)
	r := &p.frame.pending[at.id]
	r.late, r.arg = true, arg
	for _, source := range reads {
		r.Sources = append(r.Sources, p.frame.pending[source.id])
	}
	return at
}

// ReadKey sets the key of a read that computes it from its sources, which are
// filled in, and reports whether there is one.
func (tx *BoxedTxn) ReadKey(r *BoxedRead) bool {
	if !r.late {
		return true
	}
	tx.Reads, tx.Current = r.Sources, Access{Kind: r.Kind}
	key, v := tx.app.kinds[r.Kind&kindIndex].late.boxedKey(tx, r.arg)
	r.Key = key
	return v == OK
}

// Key sets the key of step i, if it is one that computes it from its reads,
// which are filled in. A verdict other than OK is that of the step.
func (tx *BoxedTxn) Key(i int) Verdict {
	s := &tx.Steps[i]
	if s.kind&kindLate == 0 {
		return OK
	}
	tx.Reads, tx.Ran, tx.Current = s.Reads, i+1, Access{Kind: s.kind}
	key, v := tx.app.kinds[s.kind&kindIndex].late.boxedKey(tx, s.Arg)
	if v == OK {
		s.Key = key
	}
	return v
}

func (a *App) tableOf(kind uint16) int { return a.kinds[kind&kindIndex].table.number() }

// PlanBoxed runs the plan of event i of the feed.
func (a *App) PlanBoxed(f *Feed, i int) *BoxedTxn {
	tx := &BoxedTxn{app: a}
	p := &Plan{app: a, mode: planBoxed, frame: tx}
	r := f.refs[i]
	a.events[r.typ].planOne(p, f.id, r.place)
	return tx
}

// Run calls the function of step i, whose Before and whose reads are filled in,
// and sets After. It does not touch any table.
func (tx *BoxedTxn) Run(i int) Verdict {
	s := &tx.Steps[i]
	tx.Reads, tx.Ran = s.Reads, i+1
	tx.Current = Access{Kind: s.kind}
	after, stays, v := tx.app.kinds[s.kind&kindIndex].op.boxed(tx, s.Arg, s.Before.Val, s.Before.Ok)
	if v == OK {
		s.After, s.Delta = Boxed{after, stays}, tx.Delta
	}
	return v
}

func (o *Op[K, V, A]) boxed(f *Frame, arg any, before any, present bool) (any, bool, Verdict) {
	var in, out V
	if present {
		in = before.(V)
	}
	w := &Worker{app: o.app, plan: &noPlan, boxed: f}
	a := arg.(A)
	stays, v := o.apply(w, 0, &a, &in, present, &out)
	return out, stays, v
}

// Writes reports whether step i makes a version.
func (tx *BoxedTxn) Writes(i int) bool { return tx.Steps[i].kind&kindPassive == 0 }

// SeenHash returns the fingerprint of the values that the steps saw, those that
// ran: equal to what the engine computes for the same transaction.
func (tx *BoxedTxn) SeenHash() uint64 {
	h := uint64(0)
	for i := range tx.Steps[:tx.Ran] {
		s := &tx.Steps[i]
		// A commutative operation does not see the value that it changes.
		buf := tx.app.tables[s.Table].appendSeen(nil, s.Before.Val, s.Before.Ok && s.kind&kindDelta == 0)
		for _, r := range s.Reads {
			t := tx.app.tables[r.Table]
			for j, row := range r.Rows {
				if r.Window {
					buf = t.appendValueBoxed(appendVersionTime(buf, r.Keys[j].(int64)), row.Val)
					continue
				}
				if r.Hi != nil {
					buf = t.appendKeyBoxed(append(buf, 2), r.Keys[j])
					buf = t.appendValueBoxed(buf, row.Val)
					continue
				}
				buf = t.appendSeen(buf, row.Val, row.Ok)
			}
			if r.Begins {
				buf = t.appendSeen(buf, r.InForce.Val, r.InForce.Ok)
			}
		}
		h = chainHash(h, xxh3.Hash(buf))
	}
	return h
}

// Time returns the event time of event i of the feed, and false when no window
// of the application goes by time.
func (a *App) Time(f *Feed, i int) (int64, bool) {
	if len(a.timed) == 0 {
		return 0, false
	}
	return a.timeOf(f, i), true
}

// AllVersions calls yield with each version that the table keeps for windows, those of a
// key oldest first, with what the key held before.
func (v TableView) AllVersions(yield func(key any, seq, time int64, val, before Boxed)) {
	v.t.allVersions(yield)
}

func (t *Table[K, V]) allVersions(yield func(key any, seq, time int64, val, before Boxed)) {
	if t.hist == nil {
		return
	}
	box := func(v V, ok bool) Boxed {
		if !ok {
			return Boxed{}
		}
		return Boxed{Val: t.copied(&v), Ok: true}
	}
	for key, v := range t.hist.All() {
		yield(key, v.Seq, v.Time, box(v.Val, !v.Gone), box(v.Before.Val, v.Before.Ok))
	}
}

// Windowed reports whether the table keeps versions.
func (v TableView) Windowed() bool { return v.t.windowed() }

// Result runs the result function of event i of the feed on the transaction's
// outcome and returns its byte form, nil when the event type has none.
func (tx *BoxedTxn) Result(f *Feed, i int) []byte {
	w := &Worker{app: tx.app, plan: &noPlan, boxed: tx}
	r := f.refs[i]
	ev := tx.app.events[r.typ]
	if !ev.wantsResults() {
		return nil
	}
	return ev.boxedResult(w, f.id, r.place)
}

func (ev *Event[E, R]) boxedResult(w *Worker, feed int, place uint32) []byte {
	r := ev.result(Outcome{w, 0}, ev.feeds[feed][place])
	return ev.output.Append(nil, &r)
}

func (t *Table[K, V]) appendKeyBoxed(dst []byte, key any) []byte {
	k := key.(K)
	return t.key.Append(dst, &k)
}

func (t *Table[K, V]) appendValueBoxed(dst []byte, val any) []byte {
	v := val.(V)
	return t.val.Append(dst, &v)
}

// TableView is a table without its types, for oracles, tools and hashes. Only
// between batches.
type TableView struct{ t tableRuntime }

// Tables returns the application's tables in declaration order.
func (a *App) Tables() []TableView {
	out := make([]TableView, len(a.tables))
	for i, t := range a.tables {
		out[i] = TableView{t}
	}
	return out
}

// Name returns the declared name.
func (v TableView) Name() string { return v.t.Name() }

// RowsAllocated returns the number of rows.
func (v TableView) RowsAllocated() int { return v.t.rowsAllocated() }

// All calls yield with each present key and its value.
func (v TableView) All(yield func(key, val any) bool) { v.t.allBoxed(yield) }

// Less orders the keys of an ordered table.
func (v TableView) Less(a, b any) bool { return v.t.lessBoxed(a, b) }

// AppendRow adds the byte form of a row: its key, then its value.
func (v TableView) AppendRow(dst []byte, key, val any) []byte {
	return v.t.appendValueBoxed(v.t.appendKeyBoxed(dst, key), val)
}

// Rows calls yield with the byte form of each present row; the bytes are valid
// during the call.
func (v TableView) Rows(yield func(row []byte) bool) { v.t.encodedRows(yield) }

func (t *Table[K, V]) allBoxed(yield func(key, val any) bool) {
	for k, v := range t.All() {
		if !yield(k, v) {
			return
		}
	}
}

func (t *Table[K, V]) encodedRows(yield func(row []byte) bool) {
	var buf []byte
	for k, v := range t.rows.All() {
		buf = t.val.Append(t.key.Append(buf[:0], &k), v)
		if !yield(buf) {
			return
		}
	}
}

func (t *Table[K, V]) lessBoxed(a, b any) bool { return t.less(a.(K), b.(K)) }

func (t *Table[K, V]) number() int { return t.id }
