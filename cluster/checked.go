package cluster

import (
	"fmt"

	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
)

// What stands here is checked in builds with the tag invariants alone.

// mayWrite returns why the node may not execute a transaction now, if it may not: a row of it that is not here, or of a group
// that is another node's by the owners that the node goes by, the version of which is the token of its writes.
func (n *Node) mayWrite(a *action) error {
	keys, err := n.keysOf(a)
	if err != nil {
		return err
	}
	for _, k := range keys {
		t := token{k.Table, reconfig.KeyHash(k.Key)}
		g, s := n.owners.GroupOf(t.hash), n.slots[t]
		switch {
		case s != nil && s.here: // lent to us
		case n.arriving[g]:
			return fmt.Errorf("node %d, owners of version %d: key group %d of event %d is not here yet", n.id, n.owners.Version(), g, a.seq)
		case s != nil && s.lent:
			return fmt.Errorf("node %d: a row of event %d is lent", n.id, a.seq)
		case n.owners.Of(g) != n.id && !n.isLeaving(g):
			return fmt.Errorf("node %d, owners of version %d: key group %d of event %d is node %d's", n.id, n.owners.Version(), g, a.seq, n.owners.Of(g))
		}
	}
	return nil
}

// isLeaving reports whether a group is still here for what stood before its departure.
func (n *Node) isLeaving(g reconfig.Group) bool {
	for i := range n.leaving {
		for _, other := range n.leaving[i].groups {
			if other == g {
				return true
			}
		}
	}
	return false
}

// groupSum returns the hash of all rows of a group that are here.
func (n *Node) groupSum(g reconfig.Group) storage.Hash {
	var sum storage.Hash
	for table, row := range storage.Snapshot(n.app) {
		prefix := len(joinKey(table, nil))
		if size, err := n.tables[table].KeyLen(row[prefix:]); err == nil && n.groupOf(row[prefix:prefix+size]) == g {
			sum.Add(row)
		}
	}
	return sum
}
