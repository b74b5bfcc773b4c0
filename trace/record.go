package trace

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// State writes the application's present state. Before the first batch.
func (t *Writer) State(app *txn.App) error {
	rows := t.b.Items(blockState)
	for _, row := range storage.Snapshot(app) {
		if !rows.Add(row) {
			break
		}
	}
	rows.Flush()
	t.stateBytes = rows.Bytes
	return errors.Join(t.b.Err(), app.LogErr())
}

// Recorder passes on the events of a source and writes them, a block for each
// batch that it is told of.
type Recorder struct {
	mu      sync.Mutex // the source may be read by another goroutine than the one that runs
	w       *Writer
	app     *txn.App
	source  txn.Source
	pending []byte
	digests []byte
	ends    []int // of each pending event
	batches int
	events  int
	bytes   int // of events since the last point
}

const (
	// A point is written when the events since the last one take so many bytes and
	// several times those of the state: then points are a fifth of a trace at most.
	pointBytes  = 1 << 20
	pointStates = 4
)

// NewRecorder returns a recorder for the events of source.
func NewRecorder(w *Writer, app *txn.App, source txn.Source) *Recorder {
	return &Recorder{w: w, app: app, source: source}
}

// Fill fills the feed from the source and keeps the bytes of the events.
func (r *Recorder) Fill(ctx context.Context, f *txn.Feed, limit int) error {
	from := f.Len()
	err := r.source.Fill(ctx, f, limit)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := from; i < f.Len(); i++ {
		r.pending = binary.AppendUvarint(r.pending, uint64(f.EventType(i)))
		r.pending = f.AppendEvent(r.pending, i)
		r.ends = append(r.ends, len(r.pending))
	}
	return err
}

// Batch writes the next n events as a batch, with the digests of their results, if
// there are some, and where the run stands after it. Between batches.
func (r *Recorder) Batch(n int, digests []uint32, at Point) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n == 0 {
		return r.w.b.Err()
	}
	end := r.ends[n-1]
	plain := binary.AppendUvarint(nil, uint64(n))
	r.w.b.Packed(blockEvents, append(plain, r.pending[:end]...))
	if len(digests) > 0 {
		r.digests = r.digests[:0]
		for _, d := range digests {
			r.digests = binary.LittleEndian.AppendUint32(r.digests, d)
		}
		r.w.b.Block(blockDigests, r.digests)
	}
	r.pending = append(r.pending[:0], r.pending[end:]...)
	r.ends = append(r.ends[:0], r.ends[n:]...)
	for i := range r.ends {
		r.ends[i] -= end
	}
	r.batches++
	r.events += n
	if r.bytes += end; r.bytes >= max(pointBytes, pointStates*r.w.stateBytes) {
		r.bytes = 0
		return r.w.Point(r.app, at)
	}
	return r.w.b.Err()
}

// Close ends the trace with the hashes of the run.
func (r *Recorder) Close(state, results storage.Hash) error {
	return r.w.Close(Footer{Events: r.events, Batches: r.batches, StateHash: state.String(), ResultsHash: results.String()})
}
