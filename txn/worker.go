package txn

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// Worker is the state of one executing worker: the batch that it works on and
// which part of it. One goroutine at a time.
type Worker struct {
	app          *App
	id           int // whose scratch values
	share        int // whose plans: arguments and reads belong to it
	base         uint32
	regionEnd    uint32
	acc          []Access
	src          []uint32 // the version that each access sees, or None for the row
	refs         []uint32
	txLo         []uint32
	txHi         []uint32
	fail         []uint64
	seen         []uint64 // fingerprints of the values seen, when somebody compares
	current      uint32   // the access whose function runs, for panics
	inPlace      bool
	fingerprints bool
	boxed        *BoxedTxn
	batch        *Batch   // of a parallel run
	deltas       []uint32 // see Table.folded
	moved        []uint32 // accesses found under other keys
	calls        int
	costs        []cost // by kind, of the sampled calls
	buf          []byte
	_            [64]byte
}

// cost is what sampled calls of an operation took.
type cost struct {
	nanos int64
	calls int64
}

// sampleEvery is how many calls of the executor share one that is timed.
const sampleEvery = 128

// fingerprint hashes everything that an operation sees: its own value and each
// of its reads.
func (w *Worker) fingerprint(t tableRuntime, id uint32, own any, found bool) uint64 {
	w.buf = t.appendSeen(w.buf[:0], own, found)
	a := &w.acc[id]
	for _, local := range w.refs[a.Refs : a.Refs+uint32(a.NRefs)] {
		r := w.base + local
		k := w.app.kinds[w.acc[r].Index()]
		if k.rng != nil {
			w.buf = w.appendRange(w.buf, k, r)
			continue
		}
		if k.win != nil {
			w.buf = k.win.appendSeen(w.buf, w, r)
			continue
		}
		w.buf = k.table.appendLoad(w.buf, w, r)
	}
	return xxh3.Hash(w.buf)
}

// note keeps the fingerprint of an operation.
func (w *Worker) note(id uint32, fingerprint uint64) {
	for len(w.seen) <= int(id) {
		w.seen = append(w.seen, 0)
	}
	w.seen[id] = fingerprint
}

// appendRange adds the rows of a range read that hold a value.
func (w *Worker) appendRange(dst []byte, k *kind, id uint32) []byte {
	a := &w.acc[id]
	if w.inPlace {
		return k.table.appendRows(dst, k.rng.expand(w.share, a.Arg, nil))
	}
	for m := a.Slot; m < a.Slot+a.Refs; m++ {
		dst = k.table.appendMember(dst, w, m)
	}
	return dst
}

// appendSeen adds a value as an operation saw it: a presence byte, then its bytes.
func (t *Table[K, V]) appendSeen(dst []byte, own any, found bool) []byte {
	if !found {
		return append(dst, 0)
	}
	v, ok := own.(*V)
	if !ok {
		boxed := own.(V)
		v = &boxed
	}
	return t.val.Append(append(dst, 1), v)
}

func (t *Table[K, V]) appendLoad(dst []byte, w *Worker, id uint32) []byte {
	v, found := t.load(w, id)
	if !found {
		return append(dst, 0)
	}
	return t.val.Append(append(dst, 1), v)
}

func (t *Table[K, V]) appendMember(dst []byte, w *Worker, id uint32) []byte {
	v, found := t.load(w, id)
	if !found {
		return dst
	}
	rec := t.rows.At(t.rows.Rows[w.acc[id].Slot])
	return t.val.Append(t.key.Append(append(dst, 2), &rec.Key), v)
}

func (t *Table[K, V]) appendRows(dst []byte, rows []uint32) []byte {
	for _, row := range rows {
		if rec := t.rows.At(row); rec.Present() {
			dst = t.val.Append(t.key.Append(append(dst, 2), &rec.Key), &rec.Val)
		}
	}
	return dst
}

// chainHash folds the fingerprints of a transaction's operations into one.
func chainHash(h, next uint64) uint64 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], h)
	binary.LittleEndian.PutUint64(b[8:], next)
	return xxh3.Hash(b[:])
}
