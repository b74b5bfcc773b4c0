package txn

import "fmt"

// Footprint finds out which keys a transaction names, without running it: for those who
// decide where it runs. One goroutine uses it; it does not touch tables.
type Footprint struct {
	app  *App
	plan Plan
	keys []NamedKey
	buf  []byte
	err  error
}

// NamedKey is a key that a transaction names.
type NamedKey struct {
	Table int    // its number
	Key   []byte // in byte form, valid until the next call of Of
	end   int
}

// ComputedError tells that the keys of a transaction are not all known from its event.
type ComputedError struct {
	Name string // of the operation or read
	What string // what it does with keys
}

func (e *ComputedError) Error() string {
	return fmt.Sprintf("%q %s, which is not known before the transaction runs", e.Name, e.What)
}

// NewFootprint returns one for events of the application.
func (a *App) NewFootprint() *Footprint {
	f := &Footprint{app: a, plan: Plan{app: a, mode: planKeys}}
	f.plan.footprint = f
	return f
}

// Of returns the keys that event i of the feed names, some perhaps twice, valid until the next
// call. It returns a [*ComputedError] when the event alone does not tell, and a [*PlanError] when the plan
// panics.
func (f *Footprint) Of(feed *Feed, i int) (keys []NamedKey, err error) {
	r := feed.refs[i]
	f.keys, f.buf, f.err = f.keys[:0], f.buf[:0], nil
	defer func() {
		if v := recover(); v != nil {
			err = &PlanError{newPanic(i, "plan", f.app.events[r.typ].Name(), v)}
		}
	}()
	f.plan.begin(uint32(i))
	f.app.events[r.typ].planOne(&f.plan, feed.id, r.place)
	f.plan.check()
	from := 0
	for k := range f.keys {
		f.keys[k].Key, from = f.buf[from:f.keys[k].end], f.keys[k].end
	}
	return f.keys, f.err
}

// PlanError is the panic of a plan.
type PlanError struct{ *Panic }

func (e *PlanError) Error() string { return fmt.Sprintf("plan %q panicked: %v", e.Name, e.Value) }

// computes notes that what a transaction names is not known.
func (f *Footprint) computes(name, what string) {
	if f.err == nil {
		f.err = &ComputedError{name, what}
	}
}

// name adds a key to the footprint of the event in hand.
func (t *Table[K, V]) nameKey(p *Plan, key K) {
	f := p.footprint
	f.buf = t.key.Append(f.buf, &key)
	f.keys = append(f.keys, NamedKey{Table: t.id, end: len(f.buf)})
}

// AppendRowOf adds the byte form of the row of a key, given in byte form, if there is one. Between
// batches.
func (v TableView) AppendRowOf(dst, key []byte) (row []byte, found bool, err error) {
	return v.t.appendRowOf(dst, key)
}

func (t *Table[K, V]) appendRowOf(dst, src []byte) ([]byte, bool, error) {
	key, err := t.decodeKey(src)
	if err != nil {
		return dst, false, err
	}
	rec, _ := t.rows.Find(key)
	if rec == nil || !rec.Present() {
		return dst, false, nil
	}
	return t.val.Append(append(dst, src...), &rec.Val), true, nil
}

// MarkChanged makes [Changes] take the row of a key, given in byte form, for one that changed, if there is one. Between batches.
func (v TableView) MarkChanged(key []byte) error { return v.t.markChanged(key) }

func (t *Table[K, V]) markChanged(src []byte) error {
	key, err := t.decodeKey(src)
	if err != nil {
		return err
	}
	if rec, row := t.rows.Find(key); rec != nil && rec.Present() {
		t.rows.Changing(row)
	}
	return nil
}

// KeyLen returns the length of the key at the front of the byte form of a row.
func (v TableView) KeyLen(row []byte) (int, error) { return v.t.keyLen(row) }

func (t *Table[K, V]) keyLen(row []byte) (int, error) {
	var key K
	rest, err := t.key.Decode(row, &key)
	return len(row) - len(rest), err
}
