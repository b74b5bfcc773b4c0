package spill

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

const (
	unit     = 8 // bytes
	headSize = 8
)

// SegmentBytes is how large files are. One with a row that is larger takes that.
const SegmentBytes = 16 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Log is the rows of one table that are not in memory. Append, Read and Free may be called
// from several goroutines, for different rows; Compact and Each while nobody else works
// on it.
type Log struct {
	fs    vfs.FS
	name  string // of files, up to their number
	whole int    // bytes of a segment

	segments atomic.Pointer[[]*segment] // by number; nil where there is none; never changed, but replaced

	mu     sync.Mutex // of what Append changes
	last   int        // number of the segment that is added to; -1 before there is one
	end    int        // its bytes, with those in frames
	frames []byte     // on their way there
	made   int        // files so far
	grave  *grave     // of a log that is kept, or nil

	live  atomic.Int64 // bytes of rows
	holes atomic.Int64 // and of what is between them
	mean  atomic.Int64 // bytes of a row, about
}

// segment is one file.
type segment struct {
	f    vfs.File
	path string
	file int  // the number in its name
	kept bool // it has a name, which is to be removed
	took int  // how many numbers it takes

	synced int64 // bytes that survive a crash
	marked bool  // a checkpoint knows of it
	size   atomic.Int64
	live   atomic.Int64
}

var _ txn.RowLog = (*Log)(nil)

// New returns an empty log whose files have names that begin so, and about so many bytes each;
// 0 for [SegmentBytes].
func New(fs vfs.FS, name string, whole int) *Log {
	if whole == 0 {
		whole = SegmentBytes
	}
	l := &Log{fs: fs, name: name + "-", whole: whole, last: -1}
	l.segments.Store(new([]*segment))
	return l
}

// segment returns one by its number.
func (l *Log) segment(number int) *segment { return (*l.segments.Load())[number] }

// replace makes s the segment of a number, which may be the next one.
func (l *Log) replace(number int, s *segment) {
	all := slices.Clone(*l.segments.Load())
	for len(all) <= number {
		all = append(all, nil)
	}
	all[number] = s
	l.segments.Store(&all)
}

// Append adds rows, which stand in data one behind the other and end at the given offsets,
// and sets their addresses. After an error none of them is there.
func (l *Log) Append(data []byte, ends []int, addresses []uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := 0
	l.frames = slices.Grow(l.frames, len(data)+len(ends)*(headSize+unit))
	for i, end := range ends {
		if l.last < 0 || l.end > unit && l.end+frameSize(end-at) > l.whole {
			if err := errors.Join(l.flush(), l.open(end-at)); err != nil {
				return err
			}
		}
		addresses[i] = uint64(l.last)*l.units() + uint64(l.end/unit)
		l.frames = appendFrame(l.frames, data[at:end])
		l.end += frameSize(end - at)
		at = end
	}
	if n := int64(len(ends)); n > 0 {
		l.mean.Store(int64(len(data))/n + headSize)
	}
	return l.flush()
}

// units is how many addresses a segment has.
func (l *Log) units() uint64 { return uint64(l.whole / unit) }

// frameSize is how much a row of so many bytes takes.
func frameSize(row int) int { return (headSize + row + unit - 1) &^ (unit - 1) }

func appendFrame(dst, row []byte) []byte {
	begin := len(dst)
	dst = binary.LittleEndian.AppendUint32(append(dst, 0, 0, 0, 0), uint32(len(row)))
	dst = append(dst, row...)
	binary.LittleEndian.PutUint32(dst[begin:], crc32.Checksum(dst[begin+4:], castagnoli))
	for len(dst)%unit != 0 {
		dst = append(dst, 0)
	}
	return dst
}

// flush writes the frames that are collected.
func (l *Log) flush() error {
	if len(l.frames) == 0 {
		return nil
	}
	s := l.segment(l.last)
	const keep = 1 << 20 // bytes of memory
	n, err := s.f.WriteAt(l.frames, s.size.Load())
	if err == nil && n < len(l.frames) {
		err = errors.New("short write")
	}
	if err != nil {
		l.frames, l.end = l.frames[:0], int(s.size.Load())
		return fmt.Errorf("rows on disk: write %s: %w", s.path, err)
	}
	s.live.Add(int64(n))
	s.size.Add(int64(n))
	l.live.Add(int64(n))
	if l.frames = l.frames[:0]; cap(l.frames) > keep {
		l.frames = nil
	}
	return nil
}

// open begins another segment, whose first row has so many bytes.
func (l *Log) open(row int) error {
	if l.last >= 0 && l.segment(l.last).live.Load() == 0 {
		if err := l.remove(l.last); err != nil {
			return err
		}
	}
	s := &segment{path: l.path(l.made), file: l.made, took: (unit + frameSize(row) + l.whole - 1) / l.whole}
	s.size.Store(unit)
	number := l.numbers(s.took)
	if uint64(number+s.took)*l.units() > txn.RowAddressMax {
		return fmt.Errorf("rows on disk: %s: more than %d GiB in one table", s.path, txn.RowAddressMax*unit>>30)
	}
	f, err := l.fs.Create(s.path)
	if err != nil {
		return fmt.Errorf("rows on disk: %w", err)
	}
	s.f, s.kept = f, l.grave != nil || l.fs.Remove(s.path) != nil
	l.replace(number+s.took-1, nil) // those that it takes, too
	l.replace(number, s)
	l.last, l.end, l.made = number, unit, l.made+1
	l.holes.Add(unit)
	return nil
}

// path returns the name of a file.
func (l *Log) path(file int) string { return fileName(l.name, file) }

func fileName(name string, file int) string { return fmt.Sprintf("%s%d", name, file) }

// numbers returns the first of so many numbers in a row that no segment has.
func (l *Log) numbers(n int) int {
	all := *l.segments.Load()
	free := 0
	for i := 0; i < len(all); i++ {
		if s := all[i]; s != nil {
			free, i = i+s.took, i+s.took-1
		} else if i+1-free == n {
			return free
		}
	}
	return min(free, len(all))
}

// remove frees a segment without rows.
func (l *Log) remove(number int) error {
	s := l.segment(number)
	l.replace(number, nil)
	l.holes.Add(-s.size.Load())
	if l.last == number {
		l.last = -1
	}
	err := s.f.Close()
	switch {
	case s.marked: // the last checkpoint may still want it
		l.grave.paths = append(l.grave.paths, s.path)
	case s.kept:
		err = errors.Join(err, l.fs.Remove(s.path))
	}
	if err != nil {
		return fmt.Errorf("rows on disk: %w", err)
	}
	return nil
}

// Free gives up a row of so many bytes.
func (l *Log) Free(address uint64, row int) {
	n := int64(frameSize(row))
	l.segment(int(address / l.units())).live.Add(-n)
	l.live.Add(-n)
	l.holes.Add(n)
}

// Live returns the bytes of rows that are not given up.
func (l *Log) Live() int64 { return l.live.Load() }

// Size returns the bytes of the files.
func (l *Log) Size() int64 { return l.live.Load() + l.holes.Load() }

// Close frees everything. Files of a log that is kept stay if a mark knows of them.
func (l *Log) Close() error {
	var errs []error
	for number, s := range *l.segments.Load() {
		if s != nil {
			errs = append(errs, l.remove(number))
		}
	}
	l.segments.Store(new([]*segment))
	l.last = -1
	l.live.Store(0)
	l.holes.Store(0)
	return errors.Join(errs...)
}
