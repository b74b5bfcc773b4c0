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
	fingerprints bool
	boxed        *BoxedTxn
	batch        *Batch
	deltas       []uint32 // see Table.folded
	moved        []uint32 // accesses found under other keys
	calls        int
	costs        []cost // by kind, of the sampled calls
	buf          []byte

	// Of a serial run, which has no accesses:
	inPlace bool
	plan    *Plan    // or noPlan
	kinds   []uint16 // of the transaction's operations, with room for more
	keying  uint16   // kind of the read whose key function runs, or 0
	hash    uint64   // of what the transaction saw

	_ [64]byte
}

// noPlan is the plan of workers that run no operations while they are listed.
var noPlan = Plan{stamp: ^uint64(0)}

// step begins an operation and returns its place in the transaction.
func (w *Worker) step(kind uint16) int {
	n := w.plan.listed
	w.plan.listed = n + 1
	if n >= len(w.kinds) {
		w.kinds = append(w.kinds, make([]uint16, n+1)...)
	}
	w.kinds[n] = kind
	return n
}

// given returns the reads that the function which a serial run calls may look at.
func (w *Worker) given() []planRead { return w.plan.reads[w.plan.given:][:w.plan.givenLen] }

// steps returns the kinds of the transaction's operations that ran, of which the
// last one may have failed.
func (w *Worker) steps() []uint16 {
	if w.plan.failed != OK {
		return w.kinds[:w.plan.ran]
	}
	return w.kinds[:w.plan.listed]
}

// callingName returns the name of the operation or read whose function a serial
// run calls, "" when it calls none.
func (w *Worker) callingName() string {
	kind := w.keying
	if steps := w.steps(); kind == 0 && len(steps) > 0 {
		kind = steps[len(steps)-1]
	} else if kind == 0 {
		return ""
	}
	return w.app.kinds[kind&kindIndex].name
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

// fingerprintNow is fingerprint in a serial run.
func (w *Worker) fingerprintNow(t tableRuntime, own any, found bool) uint64 {
	w.buf = t.appendSeen(w.buf[:0], own, found)
	for _, r := range w.given() {
		switch k := w.app.kinds[r.kind&kindIndex]; {
		case k.rng != nil:
			w.buf = k.table.appendRows(w.buf, k.rng.expand(w.share, r.at, nil))
		case k.win != nil:
			w.buf = k.win.appendSeen(w.buf, w, r.at)
		default:
			w.buf = k.table.appendLook(w.buf, r)
		}
	}
	return xxh3.Hash(w.buf)
}

// note adds the fingerprint of an operation to that of a serial transaction.
func (w *Worker) note(fingerprint uint64) { w.hash = chainHash(w.hash, fingerprint) }

// appendRange adds the rows of a range read that hold a value.
func (w *Worker) appendRange(dst []byte, k *kind, id uint32) []byte {
	a := &w.acc[id]
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

func (t *Table[K, V]) appendLook(dst []byte, r planRead) []byte {
	v, found := t.look(r)
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
