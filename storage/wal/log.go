package wal

import (
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/heddle-stream/heddle/internal/invariants"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// Options of a log. The zero value is good.
type Options struct {
	SegmentSize int64 // bytes of a segment file, at least 128; 0 is 64 MiB
	Spares      int   // files that are kept to be used again; 0 is 2, negative is none
}

const (
	segmentSizeDefault = 64 << 20
	segmentSizeMin     = 128
	sparesDefault      = 2
)

var errClosed = errors.New("the log is closed")

// Log is a log that is open for writing, by nobody else. One goroutine at a time
// may use it.
type Log struct {
	sys   vfs.FS
	dir   string
	opts  Options
	lock  io.Closer
	err   error // why the log cannot be used any more
	seals sealer

	segs   []segment // the last one is written
	spares []string  // names of files to use again, durably off the log
	file   vfs.File  // of the last segment
	seq    uint64    // the highest that any name had
	off    int64     // where the next batch begins
	room   int64     // bytes that the last segment has
	// Nothing was committed since a header or a mark that confirms what is before it.
	confirmed bool

	buf     []byte // frames of the batch that is collected
	next    uint64 // number of the record that is appended next
	durable uint64 // records that are committed
}

// Open opens the log in a directory, and makes both if they are absent. A torn
// tail is discarded. Damage in the last segment or in a header is a
// *CorruptError; that in other segments is found by reading. A log that is
// open elsewhere is an error that matches vfs.ErrLocked. All records that can
// be read afterwards survive a crash.
func Open(sys vfs.FS, dir string, opts Options) (*Log, error) {
	switch {
	case opts.SegmentSize == 0:
		opts.SegmentSize = segmentSizeDefault
	case opts.SegmentSize < segmentSizeMin:
		return nil, fmt.Errorf("segments of %d bytes, the least is %d", opts.SegmentSize, segmentSizeMin)
	}
	if opts.Spares == 0 {
		opts.Spares = sparesDefault
	}
	if err := sys.MkdirAll(dir); err != nil {
		return nil, err
	}
	lock, err := sys.Lock(path.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	l := &Log{sys: sys, dir: dir, opts: opts, lock: lock}
	if err := l.recover(); err != nil {
		if l.file != nil {
			l.file.Close()
		}
		lock.Close()
		return nil, fmt.Errorf("open log: %w", explain(err))
	}
	return l, nil
}

// explain says what a full disk means here.
func explain(err error) error {
	if errors.Is(err, vfs.ErrNoSpace) {
		return fmt.Errorf("the disk is full, what was committed is safe and the log can be opened again when there is room: %w", err)
	}
	return err
}

// fail makes the log unusable.
func (l *Log) fail(doing string, err error) error {
	l.err = fmt.Errorf("%s: log failed: %s: %w", l.dir, doing, explain(err))
	l.buf = nil
	return l.err
}

// Next returns the number of the record that is appended next.
func (l *Log) Next() uint64 { return l.next }

// Durable returns the number of the first record that is not committed: those
// below survive a crash.
func (l *Log) Durable() uint64 { return l.durable }

// First returns the number of the oldest record that can be read, which is
// Durable if there is none.
func (l *Log) First() uint64 { return l.segs[0].first }

// Err returns why the log cannot be used any more, nil if it can.
func (l *Log) Err() error { return l.err }

// Append adds a record to the batch that is collected, and returns its number.
// Nothing is written before Commit. The payload is copied. A kind or length that
// is not allowed is an error that leaves the log as it was.
func (l *Log) Append(kind byte, payload []byte) (uint64, error) {
	if l.err != nil {
		return 0, l.err
	}
	if kind == kindNone || kind > KindMax {
		return 0, fmt.Errorf("a record of kind %d, allowed are 1 to %d", kind, KindMax)
	}
	if len(payload) > PayloadMax {
		return 0, fmt.Errorf("a record of %d bytes, at most %d are allowed", len(payload), PayloadMax)
	}
	l.buf = appendFrame(l.buf, kind, payload)
	l.next++
	return l.next - 1, nil
}

// Commit writes the records that were appended since the last commit, all or
// none, and returns when they survive a crash. Without records it does nothing.
// After an error the log is unusable and the batch may or may not be found when
// it is opened again; a full disk matches vfs.ErrNoSpace.
func (l *Log) Commit() error {
	if l.err != nil || len(l.buf) == 0 {
		return l.err
	}
	// Behind the batch there must be room for the mark of Close.
	need := int64(len(l.buf)) + 2*markSize
	if l.off+need > l.room && l.off > headerSize {
		if err := l.roll(need); err != nil {
			return l.fail("begin a segment", err)
		}
	}
	if err := l.write(); err != nil {
		return l.fail(fmt.Sprintf("commit records %d to %d", l.durable, l.next-1), err)
	}
	l.durable = l.next
	l.confirmed = false
	return nil
}

// write writes what was collected and a mark, and syncs them.
func (l *Log) write() error {
	l.buf = appendMark(l.buf, mark{records: l.next, start: l.off})
	seq := l.segs[len(l.segs)-1].seq
	n := l.seals.seal(l.buf, seq, l.off)
	if invariants.Enabled {
		invariants.Check(uint64(n) == l.next-l.durable+1, "%d frames for records %d to %d", n, l.durable, l.next)
	}
	if _, err := l.file.WriteAt(l.buf, l.off); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	l.off += int64(len(l.buf))
	l.buf = l.buf[:0]
	return nil
}

// Reader reads the records that are committed now, from a record on; a number
// beyond Durable is an error, one below First an error that matches ErrTruncated.
// The reader may be used by another goroutine while the log goes on: it does not
// see what is committed later. It must be closed before records that it has not
// read yet are truncated. It works on a log that has failed, too.
func (l *Log) Reader(from uint64) (*Reader, error) {
	if errors.Is(l.err, errClosed) {
		return nil, l.err
	}
	r := &Reader{sys: l.sys, dir: l.dir, segs: l.segs[:len(l.segs):len(l.segs)], end: l.durable, settled: true, from: from}
	if err := errors.Join(r.seek(), r.reached(l.durable)); err != nil {
		return nil, err
	}
	return r, nil
}

// Close gives the log back. Records that are not committed are dropped. After an
// orderly close damage to the last batch can be told from a torn tail, see the
// package's comment. It returns the error of a log that has failed.
func (l *Log) Close() error {
	if errors.Is(l.err, errClosed) {
		return l.err
	}
	if l.err == nil && !l.confirmed {
		l.buf, l.next = l.buf[:0], l.durable
		if err := l.write(); err != nil {
			l.err = l.fail("close", err)
		}
	}
	err := l.err
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	l.err = errClosed
	return errors.Join(err, l.lock.Close())
}
