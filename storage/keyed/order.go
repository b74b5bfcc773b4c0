package keyed

import (
	"cmp"

	"github.com/tidwall/btree"
)

// place is a key in the order of a table, with its local row.
type place[K comparable] struct {
	key K
	row uint32
}

// order keeps the keys of a table sorted, absent ones included, so that a range
// read finds the rows that this batch may fill.
type order[K comparable] struct {
	tree *btree.BTreeG[place[K]]
}

// NewOrdered returns an empty table whose keys can be read by range. It has one
// shard: one worker keeps the order.
func NewOrdered[K cmp.Ordered, V any]() *Table[K, V] {
	t := newTable[K, V](0)
	less := func(a, b place[K]) bool { return cmp.Less(a.key, b.key) }
	t.order = &order[K]{btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})}
	return t
}

// Ordered reports whether the table can be read by range.
func (t *Table[K, V]) Ordered() bool { return t.order != nil }

// Range appends to dst the rows with lo <= key < hi in key order, absent ones
// included. The table is ordered.
func (t *Table[K, V]) Range(dst []uint32, lo, hi K) []uint32 {
	end := place[K]{key: hi}
	less := t.order.tree.Less
	t.order.tree.Ascend(place[K]{key: lo}, func(p place[K]) bool {
		if !less(p, end) {
			return false
		}
		dst = append(dst, p.row)
		return true
	})
	return dst
}
