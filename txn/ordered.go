package txn

import "github.com/heddle-stream/heddle/internal/arena"

// chainOrdered links the accesses of an ordered table, see orderReads. Slots
// are in event order, with those of range members in between.
func (t *Table[K, V]) chainOrdered(b *Batch) {
	intervals := 0
	for _, share := range b.shares {
		intervals += len(t.ranges[share].ids)
	}
	if intervals == 0 {
		t.resolve(0, b.shares, b.bases)
		return
	}
	rows := arena.Resize(t.pointRows, int(t.base[1]))
	t.pointRows = rows
	for at, i := 0, 0; i < len(b.shares); i++ {
		entries := t.shares[b.shares[i]].buckets[0]
		t.rows.Rowed(entries, rows[at:])
		at += len(entries)
	}
	t.rows.Restart()
	for i, share := range b.shares {
		base := b.bases[i]
		entries, reads := t.shares[share].buckets[0], t.ranges[share].ids
		for len(entries) > 0 || len(reads) > 0 {
			if len(reads) > 0 && (len(entries) == 0 || reads[0] < entries[0].ID) {
				t.chainInterval(b, share, base+reads[0])
				reads = reads[1:]
				continue
			}
			t.rows.Chain(rows[0], base+entries[0].ID)
			rows, entries = rows[1:], entries[1:]
		}
	}
	t.base[1] = uint32(t.rows.Fit())
}

// chainInterval makes a member access for each row of a range read.
func (t *Table[K, V]) chainInterval(b *Batch, share int, id uint32) {
	a := &b.Acc[id]
	t.rowBuf = t.app.kinds[a.Index()].rng.expand(share, a.Arg, t.rowBuf[:0])
	a.Slot, a.Refs = uint32(len(b.Acc)), uint32(len(t.rowBuf))
	event, kind := a.Event, a.Kind
	for _, row := range t.rowBuf {
		m := uint32(len(b.Acc))
		b.Acc = append(b.Acc, Access{Kind: kind, Event: event, Arg: id})
		t.rows.Chain(row, m)
	}
	t.rowBuf = t.rowBuf[:0]
}
