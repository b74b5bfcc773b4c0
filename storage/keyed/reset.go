package keyed

// Reset removes all rows. Only between batches.
func (t *Table[K, V]) Reset() {
	for i := range t.shards[:t.count] {
		t.shards[i].clear()
	}
	if t.order != nil {
		t.order.tree.Clear()
	}
}
