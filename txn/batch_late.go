package txn

import "github.com/heddle-stream/heddle/internal/arena"

// sealLates gives tables their slots and, behind those of accesses whose keys
// the plan knew, one to each access whose key is computed. Such an access is in
// no chain until it is placed.
func (x *Batch) sealLates() {
	x.Late, x.OnlySerial = x.Late[:0], false
	for r := range x.plans {
		for _, local := range x.plans[r].lates {
			x.Late = append(x.Late, x.bases[r]+local)
		}
	}
	x.lates = arena.Resize(x.lates, len(x.bound.App.tables))
	counts := x.lates
	clear(counts)
	for _, id := range x.Late {
		counts[x.TableOf(id)]++
	}
	for i, t := range x.bound.App.tables {
		t.startBatch(x.shares, counts[i])
		if counts[i] > 0 && t.intervals(x.shares) > 0 {
			x.OnlySerial = true
		}
		counts[i] = 0
	}
	for _, id := range x.Late {
		a, table := &x.Acc[id], x.TableOf(id)
		a.Prev, a.Pred, a.Next = None, None, None
		if x.OnlySerial {
			a.Slot = None
			continue
		}
		a.Slot = x.bound.App.tables[table].lateSlot(counts[table], id)
		counts[table]++
	}
}

// lateSlot returns the slot of the n-th access of the table with a computed key.
func (t *Table[K, V]) lateSlot(n int, id uint32) uint32 {
	slot := t.base[t.rows.ShardCount()] + uint32(n)
	t.rows.IDs[slot] = id
	t.rows.Displace(slot)
	return slot
}

// intervals returns the number of range reads of the batch.
func (t *Table[K, V]) intervals(shares []int) int {
	n := 0
	for _, share := range shares {
		n += len(t.ranges[share].ids)
	}
	return n
}

func (t *Table[K, V]) lateRow(slot uint32) uint32 { return t.rows.Rows[slot] }

func (t *Table[K, V]) setLast(slot, last uint32) (was uint32) {
	return t.rows.Touch(t.rows.Rows[slot], last)
}

func (t *Table[K, V]) installSlot(slot uint32) {
	t.rows.Install(int(t.rows.ShardOf(t.rows.Rows[slot])), []uint32{slot})
}

// The following methods move accesses with computed keys between rows. Nobody
// may execute meanwhile.

// Guess computes the key of an access from the state before the batch and gives
// it that row, outside of the row's chain. False when there is no key.
func (e *Executor) Guess(id uint32) (ok bool) {
	w := e.at(0, id)
	defer func() {
		if recover() != nil {
			ok = false // on values that a serial run need not show
		}
	}()
	k := w.app.kinds[w.acc[id].Index()].late
	return k.guess(w, id) && k.place(w.share, &w.acc[id])
}

// Place gives an access the row of the key that its transaction computed last,
// and reports whether there is one.
func (e *Executor) Place(id uint32) bool {
	w := e.at(0, id)
	return w.app.kinds[w.acc[id].Index()].late.place(w.share, &w.acc[id])
}

// Row returns the row of an access with a computed key, or None.
func (e *Executor) Row(id uint32) uint32 {
	return e.x.tableAt(id).lateRow(e.x.Acc[id].Slot)
}

// SetLast makes an access the last one in the chain of the row of access id and
// returns what was.
func (e *Executor) SetLast(id, last uint32) (was uint32) {
	return e.x.tableAt(id).setLast(e.x.Acc[id].Slot, last)
}

func (x *Batch) tableAt(id uint32) tableRuntime { return x.bound.App.kinds[x.Acc[id].Index()].table }

// InstallVersion makes the version of an access the value of its row. It is for
// rows whose chain ends with a computed key; one goroutine, before Install.
func (x *Batch) InstallVersion(id uint32) { x.tableAt(id).installSlot(x.Acc[id].Slot) }
