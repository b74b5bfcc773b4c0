package window

import (
	"encoding/binary"
	"slices"
)

// Unaligned keeps the contents of windows of which each key has its own. A window has a
// number that [Unaligned.Open] gives and that never changes, whatever becomes of its bounds,
// and an expected trigger time: when it is to be read, as far as is known. Its contents are
// values that were appended, or one value of fixed size that is changed.
//
// When memory is short the windows that are expected last go to disk, ordered by that time,
// so that what is read together is together.
type Unaligned struct {
	width   int // of a value that is changed; 0 for values that are appended
	merge   func(into, from []byte)
	blocks  blocks
	disk    disk
	options Options
	stats   Stats

	windows []unaligned // by number
	unused  []uint32    // numbers
	out     []byte
	ends    []int
	loaded  loaded
	read    []byte
	freed   bool  // something on disk is not wanted any more, and was not looked at
	passed  int64 // bytes that were gone through the last time that windows were fetched, or 0
	debt    int64 // bytes that could have been read in a row instead of what was read one by one
}

type unaligned struct {
	expected    int64
	first, last place   // blocks of memory, in order
	pieces      []piece // what is on disk, which is older
	fetched     bool    // it was on disk, and is in memory again
}

// windowBytes is about what a window takes beside its contents.
const windowBytes = 64

// NewUnaligned returns an empty store. With a width, a multiple of eight, each window has one
// value of so many bytes, and merge adds the second of two to the first.
func NewUnaligned(o Options, width int, merge func(into, from []byte)) *Unaligned {
	s := &Unaligned{width: width, merge: merge}
	s.blocks = blocks{whole: width > 0, chunks: chunks{limit: max(o.Limit, LimitMin), stats: &s.stats}}
	s.disk, s.options = newDisk(&o, &s.stats), o
	return s
}

// Open returns the number of a new, empty window. Numbers of windows that are gone come again.
func (s *Unaligned) Open() (uint32, error) {
	if n := len(s.unused); n > 0 {
		id := s.unused[n-1]
		s.unused = s.unused[:n-1]
		return id, nil
	}
	for !s.blocks.chunks.charge(windowBytes) {
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
	s.windows = append(s.windows, unaligned{})
	return uint32(len(s.windows) - 1), nil
}

// Append adds a value to a window, which is expected to be read at that time.
func (s *Unaligned) Append(id uint32, expected int64, value []byte) error {
	s.stats.UserBytes += int64(len(value))
	var head [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(head[:], uint64(len(value)))
	if err := s.extend(id, head[:n]); err != nil {
		return err
	}
	s.windows[id].expected = expected
	return s.extend(id, value)
}

// extend adds bytes to the contents of a window. When what is there went to disk in between,
// the bytes go on behind it.
func (s *Unaligned) extend(id uint32, data []byte) error {
	for {
		w := &s.windows[id]
		if w.last != 0 {
			data = s.blocks.fill(w.last, data)
		}
		if len(data) == 0 {
			return nil
		}
		if err := s.grow(id, s.blocks.next(w.last)); err != nil {
			return err
		}
	}
}

// grow gives a window another block.
func (s *Unaligned) grow(id uint32, class int) error {
	p := s.blocks.take(class)
	for ; p == 0; p = s.blocks.take(class) {
		if err := s.spill(); err != nil {
			return err
		}
	}
	w := &s.windows[id]
	if w.last == 0 {
		w.first = p
	} else {
		s.blocks.link(w.last, p)
	}
	w.last = p
	return nil
}

// At returns the value of a window, to be changed until the next call, and whether it is new
// and all zero. A value that is on disk is not new, but zero: both are merged when it is read.
func (s *Unaligned) At(id uint32, expected int64) (acc []byte, fresh bool, err error) {
	w := &s.windows[id]
	w.expected = expected
	if w.first != 0 {
		return s.blocks.bytes(w.first)[:s.width], false, nil
	}
	if len(w.pieces) == 0 {
		s.stats.UserBytes += int64(s.width)
	}
	if err := s.grow(id, classOf(s.width)); err != nil {
		return nil, false, err
	}
	w = &s.windows[id]
	acc = s.blocks.use(w.first, s.width)
	clear(acc)
	return acc, true, nil
}

// Merge moves the contents of a window behind those of another one, and forgets it.
func (s *Unaligned) Merge(into, from uint32) error {
	a, b := &s.windows[into], &s.windows[from]
	if s.width > 0 && a.first != 0 && b.first != 0 {
		s.merge(s.blocks.bytes(a.first)[:s.width], s.blocks.bytes(b.first)[:s.width])
		s.blocks.free(b.first)
		b.first, b.last = 0, 0
	}
	if s.width == 0 && a.first != 0 && len(b.pieces) > 0 { // memory comes behind what is on disk
		if err := s.write([]uint32{into}); err != nil {
			return err
		}
		a, b = &s.windows[into], &s.windows[from]
	}
	a.pieces = append(a.pieces, b.pieces...)
	switch {
	case b.first == 0:
	case a.first == 0:
		a.first, a.last = b.first, b.last
	default:
		s.blocks.link(a.last, b.first)
		a.last = b.last
	}
	a.expected = max(a.expected, b.expected)
	a.fetched = a.fetched || b.fetched
	*b = unaligned{pieces: b.pieces[:0]}
	s.unused = append(s.unused, from)
	return nil
}

// spill takes the windows that are expected last to disk, half of the memory.
func (s *Unaligned) spill() error { return s.spillTo(s.blocks.used / 2) }

// spillTo takes windows to disk until contents in memory have no more than so many bytes.
func (s *Unaligned) spillTo(target int64) error {
	var ids []uint32
	for id := range s.windows {
		if s.windows[id].first != 0 {
			ids = append(ids, uint32(id))
		}
	}
	if len(ids) == 0 && s.blocks.empty() { // memory is for windows themselves
		return nil
	}
	if len(ids) == 0 {
		return errOpen(len(s.windows)-len(s.unused), s.blocks.chunks.limit)
	}
	slices.SortFunc(ids, func(a, b uint32) int {
		if x, y := s.windows[a].expected, s.windows[b].expected; x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return int(a) - int(b)
	})
	left := s.blocks.used
	keep := len(ids)
	for keep > 0 && left > target || keep == len(ids) {
		keep--
		left -= s.blocks.size(s.windows[ids[keep]].first)
	}
	s.stats.Spills++
	return s.write(ids[keep:])
}

// write puts the contents in memory of some windows on disk, a row each.
func (s *Unaligned) write(ids []uint32) error {
	const most = 256 << 10
	for len(ids) > 0 {
		s.out, s.ends = s.out[:0], s.ends[:0]
		n := 0
		for ; n < len(ids) && len(s.out) < most; n++ {
			s.out = s.blocks.append(s.out, s.windows[ids[n]].first)
			s.ends = append(s.ends, len(s.out))
		}
		pieces, err := s.disk.put(s.out, s.ends)
		if err != nil {
			return err
		}
		for i, id := range ids[:n] {
			w := &s.windows[id]
			s.blocks.free(w.first)
			w.first, w.last, w.fetched = 0, 0, false
			w.pieces = append(w.pieces, pieces[i])
		}
		ids = ids[n:]
	}
	return nil
}

// Each yields the contents of windows in the given order. What is on disk of them is read
// many windows at a time, in the order in which it is there, or, where that costs less, with what is
// expected to be read soon; what very many have is put in order before. The bytes are valid during the
// call: a value that is changed, or appended ones, see [Contents].
func (s *Unaligned) Each(ids []uint32, yield func(i int, contents []byte) error) error {
	gathers, upTo, most := true, 0, 0
	for from := 0; from < len(ids); {
		if gathers && from == upTo {
			n, size, err := s.gather(ids[from:])
			if err != nil {
				return err
			}
			gathers, upTo, most = n > 0, from+n, size
		}
		some := ids[from:]
		if gathers {
			some = ids[from:upTo]
		} else if err := s.fetch(some); err != nil {
			return err
		}
		n, err := s.loaded.load(s, some, most)
		if err != nil {
			return err
		}
		for i := from; i < from+n; i++ {
			if err := yield(i, s.contents(ids[i], i-from)); err != nil {
				return err
			}
		}
		from += n
	}
	return nil
}

// contents returns what a window has, window i of those that are loaded.
func (s *Unaligned) contents(id uint32, i int) []byte {
	w := &s.windows[id]
	s.read = s.read[:0]
	rows := s.loaded.rows(i)
	if s.width == 0 {
		for _, row := range rows {
			s.read = append(s.read, s.loaded.data[row.from:row.to]...)
		}
		return s.blocks.append(s.read, w.first)
	}
	for k, row := range rows {
		if k == 0 {
			s.read = append(s.read, s.loaded.data[row.from:row.to]...)
		} else {
			s.merge(s.read, s.loaded.data[row.from:row.to])
		}
	}
	if len(rows) == 0 && w.first != 0 {
		s.read = append(s.read, s.blocks.bytes(w.first)[:s.width]...)
	} else if len(rows) > 0 && w.first != 0 {
		s.merge(s.read, s.blocks.bytes(w.first)[:s.width])
	}
	return s.read
}

// Drop forgets windows.
func (s *Unaligned) Drop(ids []uint32) error {
	onDisk := s.freed
	s.freed = false
	for _, id := range ids {
		w := &s.windows[id]
		if len(w.pieces) > 0 {
			onDisk = true
			s.disk.free(w.pieces)
		}
		s.blocks.free(w.first)
		*w = unaligned{pieces: w.pieces[:0]}
		s.unused = append(s.unused, id)
	}
	if !onDisk {
		return nil
	}
	return s.disk.compact(s.pieces)
}

// pieces yields where contents are on disk.
func (s *Unaligned) pieces(yield func(p *piece) bool) {
	for id := range s.windows {
		for i := range s.windows[id].pieces {
			if !yield(&s.windows[id].pieces[i]) {
				return
			}
		}
	}
}

// Resize gives the store another limit of memory, and returns which it has: see [Store].
func (s *Unaligned) Resize(limit int64) (int64, error) {
	if s.blocks.used == 0 {
		s.blocks.empty()
	}
	return s.blocks.chunks.resize(limit, s.spill)
}

// Stats returns what the store did so far.
func (s *Unaligned) Stats() Stats { return s.stats }

// Files returns the paths of what is on disk, of a store that is kept.
func (s *Unaligned) Files() []string { return s.disk.log.Files() }

// Release gives back files that were given up before the store was last saved, when that
// counts.
func (s *Unaligned) Release() error { return s.disk.log.Release() }

// Close gives files back. Nothing is to be asked for after that. What was saved stays.
func (s *Unaligned) Close() error { return s.disk.log.Close() }

// Contents yields the values in what Each yields of a window.
func Contents(contents []byte) func(yield func(value []byte) bool) {
	return func(yield func([]byte) bool) {
		for len(contents) > 0 {
			n, size := binary.Uvarint(contents)
			contents = contents[size:]
			if !yield(contents[:n]) {
				return
			}
			contents = contents[n:]
		}
	}
}
