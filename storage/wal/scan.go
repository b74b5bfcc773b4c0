package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/heddle-stream/heddle/storage/vfs"
)

const readAhead = 1 << 16

// scanner reads the batches of one segment.
type scanner struct {
	segment
	file  vfs.File
	name  string // with the path
	size  int64
	off   int64  // of the batch that is read next
	last  int64  // of the batch that was read last, 0 if there is none
	next  uint64 // number of the record that is read next
	buf   []byte // bytes of the file; those from at on begin at off
	at    int
	seals sealer
}

// openSegment opens the segment for reading and checks its header.
func openSegment(sys vfs.FS, dir string, seq uint64) (*scanner, error) {
	s := &scanner{segment: segment{seq: seq}}
	s.name = path.Join(dir, s.segment.name())
	f, err := sys.Open(s.name)
	if err != nil {
		return nil, err
	}
	s.file = f
	if err := s.header(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

func (s *scanner) header() error {
	var err error
	if s.size, err = s.file.Size(); err != nil {
		return err
	}
	head, err := s.bytes(headerSize)
	if err != nil {
		return err
	}
	got, err := parseHeader(head)
	if err != nil {
		return s.corrupt(0, err.Error())
	}
	if got.seq != s.seq {
		return s.corrupt(0, fmt.Sprintf("this is segment %d, its name says %d", got.seq, s.seq))
	}
	s.first, s.next = got.first, got.first
	s.advance(headerSize)
	return nil
}

func (s *scanner) corrupt(off int64, what string) error { return &CorruptError{s.name, off, what} }

// bytes returns the next n bytes of the file. They are valid until the next call.
func (s *scanner) bytes(n int) ([]byte, error) {
	have := len(s.buf) - s.at
	if have >= n {
		return s.buf[s.at : s.at+n], nil
	}
	left := s.size - s.off
	if int64(n) > left {
		return nil, s.corrupt(s.off, "cut off")
	}
	// A batch may be longer than what is read ahead; reading twice as much each
	// time moves its bytes twice on average.
	want := int(min(int64(max(n, 2*have, readAhead)), left))
	copy(s.buf, s.buf[s.at:])
	s.at = 0
	s.buf = slices.Grow(s.buf[:have], want-have)[:want]
	got, err := s.file.ReadAt(s.buf[have:], s.off+int64(have))
	if got < want-have {
		s.buf = s.buf[:have+got]
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("read %s at offset %d: %w", s.name, s.off, err)
	}
	return s.buf[:n], nil
}

func (s *scanner) advance(n int) {
	s.at += n
	s.off += int64(n)
}

// batch reads the next batch. It returns the frames of its records, without the
// mark, which are valid until the next call. A *CorruptError tells that there is
// no good batch, for whatever reason.
func (s *scanner) batch() ([]byte, error) {
	records := uint64(0)
	for p := 0; ; {
		frame, err := s.frame(p)
		if err != nil {
			return nil, err
		}
		if frame[8] != kindCommit {
			p += len(frame)
			records++
			continue
		}
		off := s.off + int64(p)
		m := parseMark(frame)
		if m.start != s.off || m.records != s.next+records {
			return nil, s.corrupt(off, fmt.Sprintf(
				"commit of the batch at offset %d with the log at record %d, this is the batch at offset %d and record %d",
				m.start, m.records, s.off, s.next+records))
		}
		frames := s.buf[s.at : s.at+p]
		s.last = s.off
		s.advance(p + markSize)
		s.next += records
		return frames, nil
	}
}

// frame returns the good frame that begins p bytes into the batch.
func (s *scanner) frame(p int) ([]byte, error) {
	off := s.off + int64(p)
	if off == s.size {
		return nil, s.corrupt(off, "no record here")
	}
	b, err := s.bytes(p + frameSize)
	if err != nil {
		return nil, at(err, off)
	}
	n, kind := binary.LittleEndian.Uint32(b[p:]), b[p+8]
	switch {
	case kind == kindNone:
		return nil, s.corrupt(off, "no record here")
	case n > PayloadMax || kind == kindCommit && n != markSize-frameSize:
		return nil, s.corrupt(off, fmt.Sprintf("a record of kind %d with %d bytes", kind, n))
	}
	if b, err = s.bytes(p + frameSize + int(n)); err != nil {
		return nil, at(err, off)
	}
	if !s.seals.good(b[p:], s.seq, off) {
		return nil, s.corrupt(off, "checksum does not match")
	}
	return b[p:], nil
}

// at moves damage to the frame in which it was found.
func at(err error, off int64) error {
	var bad *CorruptError
	if errors.As(err, &bad) {
		bad.Offset = off
	}
	return err
}

// later looks for the mark of a batch that began behind the one that is read
// next, from an offset on, and returns its offset or 0.
func (s *scanner) later(from int64) (int64, error) {
	buf := make([]byte, min(readAhead, max(s.size-from, 0)))
	for from+markSize <= s.size {
		b := buf[:min(int64(len(buf)), s.size-from)]
		if n, err := s.file.ReadAt(b, from); n < len(b) {
			return 0, fmt.Errorf("read %s at offset %d: %w", s.name, from, err)
		}
		for i := 0; ; i++ {
			j := bytes.Index(b[i:], markLength)
			if j < 0 || i+j+markSize > len(b) {
				break
			}
			i += j
			frame, off := b[i:i+markSize], from+int64(i)
			if isMark(frame) && s.seals.good(frame, s.seq, off) && parseMark(frame).start > s.off {
				return off, nil
			}
		}
		from += int64(len(b) - markSize + 1)
	}
	return 0, nil
}

// tail tells what it means that the batch that is read next is bad, in the last
// segment: nil if it is torn, an error if it is corrupt or cannot be read.
func (s *scanner) tail(err error) error {
	var bad *CorruptError
	if !errors.As(err, &bad) {
		return err
	}
	mark, failed := s.later(bad.Offset)
	if failed != nil {
		return failed
	}
	if mark > 0 {
		bad.What += fmt.Sprintf(", although a later batch was committed at offset %d", mark)
		return bad
	}
	return nil
}
