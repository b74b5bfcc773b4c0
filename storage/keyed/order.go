package keyed

import (
	"cmp"

	"github.com/tidwall/btree"
)

// order keeps the keys of a table sorted, absent ones included, so that a range
// read finds the rows that this batch may fill.
type order[K comparable] struct {
	tree *btree.BTreeG[K]
}

// NewOrdered returns an empty table whose keys can be read by range. It has one
// shard: one worker keeps the order.
func NewOrdered[K cmp.Ordered, V any]() *Table[K, V] {
	t := newTable[K, V](1, 32)
	t.order = &order[K]{btree.NewBTreeGOptions(cmp.Less[K], btree.Options{NoLocks: true})}
	return t
}

// Ordered reports whether the table can be read by range.
func (t *Table[K, V]) Ordered() bool { return t.order != nil }

// Range appends to dst the rows with lo <= key < hi in key order, absent ones
// included. The table is ordered.
func (t *Table[K, V]) Range(dst []uint32, lo, hi K) []uint32 {
	less := t.order.tree.Less
	t.order.tree.Ascend(lo, func(key K) bool {
		if !less(key, hi) {
			return false
		}
		if _, row := t.Find(key); row != None { // else the log failed, which LogErr tells
			dst = append(dst, row)
		}
		return true
	})
	return dst
}
