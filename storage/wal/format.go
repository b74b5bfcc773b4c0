package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

const (
	magic   = "heddlewl"
	version = 1

	headerSize = 32 // magic 8, version 4, sequence number 8, first record 8, checksum 4
	frameSize  = 9  // length of the payload 4, checksum 4, kind 1
	markSize   = frameSize + 16

	kindNone   = 0   // what never written places hold
	kindCommit = 255 // its payload: records in the log 8, offset of the batch 8

	// KindMax is the highest kind that a record may have; the lowest is 1.
	KindMax = 254
	// PayloadMax is the length of the longest payload in bytes.
	PayloadMax = 1 << 30

	segmentSuffix = ".log"
	spareSuffix   = ".spare"
	lockName      = "LOCK"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CorruptError tells where a log is not what it was when it was written.
type CorruptError struct {
	File   string // with the path of the log
	Offset int64  // in bytes, of the frame or header that is bad
	What   string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: offset %d: %s", e.File, e.Offset, e.What)
}

// segment is one file of a log.
type segment struct {
	seq   uint64
	first uint64 // number of its first record
}

func (s segment) name() string { return fileName(s.seq, segmentSuffix) }

func fileName(seq uint64, suffix string) string { return fmt.Sprintf("%020d%s", seq, suffix) }

// parseName returns the number in a name that fileName made.
func parseName(name, suffix string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	seq, err := strconv.ParseUint(digits, 10, 64)
	return seq, err == nil
}

// appendHeader adds the header of a segment to dst.
func appendHeader(dst []byte, s segment) []byte {
	at := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint64(dst, s.seq)
	dst = binary.LittleEndian.AppendUint64(dst, s.first)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], castagnoli))
}

// parseHeader reads a header of headerSize bytes.
func parseHeader(b []byte) (segment, error) {
	if string(b[:8]) != magic {
		return segment{}, errors.New("not a segment of a log")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return segment{}, fmt.Errorf("version %d of the format, this program reads %d", v, version)
	}
	if crc32.Checksum(b[:28], castagnoli) != binary.LittleEndian.Uint32(b[28:]) {
		return segment{}, errors.New("checksum of the header does not match")
	}
	return segment{seq: binary.LittleEndian.Uint64(b[12:]), first: binary.LittleEndian.Uint64(b[20:])}, nil
}

// appendFrame adds a frame with the checksum of its own bytes. It is not good
// anywhere until a sealer has added its place.
func appendFrame(dst []byte, kind byte, payload []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(payload)))
	dst = append(dst, 0, 0, 0, 0, kind)
	dst = append(dst, payload...)
	binary.LittleEndian.PutUint32(dst[at+4:], crc32.Checksum(dst[at+8:], castagnoli))
	return dst
}

// frameLen returns how long the frame at the front of b is.
func frameLen(b []byte) int { return frameSize + int(binary.LittleEndian.Uint32(b)) }

// sealer adds the place of a frame to a checksum: length, segment and offset
// follow kind and payload. It has its buffer because what a checksum is taken of
// escapes to the heap.
type sealer struct{ place [20]byte }

func (s *sealer) sum(bare uint32, length []byte, seq uint64, off int64) uint32 {
	copy(s.place[:4], length)
	binary.LittleEndian.PutUint64(s.place[4:], seq)
	binary.LittleEndian.PutUint64(s.place[12:], uint64(off))
	return crc32.Update(bare, castagnoli, s.place[:])
}

// seal makes frames good that appendFrame made, in a segment from off on. It
// returns their number.
func (s *sealer) seal(frames []byte, seq uint64, off int64) int {
	n := 0
	for len(frames) > 0 {
		bare := binary.LittleEndian.Uint32(frames[4:])
		binary.LittleEndian.PutUint32(frames[4:], s.sum(bare, frames[:4], seq, off))
		size := frameLen(frames)
		frames, off = frames[size:], off+int64(size)
		n++
	}
	return n
}

// good returns whether the frame is good at this place.
func (s *sealer) good(frame []byte, seq uint64, off int64) bool {
	bare := crc32.Checksum(frame[8:], castagnoli)
	return s.sum(bare, frame[:4], seq, off) == binary.LittleEndian.Uint32(frame[4:])
}

// mark is what a commit mark says.
type mark struct {
	records uint64 // in the log, with its batch
	start   int64  // offset of its batch in the segment
}

func appendMark(dst []byte, m mark) []byte {
	var payload [markSize - frameSize]byte
	binary.LittleEndian.PutUint64(payload[:], m.records)
	binary.LittleEndian.PutUint64(payload[8:], uint64(m.start))
	return appendFrame(dst, kindCommit, payload[:])
}

// isMark returns whether a frame of markSize bytes has the form of a mark.
func isMark(frame []byte) bool {
	return frame[8] == kindCommit && bytes.HasPrefix(frame, markLength)
}

func parseMark(frame []byte) mark {
	return mark{
		records: binary.LittleEndian.Uint64(frame[frameSize:]),
		start:   int64(binary.LittleEndian.Uint64(frame[frameSize+8:])),
	}
}

// markLength is how the frames of marks begin.
var markLength = []byte{markSize - frameSize, 0, 0, 0}
