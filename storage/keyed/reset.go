package keyed

// Reset removes all rows. Only between batches.
func (t *Table[K, V]) Reset() {
	for i := range t.shards[:t.count] {
		t.shards[i].clear()
	}
	if t.order != nil {
		t.order.tree.Clear()
	}
	if p := t.spill; p != nil {
		for i := range p.shards[:t.count] {
			p.shards[i].cold.clear()
			p.shards[i].outside = 0
		}
		p.fail(p.log.Close())
		p.places.Store(int64(t.count * placesMin))
		p.charge(int64(t.count)*t.placesBytes(placesMin) - p.held.Load())
	}
}
