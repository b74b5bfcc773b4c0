package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/heddle-stream/heddle/storage/vfs"
)

// ErrTruncated marks the error of reading records that the log does not have any
// more.
var ErrTruncated = errors.New("truncated from the log")

// Record is a record as it is read.
type Record struct {
	Number  uint64 // records of a log are counted from 0
	Kind    byte
	Payload []byte // valid until the next call of the reader
	Last    bool   // the last one of its batch
}

// Reader reads the committed records of a log in order. One goroutine.
type Reader struct {
	sys     vfs.FS
	dir     string
	segs    []segment // that are left, the first is being read if scan is set
	end     uint64    // where the last one ends, if settled
	settled bool
	from    uint64
	scan    *scanner
	frames  []byte // of the batch that is being read
	number  uint64 // of the first of them
	err     error
}

// NewReader reads a log that nobody has open, without changing it, from a record
// on. A torn tail is passed over. It returns a *CorruptError when a segment's header
// is bad, and an error that matches ErrTruncated if the record is not there any
// more. That the log ends before the record is found at its end, by Next.
func NewReader(sys vfs.FS, dir string, from uint64) (*Reader, error) {
	files, err := list(sys, dir)
	if err != nil {
		return nil, err
	}
	r := &Reader{sys: sys, dir: dir, segs: files.segments, from: from}
	if err := r.seek(); err != nil {
		return nil, err
	}
	return r, nil
}

// seek drops the segments before the one with the first record.
func (r *Reader) seek() error {
	if len(r.segs) == 0 {
		r.settled = true
		return r.reached(0)
	}
	if first := r.segs[0].first; r.from < first {
		return fmt.Errorf("%s: record %d: the first one is %d: %w", r.dir, r.from, first, ErrTruncated)
	}
	for len(r.segs) > 1 && r.segs[1].first <= r.from {
		r.segs = r.segs[1:]
	}
	return nil
}

// reached returns an error if the log ends at a record before the one that is
// asked for.
func (r *Reader) reached(end uint64) error {
	if end < r.from {
		return fmt.Errorf("%s: the log ends before record %d, record %d is asked for", r.dir, end, r.from)
	}
	return nil
}

// Next returns the next record, or io.EOF behind the last one that was committed.
// A *CorruptError tells that the log is damaged; records before the damage have
// been returned and are good. After an error it returns the same again.
func (r *Reader) Next() (Record, error) {
	for r.err == nil {
		if len(r.frames) == 0 {
			if r.err = r.load(); r.err != nil {
				break
			}
			continue
		}
		n := frameLen(r.frames)
		rec := Record{Number: r.number, Kind: r.frames[8], Payload: r.frames[frameSize:n:n], Last: n == len(r.frames)}
		r.frames = r.frames[n:]
		r.number++
		if rec.Number >= r.from {
			return rec, nil
		}
	}
	return Record{}, r.err
}

// load reads the next batch, of the next segment if this one has no more. An
// empty batch leaves no frames.
func (r *Reader) load() error {
	if len(r.segs) == 0 {
		return io.EOF
	}
	if r.scan == nil {
		s, err := openSegment(r.sys, r.dir, r.segs[0].seq)
		if err != nil {
			return err
		}
		r.scan = s
	}
	s := r.scan
	end, settled := r.end, r.settled
	if len(r.segs) > 1 {
		end, settled = r.segs[1].first, true
	}
	if settled && s.next == end {
		return r.leave()
	}
	number := s.next
	frames, err := s.batch()
	if err != nil {
		if settled {
			return err
		}
		if err := s.tail(err); err != nil {
			return err
		}
		return r.leave()
	}
	if settled && s.next > end {
		return s.corrupt(s.last, fmt.Sprintf("records up to %d, the segment ends before record %d", s.next, end))
	}
	r.frames, r.number = frames, number
	return nil
}

// leave goes on to the next segment.
func (r *Reader) leave() error {
	end := r.scan.next
	err := r.scan.file.Close()
	r.scan, r.segs = nil, r.segs[1:]
	if err == nil && len(r.segs) == 0 {
		if err = r.reached(end); err == nil {
			err = io.EOF
		}
	}
	return err
}

// Close gives back the file that is being read.
func (r *Reader) Close() error {
	r.segs, r.frames = nil, nil
	if r.err == nil {
		r.err = io.EOF
	}
	if r.scan == nil {
		return nil
	}
	s := r.scan
	r.scan = nil
	return s.file.Close()
}

// contents is what a log's directory holds.
type contents struct {
	segments []segment // in order, with good headers
	spares   []string  // files to use again
	seq      uint64    // the highest number that a name has
}

// list reads a log's directory and the headers of its segments.
func list(sys vfs.FS, dir string) (contents, error) {
	var c contents
	names, err := sys.List(dir)
	if err != nil {
		return c, err
	}
	for _, name := range names {
		if seq, ok := parseName(name, spareSuffix); ok {
			c.spares = append(c.spares, name)
			c.seq = max(c.seq, seq)
		}
		seq, ok := parseName(name, segmentSuffix)
		if !ok {
			continue
		}
		c.seq = max(c.seq, seq)
		s, err := openSegment(sys, dir, seq)
		if err != nil {
			return c, err
		}
		c.segments = append(c.segments, s.segment)
		if err := s.file.Close(); err != nil {
			return c, err
		}
	}
	slices.SortFunc(c.segments, func(a, b segment) int { return cmp.Compare(a.seq, b.seq) })
	for i := 1; i < len(c.segments); i++ {
		if a, b := c.segments[i-1], c.segments[i]; b.first < a.first {
			return c, &CorruptError{path.Join(dir, b.name()), 0, fmt.Sprintf(
				"begins with record %d, the segment before with %d", b.first, a.first)}
		}
	}
	return c, nil
}
