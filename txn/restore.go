package txn

import "fmt"

// Reset removes all rows, so that another state can be loaded. Only before the
// application runs.
func (v TableView) Reset() { v.t.reset() }

// LoadRow sets a row from the byte form that AppendRow and Rows give, which must
// be all of src.
func (v TableView) LoadRow(src []byte) error { return v.t.loadRow(src) }

func (t *Table[K, V]) reset() { t.rows.Reset() }

func (t *Table[K, V]) loadRow(src []byte) error {
	var key K
	var val V
	rest, err := t.key.Decode(src, &key)
	if err == nil {
		rest, err = t.val.Decode(rest, &val)
	}
	if err != nil {
		return fmt.Errorf("row of table %s: %w", t.name, err)
	}
	if len(rest) != 0 {
		return fmt.Errorf("row of table %s: %d bytes too many", t.name, len(rest))
	}
	t.rows.Load(key, val)
	return nil
}

// EventNames returns the names of the event types in declaration order.
func (a *App) EventNames() []string {
	out := make([]string, len(a.events))
	for i, ev := range a.events {
		out[i] = ev.Name()
	}
	return out
}

// CopyTo puts event i behind those of dst.
func (f *Feed) CopyTo(dst *Feed, i int) {
	r := f.refs[i]
	f.app.events[r.typ].move(f.id, r.place, dst)
}

// RegionCount returns in how many parts the batch is planned.
func (x *Batch) RegionCount() int { return len(x.plans) }
