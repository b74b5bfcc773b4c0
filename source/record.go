package source

import (
	"bufio"
	"context"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// Recorder passes on the events of a source and writes those of each batch that it is
// told of, as a file that Open reads.
type Recorder struct {
	mu      sync.Mutex // the source may be read by another goroutine than the one that runs
	w       *bufio.Writer
	app     *txn.App
	source  txn.Source
	format  string
	pending []byte
	ends    []int // of each pending event
	err     error
}

// CanRecord reports whether the name of a file ends in a format that can be written.
func CanRecord(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".jsonl" || ext == ".bin"
}

// Known reports whether the name of a file ends in a format that can be read.
func Known(name string) bool { return slices.Contains(Formats(), formatOf(name)) }

// NewRecorder returns a recorder for the events of a source, in the format that the
// file's name ends in.
func NewRecorder(w io.Writer, name string, app *txn.App, source txn.Source) *Recorder {
	return &Recorder{w: bufio.NewWriterSize(w, 1<<16), app: app, source: source, format: formatOf(name)}
}

// Fill implements [txn.Source].
func (r *Recorder) Fill(ctx context.Context, f *txn.Feed, limit int) error {
	from := f.Len()
	err := r.source.Fill(ctx, f, limit)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := from; i < f.Len() && r.err == nil; i++ {
		if r.format == "bin" {
			r.pending = AppendRecord(r.pending, f, i)
		} else {
			r.pending, r.err = AppendLine(r.pending, r.app, f, i)
		}
		r.ends = append(r.ends, len(r.pending))
	}
	return err
}

// Batch writes the next n events.
func (r *Recorder) Batch(n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n == 0 || r.err != nil {
		return r.err
	}
	end := r.ends[n-1]
	_, r.err = r.w.Write(r.pending[:end])
	r.pending = append(r.pending[:0], r.pending[end:]...)
	r.ends = append(r.ends[:0], r.ends[n:]...)
	for i := range r.ends {
		r.ends[i] -= end
	}
	return r.err
}

// Close writes what is not written yet; a file of events has no hashes.
func (r *Recorder) Close(storage.Hash, storage.Hash) error {
	if r.err == nil {
		r.err = r.w.Flush()
	}
	return r.err
}
