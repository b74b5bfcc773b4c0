// Package oracle is the specification: events run one after the other, each
// one's operations in declaration order, over plain maps. It is naive on
// purpose, shares nothing with the engine but the user's functions, and is what
// every fast path is compared with.
package oracle

import (
	"fmt"
	"sort"

	"github.com/heddle-stream/heddle/txn"
)

// Oracle runs an application's events serially.
type Oracle struct {
	app    *txn.App
	tables []map[any]any
	views  []txn.TableView

	events   int // run so far
	lastTime int64
	versions []map[any][]version // of tables with windows: all there ever were
}

// version is a value that a committed transaction left, or that it left none, and what was
// there before.
type version struct {
	seq, time   int64
	val, before txn.Boxed
}

// New returns an oracle that starts from the application's present state, before
// which events were run, the last of them at a time.
func New(app *txn.App, events int, lastTime int64) *Oracle {
	o := &Oracle{app: app, views: app.Tables(), events: events, lastTime: lastTime}
	for _, view := range o.views {
		rows := map[any]any{}
		view.All(func(k, v any) bool {
			rows[k] = v
			return true
		})
		o.tables = append(o.tables, rows)
		versions := map[any][]version{}
		view.AllVersions(func(key any, seq, time int64, val, before txn.Boxed) {
			versions[key] = append(versions[key], version{seq, time, val, before})
		})
		o.versions = append(o.versions, versions)
	}
	return o
}

// PanicError tells that a user function panicked.
type PanicError struct {
	What  string // "plan", "operation" or "result"
	Value any
}

func (e *PanicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.What, e.Value) }

// Event runs event i of the feed and returns its transaction and the byte form
// of its result. After a panic of a user function the state is as before the event.
func (o *Oracle) Event(f *txn.Feed, i int) (tx *txn.BoxedTxn, result []byte, err error) {
	what := "plan"
	undo := []func(){}
	defer func() {
		if r := recover(); r != nil {
			rollback(undo)
			err = &PanicError{what, r}
		}
	}()
	time, timed := o.app.Time(f, i)
	if timed && o.events > 0 && time < o.lastTime {
		panic(&txn.TimeError{Time: time, Before: o.lastTime})
	}
	tx = o.app.PlanBoxed(f, i)
	what = "operation"
	starts := o.starts(tx)
	for n := range tx.Steps {
		s := &tx.Steps[n]
		rows := o.tables[s.Table]
		for r := range s.Reads {
			o.read(tx, &s.Reads[r], starts, time)
		}
		if tx.Verdict = tx.Key(n); tx.Verdict == txn.OK {
			val, ok := rows[s.Key]
			s.Before = txn.Boxed{Val: val, Ok: ok}
			tx.Verdict = tx.Run(n)
		}
		if tx.Verdict != txn.OK {
			rollback(undo)
			undo = nil
			break
		}
		if !tx.Writes(n) {
			continue
		}
		undo = append(undo, func() { put(rows, s.Key, s.Before) })
		put(rows, s.Key, s.After)
	}
	what = "result"
	result = tx.Result(f, i)
	if tx.Verdict == txn.OK {
		o.record(tx, time)
	}
	o.events++
	o.lastTime = time
	return tx, result, nil
}

// record keeps the versions that a committed transaction left: of each key the
// last one.
func (o *Oracle) record(tx *txn.BoxedTxn, time int64) {
	seq := int64(o.events)
	for n := range tx.Steps {
		s := &tx.Steps[n]
		if !tx.Writes(n) || !o.views[s.Table].Windowed() {
			continue
		}
		all := o.versions[s.Table][s.Key]
		if len(all) > 0 && all[len(all)-1].seq == seq {
			continue
		}
		val, ok := o.tables[s.Table][s.Key]
		o.versions[s.Table][s.Key] = append(all, version{seq, time, txn.Boxed{Val: val, Ok: ok}, o.met(tx, s)})
	}
}

// met returns what the first step of a transaction on a step's key met.
func (o *Oracle) met(tx *txn.BoxedTxn, s *txn.BoxedStep) txn.Boxed {
	for i := range tx.Steps {
		if first := &tx.Steps[i]; first.Table == s.Table && first.Key == s.Key {
			return first.Before
		}
	}
	panic("unreachable")
}

// window fills in the versions that a window read sees, and what the key held before the
// first change there.
func (o *Oracle) window(r *txn.BoxedRead, now txn.Boxed, time int64) {
	r.InForce = now
	changed := false
	for _, v := range o.versions[r.Table][r.Key] {
		at, now := v.seq, int64(o.events)
		if r.Timed {
			at, now = v.time, time
		}
		if since := now - r.Length; since <= now && at < since { // more than all of the past is all of it
			continue
		}
		if !changed {
			r.InForce, changed = v.before, true
		}
		if v.val.Ok {
			r.Keys = append(r.Keys, at)
			r.Rows = append(r.Rows, v.val)
		}
	}
}

func put(rows map[any]any, key any, b txn.Boxed) {
	if b.Ok {
		rows[key] = b.Val
	} else {
		delete(rows, key)
	}
}

func rollback(undo []func()) {
	for i := len(undo) - 1; i >= 0; i-- {
		undo[i]()
	}
}

// startKey names a value before the transaction.
type startKey struct {
	table int
	key   any
}

// starts notes the values that reads at the start of the transaction see.
func (o *Oracle) starts(tx *txn.BoxedTxn) map[startKey]txn.Boxed {
	out := map[startKey]txn.Boxed{}
	var note func(reads []txn.BoxedRead)
	note = func(reads []txn.BoxedRead) {
		for _, r := range reads {
			if r.Start || r.Begins {
				val, ok := o.tables[r.Table][r.Key]
				out[startKey{r.Table, r.Key}] = txn.Boxed{Val: val, Ok: ok}
			}
			note(r.Sources)
		}
	}
	for _, s := range tx.Steps {
		note(s.Reads)
	}
	return out
}

// read fills in what a read sees at this point.
func (o *Oracle) read(tx *txn.BoxedTxn, r *txn.BoxedRead, starts map[startKey]txn.Boxed, time int64) {
	for i := range r.Sources {
		o.read(tx, &r.Sources[i], starts, time)
	}
	switch {
	case r.Window:
		o.window(r, starts[startKey{r.Table, r.Key}], time)
	case !tx.ReadKey(r):
		r.Rows = []txn.Boxed{{}}
	case r.Start:
		r.Rows = []txn.Boxed{starts[startKey{r.Table, r.Key}]}
	case r.Hi == nil:
		val, ok := o.tables[r.Table][r.Key]
		r.Rows = []txn.Boxed{{Val: val, Ok: ok}}
	default:
		less := o.views[r.Table].Less
		for k := range o.tables[r.Table] {
			if !less(k, r.Key) && less(k, r.Hi) {
				r.Keys = append(r.Keys, k)
			}
		}
		sort.Slice(r.Keys, func(i, j int) bool { return less(r.Keys[i], r.Keys[j]) })
		for _, k := range r.Keys {
			r.Rows = append(r.Rows, txn.Boxed{Val: o.tables[r.Table][k], Ok: true})
		}
	}
}

// Difference compares the final tables with those of the application and
// describes the first difference found, or returns "".
func (o *Oracle) Difference() string {
	for i, view := range o.views {
		want := o.tables[i]
		diff, seen := "", 0
		view.All(func(k, got any) bool {
			seen++
			v, ok := want[k]
			switch {
			case !ok:
				diff = fmt.Sprintf("table %s, key %v: expected no value, got %v", view.Name(), k, got)
			case string(view.AppendRow(nil, k, v)) != string(view.AppendRow(nil, k, got)):
				diff = fmt.Sprintf("table %s, key %v: expected %v, got %v", view.Name(), k, v, got)
			}
			return diff == ""
		})
		if diff != "" {
			return diff
		}
		if seen == len(want) {
			continue
		}
		got := map[any]bool{}
		view.All(func(k, _ any) bool {
			got[k] = true
			return true
		})
		for k, v := range want {
			if !got[k] {
				return fmt.Sprintf("table %s, key %v: expected %v, got no value", view.Name(), k, v)
			}
		}
	}
	return ""
}
