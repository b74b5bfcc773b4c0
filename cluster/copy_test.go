package cluster

import (
	"encoding/binary"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/txn"
)

// sink keeps what a node sends.
type sink struct{ all []Message }

func (s *sink) Send(_ reconfig.Node, m Message) error {
	s.all = append(s.all, m)
	return nil
}

// copied returns the rows of copies that were sent since the last time, by key.
func (s *sink) copied() (rows map[uint32]int) {
	rows = map[uint32]int{}
	for _, m := range s.all {
		if c, ok := m.(*CopyRows); ok {
			for _, r := range c.Rows {
				k, _ := binary.Uvarint(r.Key)
				rows[uint32(k)]++
			}
		}
	}
	s.all = nil
	return rows
}

// owner is a node that owns group 0 of two, with counts to touch.
type owner struct {
	*Node
	t      *testing.T
	out    sink
	app    *txn.App
	event  *txn.Event[uint32, bool]
	owners *reconfig.Owners
	keys   []uint32 // of its group
	batch  uint64
}

func newOwner(t *testing.T) *owner {
	t.Helper()
	o := &owner{t: t, app: txn.New("counts")}
	var err error
	if o.owners, err = reconfig.Even(2, []reconfig.Node{0, 1}); err != nil {
		t.Fatal(err)
	}
	table := txn.NewTable[uint32, int64](o.app, "counts")
	for k := range uint32(200) {
		table.Load(k, 0)
		if o.owners.GroupOf(reconfig.KeyHash(binary.AppendUvarint(nil, uint64(k)))) == 0 {
			o.keys = append(o.keys, k)
		}
	}
	count := txn.Update(table, "count", func(_ txn.Ctx, _ struct{}, v *int64) txn.Verdict { *v++; return txn.OK })
	o.event = txn.On(o.app, "touch", func(p *txn.Plan, k uint32) { count.At(p, k, struct{}{}) }, func(txn.Outcome, uint32) bool { return true })
	options := Options{Node: 0, Owners: o.owners, Refresh: 2, Engine: engine.Options{Workers: 1, Strategy: "serial"}}
	if o.Node, err = NewNode(o.app, options, &o.out); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// step takes a batch of events, does all that can be done, and returns the rows that were copied.
func (o *owner) step(c Change, keys ...uint32) map[uint32]int {
	o.t.Helper()
	s := &Section{Batch: o.batch, Version: o.owners.Version(), Change: c}
	feed := o.app.NewFeed()
	for i, k := range keys {
		o.event.Push(feed, k)
		s.Actions = appendRun(s.Actions, uint64(i), feed.EventType(i), feed.AppendEvent(nil, i), nil)
		s.Count++
	}
	o.batch++
	err := o.Handle(s)
	for more := true; more && err == nil; {
		more, err = o.Work()
	}
	if err != nil {
		o.t.Fatal(err)
	}
	return o.out.copied()
}

func (o *owner) expect(what string, rows map[uint32]int, keys ...uint32) {
	o.t.Helper()
	sum := 0
	for _, times := range rows {
		sum += times
	}
	if sum != len(keys) {
		o.t.Errorf("%s: %d rows were sent", what, sum)
	}
	for _, k := range keys {
		if rows[k] != 1 {
			o.t.Errorf("%s: key %d was sent %d times", what, k, rows[k])
		}
	}
}

// A copy gets all rows of its group once, then those that changed, once in so many batches and once each; and
// nothing when it is released.
func TestCopiesGetWhatChanged(t *testing.T) {
	o := newOwner(t)
	keys := o.keys
	o.expect("no copy", o.step(Change{}, keys[0]))
	o.expect("the base", o.step(Change{Orders: []Order{{Copy, 0, 0, 1}}}), keys...)
	o.expect("nothing changed", o.step(Change{}))
	rows := o.step(Change{}, keys[1], keys[2], keys[1])
	for range 2 { // until a refresh is due
		for k, times := range o.step(Change{}) {
			rows[k] += times
		}
	}
	o.expect("what changed", rows, keys[1], keys[2])
	for range 4 {
		o.expect("nothing changed", o.step(Change{}))
	}
	sent := 0
	for range 6 {
		sent += o.step(Change{}, keys[5])[keys[5]]
	}
	if sent != 3 {
		t.Errorf("a row that changes in each of six batches was sent %d times, with a refresh in every second one", sent)
	}
	o.step(Change{Orders: []Order{{Release, 0, 0, 1}}}, keys[3])
	for range 4 {
		o.expect("released", o.step(Change{}, keys[4]))
	}
}

func TestRowsOfTablesThatThereAreNot(t *testing.T) {
	if err := newOwner(t).put(&Row{Table: 1, Key: []byte{1}, Row: []byte{1, 1}}); err == nil {
		t.Error("a row of a table that is not there is taken")
	}
}

// Rows of a copy that was released may come late: they are not kept, and a copy that was ordered later is.
func TestLateRowsOfACopy(t *testing.T) {
	n := newOwner(t)
	count := func() (rows int) {
		n.tables[0].Rows(func([]byte) bool { rows++; return true })
		return rows
	}
	had := count()
	rows := func(order uint64, keys ...byte) {
		t.Helper()
		m := &CopyRows{From: 1, Group: 1, Order: order}
		for _, k := range keys { // that are none of the table
			m.Rows = append(m.Rows, Row{Key: []byte{k, 3}, Row: []byte{k, 3, 2}})
		}
		if err := n.stage(m); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, rows int) {
		t.Helper()
		if got := count() - had; got != rows {
			t.Errorf("%s: %d rows are kept, want %d", what, got, rows)
		}
	}
	rows(5, 200, 201)
	expect("a copy", 2)
	if err := n.release(1, 8); err != nil {
		t.Fatal(err)
	}
	expect("released", 0)
	rows(5, 200, 201)
	expect("rows that came late", 0)
	rows(9, 200)
	rows(5, 201)
	expect("one that was ordered later", 1)
	if s := n.staged.of[1]; s == nil || s.order != 9 || s.got != 1 {
		t.Errorf("the copy that was ordered later is %+v", s)
	}
	rows(10, 202, 203)
	expect("one in its place", 2)
}
