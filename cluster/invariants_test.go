package cluster

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/invariants"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
)

// touchOf is an action that touches a key.
func (o *owner) touchOf(k uint32) *action {
	feed := o.app.NewFeed()
	o.event.Push(feed, k)
	return &action{seq: 7, typ: feed.EventType(0), event: feed.AppendEvent(nil, 0)}
}

// others returns keys of the group that is not the owner's.
func (o *owner) others(n int) (keys []uint32) {
	for k := uint32(0); len(keys) < n; k++ {
		if o.owners.GroupOf(reconfig.KeyHash(binary.AppendUvarint(nil, uint64(k)))) == 1 {
			keys = append(keys, k)
		}
	}
	return keys
}

// I4: a node writes rows of groups alone that are its own by the owners of the batch and here; in checked builds each
// transaction is looked at.
func TestI4OneWriter(t *testing.T) {
	o := newOwner(t)
	if err := o.mayWrite(o.touchOf(o.keys[0])); err != nil {
		t.Error(err)
	}
	if err := o.mayWrite(o.touchOf(o.others(1)[0])); err == nil || !strings.Contains(err.Error(), "is node 1's") {
		t.Errorf("a key of another node: %v", err)
	}
	o.arriving[0] = true
	if err := o.mayWrite(o.touchOf(o.keys[0])); err == nil || !strings.Contains(err.Error(), "not here yet") {
		t.Errorf("a key of a group that arrives: %v", err)
	}
	o.arriving[0] = false
	if !invariants.Enabled {
		t.Log("that every transaction is looked at needs -tags invariants")
		return
	}
	s := &Section{Version: o.owners.Version(), Count: 1}
	a := o.touchOf(o.others(1)[0])
	s.Actions = appendRun(nil, 1, a.typ, a.event, nil)
	if err := o.Handle(s); err == nil || !strings.Contains(err.Error(), "is node 1's") {
		t.Errorf("a transaction of another node: %v", err)
	}
}

// I7, I14: what names keys of a group on its way waits, from the batch on with which it moves, and nothing else does. It is
// done in its order when the group is there.
func TestI7OnlyTheGroupOnItsWayWaits(t *testing.T) {
	o := newOwner(t)
	theirs := o.others(3)
	var err error
	if o.owners, err = o.owners.Moved([]reconfig.Move{{Group: 1, From: 1, To: 0}}); err != nil {
		t.Fatal(err)
	}
	done := func() (seqs []uint64) {
		for _, m := range o.out.all {
			if r, is := m.(*Results); is {
				for i := range r.Results {
					seqs = append(seqs, r.Results[i].Seq)
				}
			}
		}
		o.out.all = nil
		return seqs
	}
	section := func(c Change, first uint64, keys ...uint32) {
		t.Helper()
		s := &Section{Batch: o.batch, Version: o.owners.Version(), Change: c, Count: len(keys)}
		for i, k := range keys {
			a := o.touchOf(k)
			s.Actions = appendRun(s.Actions, first+uint64(i), a.typ, a.event, nil)
		}
		o.batch++
		if err := o.Handle(s); err != nil {
			t.Fatal(err)
		}
	}
	section(Change{Moves: []reconfig.Move{{Group: 1, From: 1, To: 0}}}, 0, o.keys[0], theirs[0], o.keys[1], theirs[1], theirs[0])
	if got := done(); !slices.Equal(got, []uint64{0, 2}) {
		t.Errorf("%v are done, of which 1, 3 and 4 have to wait", got)
	}
	section(Change{}, 5, theirs[2], o.keys[0], o.keys[2])
	if got := done(); !slices.Equal(got, []uint64{6, 7}) || o.Held() != 4 {
		t.Errorf("%v are done and %d wait", got, o.Held())
	}
	image := &Image{From: 1, Group: 1, Version: o.owners.Version()}
	var sum storage.Hash
	for _, k := range o.others(60) {
		key := binary.AppendUvarint(nil, uint64(k))
		row := binary.AppendVarint(slices.Clone(key), 10)
		image.Rows = append(image.Rows, Row{0, key, row})
		sum.Add(append([]byte{0}, row...))
	}
	if image.Sum = sum; invariants.Enabled { // I13: what comes is what went
		wrong := *image
		wrong.Rows = wrong.Rows[1:]
		n := newOwner(t)
		n.arriving[1], n.arrivals[1] = true, 1
		if err := n.install(&wrong); err == nil || !strings.Contains(err.Error(), "is not what it was at node 1") {
			t.Errorf("a group that lost a row: %v", err)
		}
	}
	if err := o.Handle(image); err != nil {
		t.Fatal(err)
	}
	if got := done(); !slices.Equal(got, []uint64{1, 3, 5, 4}) && !slices.Equal(got, []uint64{1, 3, 4, 5}) || o.Held() != 0 {
		t.Errorf("%v are done when the group is there, %d wait", got, o.Held())
	}
	for k, want := range map[uint32]int64{theirs[0]: 12, theirs[1]: 11, theirs[2]: 11, o.keys[0]: 2} {
		key := binary.AppendUvarint(nil, uint64(k))
		if r, err := o.row(0, key); err != nil || !slices.Equal(r.Row, binary.AppendVarint(key, want)) {
			t.Errorf("key %d is %x, %v; want %d", k, r.Row, err, want)
		}
	}
}
