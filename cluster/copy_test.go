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

// A copy gets all rows of its group once, then those that changed, once in so many batches and once each; and
// nothing when it is released.
func TestCopiesGetWhatChanged(t *testing.T) {
	owners, err := reconfig.Even(2, []reconfig.Node{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	app := txn.New("counts")
	table := txn.NewTable[uint32, int64](app, "counts")
	var ours []uint32
	for k := range uint32(200) {
		table.Load(k, 0)
		if owners.GroupOf(reconfig.KeyHash(binary.AppendUvarint(nil, uint64(k)))) == 0 {
			ours = append(ours, k)
		}
	}
	count := txn.Update(table, "count", func(_ txn.Ctx, _ struct{}, v *int64) txn.Verdict { *v++; return txn.OK })
	event := txn.On(app, "touch", func(p *txn.Plan, k uint32) { count.At(p, k, struct{}{}) }, func(txn.Outcome, uint32) bool { return true })
	out := &sink{}
	n, err := NewNode(app, Options{Node: 0, Owners: owners, Refresh: 2, Engine: engine.Options{Workers: 1, Strategy: "serial"}}, out)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	feed, batch := app.NewFeed(), uint64(0)
	// step takes a batch of events, does all that can be done, and returns the rows that were copied.
	step := func(c Change, keys ...uint32) map[uint32]int {
		t.Helper()
		s := &Section{Batch: batch, Version: owners.Version(), Change: c}
		feed.Reset()
		for i, k := range keys {
			event.Push(feed, k)
			s.Actions = appendRun(s.Actions, uint64(i), feed.EventType(i), feed.AppendEvent(nil, i), nil)
			s.Count++
		}
		batch++
		if err := n.Handle(s); err != nil {
			t.Fatal(err)
		}
		for more := true; more; {
			if more, err = n.Work(); err != nil {
				t.Fatal(err)
			}
		}
		return out.copied()
	}
	expect := func(what string, rows map[uint32]int, times int, keys ...uint32) {
		t.Helper()
		sum := 0
		for _, k := range rows {
			sum += k
		}
		if sum != times*len(keys) {
			t.Errorf("%s: %d rows were sent", what, sum)
		}
		for _, k := range keys {
			if rows[k] != times {
				t.Errorf("%s: key %d was sent %d times", what, k, rows[k])
			}
		}
	}
	expect("no copy", step(Change{}, ours[0]), 0)
	copyIt := Change{Orders: []Order{{Copy, 0, 0, 1}}}
	expect("the base", step(copyIt), 1, ours...)
	expect("nothing changed", step(Change{}), 0)
	rows := step(Change{}, ours[1], ours[2], ours[1])
	for range 2 { // until a refresh is due
		for k, times := range step(Change{}) {
			rows[k] += times
		}
	}
	expect("what changed", rows, 1, ours[1], ours[2])
	for range 4 {
		expect("nothing changed", step(Change{}), 0)
	}
	sent := 0
	for range 6 {
		sent += step(Change{}, ours[5])[ours[5]]
	}
	if sent != 3 {
		t.Errorf("a row that changes in each of six batches was sent %d times, with a refresh in every second one", sent)
	}
	step(Change{Orders: []Order{{Release, 0, 0, 1}}}, ours[3])
	for range 4 {
		expect("released", step(Change{}, ours[4]), 0)
	}
	if err := n.set(&Row{Table: 1, Key: []byte{1}, Row: []byte{1, 1}}); err == nil {
		t.Error("a row of a table that is not there is taken")
	}
}

// Rows of a copy that was released may come late: they are not kept, and a copy that was ordered later is.
func TestLateRowsOfACopy(t *testing.T) {
	n := &Node{out: &sink{}, staged: newStaged()}
	rows := func(order uint64) {
		t.Helper()
		if err := n.stage(&CopyRows{From: 1, Group: 3, Order: order, Rows: []Row{{Key: []byte("k"), Row: []byte("kv")}}}); err != nil {
			t.Fatal(err)
		}
	}
	rows(5)
	if len(n.staged.of) != 1 {
		t.Fatal("a copy is not kept")
	}
	n.staged.forget(3, 8)
	rows(5)
	if len(n.staged.of) != 0 {
		t.Error("rows that came late are kept")
	}
	rows(9)
	rows(5)
	if s := n.staged.of[3]; s == nil || s.order != 9 || s.got != 1 {
		t.Errorf("the copy that was ordered later is %+v", s)
	}
}
