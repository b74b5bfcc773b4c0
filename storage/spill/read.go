package spill

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

const (
	readMax = 64 << 10 // bytes that are read at once
	gapMax  = 4 << 10  // bytes nobody wants that are read along
	readMin = 64

	scanMax    = 1 << 20 // of who reads much of the log
	scanGapMax = 64 << 10
)

// Row returns the row at an address, in buf, which is memory of the caller.
func (l *Log) Row(address uint64, buf *[]byte) ([]byte, error) {
	s, offset := l.place(address)
	row, err := s.readRow(offset, l.guess(), buf)
	if err == nil {
		err = s.check(row, offset)
	}
	if err != nil {
		return nil, err
	}
	return row[headSize:], nil
}

// guess is how much of a row is read before its size is known: most have about that of the
// last ones.
func (l *Log) guess() int {
	return (frameSize(int(l.mean.Load())*5/4) + readMin - 1) &^ (readMin - 1)
}

// Read yields the rows at the addresses, which are in ascending order, each with its place
// among them. Rows that stand near each other are read at once. The bytes are valid during
// the call; buf is memory of the caller, to be used again.
func (l *Log) Read(addresses []uint64, buf *[]byte, yield func(i int, row []byte) error) error {
	return l.read(addresses, gapMax, readMax, buf, yield)
}

// Scan does as Read, for rows that are many: it reads past others rather than seek.
func (l *Log) Scan(addresses []uint64, buf *[]byte, yield func(i int, row []byte) error) error {
	return l.read(addresses, scanGapMax, scanMax, buf, yield)
}

// ScanBytes returns how many bytes Scan goes through in a row for rows at the addresses, about: from each row to the
// next one that it reads along.
func (l *Log) ScanBytes(addresses []uint64) (n int64) {
	for i, a := range addresses {
		if i > 0 {
			if gap := int64(a-addresses[i-1]) * unit; gap <= scanGapMax {
				n += gap
			}
		}
	}
	return n
}

// Reads returns how many reads Read makes of rows at the addresses, about.
func (l *Log) Reads(addresses []uint64) (n int) {
	last := uint64(0)
	for i, a := range addresses {
		if i == 0 || (a-last)*unit > gapMax {
			n++
		}
		last = a
	}
	return n
}

func (l *Log) read(addresses []uint64, gapMax, readMax int, buf *[]byte, yield func(i int, row []byte) error) error {
	tail := l.guess()
	for i := 0; i < len(addresses); {
		s, first := l.place(addresses[i])
		n, end := 1, first+tail
		for i+n < len(addresses) {
			t, at := l.place(addresses[i+n])
			if t != s || at-end > gapMax || at+tail-first > readMax {
				break
			}
			end = at + tail
			n++
		}
		if err := l.readGroup(s, addresses[i:i+n], end-first, buf, func(k int, row []byte) error { return yield(i+k, row) }); err != nil {
			return err
		}
		i += n
	}
	return nil
}

// place returns the segment of an address and the offset there.
func (l *Log) place(address uint64) (s *segment, offset int) {
	return l.segment(int(address / l.units())), int(address % l.units() * unit)
}

// readGroup reads so many bytes from the first address on, and yields the rows.
func (l *Log) readGroup(s *segment, addresses []uint64, size int, buf *[]byte, yield func(i int, row []byte) error) error {
	_, first := l.place(addresses[0])
	read, err := s.read(first, size, buf)
	if err != nil {
		return err
	}
	for i, address := range addresses {
		_, offset := l.place(address)
		row, whole := frame(read[min(offset-first, len(read)):])
		if row == nil {
			if whole == 0 {
				whole = headSize
			}
			var own []byte // the group is still wanted
			if row, err = s.readRow(offset, whole, &own); err != nil {
				return err
			}
		}
		if err := s.check(row, offset); err != nil {
			return err
		}
		if err := yield(i, row[headSize:]); err != nil {
			return err
		}
	}
	return nil
}

// frame returns the header and the row at the front of b, nil when b is too short, and then
// how many bytes it takes, if that can be seen.
func frame(b []byte) (row []byte, whole int) {
	if len(b) < headSize {
		return nil, 0
	}
	whole = headSize + int(binary.LittleEndian.Uint32(b[4:]))
	if whole > len(b) {
		return nil, whole
	}
	return b[:whole], whole
}

// readRow reads a row that takes at least so many bytes.
func (s *segment) readRow(offset, size int, buf *[]byte) ([]byte, error) {
	for {
		read, err := s.read(offset, size, buf)
		if err != nil {
			return nil, err
		}
		row, whole := frame(read)
		if row != nil {
			return row, nil
		}
		if whole <= len(read) || whole > int(s.size.Load())-offset {
			return nil, s.damaged(offset)
		}
		size = whole
	}
}

// read reads so many bytes, less at the end of the file.
func (s *segment) read(offset, size int, buf *[]byte) ([]byte, error) {
	size = max(0, min(size, int(s.size.Load())-offset))
	*buf = slices.Grow((*buf)[:0], size)[:size]
	if n, err := s.f.ReadAt(*buf, int64(offset)); n < size {
		return nil, fmt.Errorf("rows on disk: read %s at %d: %w", s.path, offset, err)
	}
	return *buf, nil
}

func (s *segment) check(row []byte, offset int) error {
	if crc32.Checksum(row[4:], castagnoli) != binary.LittleEndian.Uint32(row) {
		return s.damaged(offset)
	}
	return nil
}

func (s *segment) damaged(offset int) error {
	return fmt.Errorf("rows on disk: %s is damaged at %d: the disk gives back other bytes than were written", s.path, offset)
}

// Each yields the rows that are in the files, those that are given up included, in the order
// of their addresses. It stops at an error of yield and returns it.
func (l *Log) Each(yield func(address uint64, row []byte) error) error {
	for number, s := range *l.segments.Load() {
		if s == nil {
			continue
		}
		if err := l.rows(number, yield); err != nil {
			return err
		}
	}
	return nil
}

// rows yields the rows of a segment.
func (l *Log) rows(number int, yield func(address uint64, row []byte) error) error {
	const piece = 1 << 20
	s := l.segment(number)
	var buf []byte
	for offset := unit; offset < int(s.size.Load()); {
		read, err := s.read(offset, piece, &buf)
		if err != nil {
			return err
		}
		row, whole := frame(read)
		if row == nil { // one that is longer than a piece
			if row, err = s.readRow(offset, max(whole, headSize), &buf); err != nil {
				return err
			}
			read = row
		}
		for row != nil {
			if err := s.check(row, offset); err != nil {
				return err
			}
			if err := yield(uint64(number)*l.units()+uint64(offset/unit), row[headSize:]); err != nil {
				return err
			}
			n := frameSize(len(row) - headSize)
			offset += n
			read = read[min(n, len(read)):]
			row, _ = frame(read)
		}
	}
	return nil
}

// Sweep frees segments without rows.
func (l *Log) Sweep() error {
	for number, s := range *l.segments.Load() {
		if s != nil && number != l.last && s.live.Load() == 0 {
			if err := l.remove(number); err != nil {
				return err
			}
		}
	}
	return nil
}

// Compact frees segments without rows, and empties others until holes do not outweigh rows. It
// asks for each row there whether it is still wanted, adds those that are at the end, and
// tells their new addresses. It takes time proportional to what was added since the last call.
func (l *Log) Compact(wanted func(address uint64, row []byte) bool, moved func(row []byte, from, to uint64)) error {
	if err := l.Sweep(); err != nil {
		return err
	}
	for worst := l.worst(); worst >= 0; worst = l.worst() {
		if err := l.empty(worst, wanted, moved); err != nil {
			return err
		}
	}
	return nil
}

// empty moves the rows of a segment to the end.
func (l *Log) empty(worst int, wanted func(address uint64, row []byte) bool, moved func(row []byte, from, to uint64)) error {
	var data []byte
	var ends []int
	var from []uint64
	err := l.rows(worst, func(address uint64, row []byte) error {
		if wanted(address, row) {
			data, from = append(data, row...), append(from, address)
			ends = append(ends, len(data))
		}
		return nil
	})
	if err != nil {
		return err
	}
	to := make([]uint64, len(ends))
	if err := l.Append(data, ends, to); err != nil {
		return err
	}
	at := 0
	for i, end := range ends {
		moved(data[at:end], from[i], to[i])
		l.Free(from[i], end-at)
		at = end
	}
	return l.remove(worst)
}

// worst returns the number of the segment to be emptied, or -1.
func (l *Log) worst() int {
	if l.holes.Load() <= l.live.Load()+int64(l.whole) {
		return -1
	}
	worst, all := -1, *l.segments.Load()
	for number, s := range all {
		if s == nil || number == l.last {
			continue
		}
		if worst < 0 || s.live.Load()*all[worst].size.Load() < all[worst].live.Load()*s.size.Load() {
			worst = number
		}
	}
	return worst
}
