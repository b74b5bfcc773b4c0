package window

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// Lists keeps the tuples of windows whose bounds are the same for all keys: the store for
// aggregates that need all tuples at once. Tuples are added to their window as they come,
// without any index. When a window goes to disk they are grouped by ranges of hashes, so that
// it is read, group by group, in a part of the memory that it would take.
type Lists struct {
	shared  uint
	chunks  chunks
	disk    disk
	options Options
	stats   Stats

	windows map[Span]*list
	last    *list
	out     []byte
	ends    []int
	refs    []ref
	group   []byte // tuples of one group that is read
}

// list is the contents of one window.
type list struct {
	span   Span
	chunks [][]byte
	ends   []int // bytes used of each
	spills []spilled
}

// spilled is a part of a window on disk: a row for each group that has tuples.
type spilled [groups]piece

// groups is into how many ranges hashes are cut.
const (
	groups    = 64
	groupBits = 6
)

// A tuple in a chunk, in a row and in a group that was read is
//
//	hash uint64 | length of the key uint16 | of the value uint16 | key | value
//
// A tuple does not cross the end of a chunk.
const tupleHead = 12

// ref is where a tuple is in a group that was read.
type ref struct {
	hash uint64
	at   uint32
}

// NewLists returns an empty store.
func NewLists(o Options) *Lists {
	s := &Lists{shared: o.Shared, windows: map[Span]*list{}}
	s.chunks = chunks{limit: max(o.Limit, LimitMin), stats: &s.stats}
	s.disk, s.options = newDisk(&o, &s.stats), o
	return s
}

// Append adds a value to the list of a key in a window. Both are copied.
func (s *Lists) Append(w Span, hash uint64, key, value []byte) error {
	l := s.last
	if l == nil || l.span != w {
		var err error
		if l, err = s.list(w); err != nil {
			return err
		}
		s.last = l
	}
	size := tupleHead + len(key) + len(value)
	if size > chunkSize {
		return fmt.Errorf("a key and a value of %d bytes: at most %d are allowed", len(key)+len(value), chunkSize-tupleHead)
	}
	n := len(l.ends) - 1
	if n < 0 || l.ends[n]+size > chunkSize {
		if err := s.chunk(l); err != nil {
			return err
		}
		n = len(l.ends) - 1
	}
	e := l.chunks[n][l.ends[n]:]
	l.ends[n] += size
	binary.LittleEndian.PutUint64(e, hash)
	binary.LittleEndian.PutUint16(e[8:], uint16(len(key)))
	binary.LittleEndian.PutUint16(e[10:], uint16(len(value)))
	copy(e[tupleHead:], key)
	copy(e[tupleHead+len(key):], value)
	s.stats.UserBytes += int64(len(key) + len(value))
	return nil
}

func (s *Lists) list(w Span) (*list, error) {
	if l := s.windows[w]; l != nil {
		return l, nil
	}
	for !s.chunks.charge(partBytes) {
		if err := s.spill(); err != nil {
			return nil, err
		}
	}
	l := &list{span: w}
	s.windows[w] = l
	return l, nil
}

// chunk gives a window another chunk.
func (s *Lists) chunk(l *list) error {
	for {
		if chunk := s.chunks.take(); chunk != nil {
			l.chunks, l.ends = append(l.chunks, chunk), append(l.ends, 0)
			return nil
		}
		if err := s.spill(); err != nil {
			return err
		}
	}
}

// spill takes windows to disk.
func (s *Lists) spill() error { return spillLast(&s.chunks, s.windows, s.write) }

func (l *list) bounds() Span { return l.span }

// spillable returns how much memory the tuples of a window take.
func (l *list) spillable() int64 { return int64(len(l.chunks)) * chunkSize }

// write puts the tuples of a window on disk, a row for each group. So many chunks are written
// at once that the copy stays small.
func (s *Lists) write(l *list) error {
	const most = 60 // a little less than what the log keeps memory for
	for len(l.chunks) > 0 {
		n := min(most, len(l.chunks))
		if err := s.writeChunks(l, n); err != nil {
			return err
		}
		s.chunks.give(l.chunks[:n])
		l.chunks, l.ends = l.chunks[n:], l.ends[n:]
	}
	l.chunks, l.ends = nil, nil
	return nil
}

func (s *Lists) writeChunks(l *list, n int) error {
	var sizes, at [groups]int
	total := 0
	for i := range n {
		for b := l.chunks[i][:l.ends[i]]; len(b) > 0; {
			size := tupleSize(b)
			sizes[s.groupOf(b)] += size
			total += size
			b = b[size:]
		}
	}
	s.out, s.ends = slices.Grow(s.out[:0], total)[:total], s.ends[:0]
	end := 0
	for g, size := range sizes {
		at[g] = end
		end += size
		if size > 0 {
			s.ends = append(s.ends, end)
		}
	}
	for i := range n {
		for b := l.chunks[i][:l.ends[i]]; len(b) > 0; {
			size, g := tupleSize(b), s.groupOf(b)
			copy(s.out[at[g]:], b[:size])
			at[g] += size
			b = b[size:]
		}
	}
	pieces, err := s.disk.put(s.out, s.ends)
	if err != nil {
		return err
	}
	var sp spilled
	for g, size := range sizes {
		if size > 0 {
			sp[g], pieces = pieces[0], pieces[1:]
		}
	}
	l.spills = append(l.spills, sp)
	return nil
}

func (s *Lists) groupOf(tuple []byte) int {
	return int(binary.LittleEndian.Uint64(tuple) << s.shared >> (64 - groupBits))
}

// tupleSize returns how many bytes the tuple at the front takes.
func tupleSize(b []byte) int {
	return tupleHead + int(binary.LittleEndian.Uint16(b[8:])) + int(binary.LittleEndian.Uint16(b[10:]))
}

// Values are those of one key in a window, in the order in which they came.
type Values struct {
	group []byte
	refs  []ref
	plain [][]byte // instead of both
}

// ValuesOf returns some values as stores yield them that are not of this package.
func ValuesOf(values [][]byte) Values { return Values{plain: values} }

// Len returns how many there are.
func (v *Values) Len() int { return len(v.refs) + len(v.plain) }

// At returns value i, valid as long as the values are.
func (v *Values) At(i int) []byte {
	if v.plain != nil {
		return v.plain[i]
	}
	b := v.group[v.refs[i].at:]
	n := int(binary.LittleEndian.Uint16(b[8:]))
	return b[tupleHead+n : tupleSize(b)]
}

// Each yields the keys of some windows with their values, those of one key in the order of
// the windows. Both are valid during the call. It takes the memory of a 64th of the
// tuples, if their keys are spread evenly.
func (s *Lists) Each(windows []Span, yield func(hash uint64, key []byte, values Values) error) error {
	var lists []*list
	for _, w := range windows {
		if l := s.windows[w]; l != nil {
			lists = append(lists, l)
		}
	}
	if sizeOf(lists) <= smallWindow {
		return s.eachSmall(lists, yield)
	}
	places := make([][groups][]uint32, len(lists))
	for i, l := range lists {
		places[i] = s.places(l)
	}
	for g := range groups {
		s.group = s.group[:0]
		for i, l := range lists {
			if err := s.read(l, g, places[i][g]); err != nil {
				return err
			}
		}
		if err := s.yieldGroup(yield); err != nil {
			return err
		}
	}
	return nil
}

// smallWindow is how many bytes windows have that are read at once, without regard to groups.
const smallWindow = 64 << 10

// sizeOf returns how many bytes of tuples some windows have.
func sizeOf(lists []*list) (n int64) {
	for _, l := range lists {
		for _, end := range l.ends {
			n += int64(end)
		}
		for i := range l.spills {
			for _, p := range l.spills[i] {
				n += int64(p.size)
			}
		}
	}
	return n
}

// eachSmall yields what windows have that are small.
func (s *Lists) eachSmall(lists []*list, yield func(hash uint64, key []byte, values Values) error) error {
	s.group, s.refs = s.group[:0], s.refs[:0]
	for _, l := range lists {
		for i := range l.spills {
			for _, p := range l.spills[i] {
				if err := s.readPiece(p); err != nil {
					return err
				}
			}
		}
		for i, chunk := range l.chunks {
			s.group = append(s.group, chunk[:l.ends[i]]...)
		}
	}
	for at := 0; at < len(s.group); at += tupleSize(s.group[at:]) {
		s.refs = append(s.refs, ref{binary.LittleEndian.Uint64(s.group[at:]), uint32(at)})
	}
	slices.SortFunc(s.refs, s.compare)
	return s.yieldSorted(yield)
}

// places returns where in memory the tuples of each group are: number of the chunk and byte.
func (s *Lists) places(l *list) (at [groups][]uint32) {
	var counts [groups]int
	total := 0
	for i, chunk := range l.chunks {
		for b := chunk[:l.ends[i]]; len(b) > 0; b = b[tupleSize(b):] {
			counts[s.groupOf(b)]++
			total++
		}
	}
	all := make([]uint32, total)
	for g, n := range counts {
		at[g], all = all[:0:n], all[n:]
	}
	for i, chunk := range l.chunks {
		for from := 0; from < l.ends[i]; from += tupleSize(chunk[from:]) {
			g := s.groupOf(chunk[from:])
			at[g] = append(at[g], uint32(i*chunkSize+from))
		}
	}
	return at
}

// readPiece adds the tuples of a piece, if there is one, to those that are read.
func (s *Lists) readPiece(p piece) error {
	if p.size == 0 {
		return nil
	}
	row, err := s.disk.get(p)
	s.group = append(s.group, row...)
	return err
}

// read adds the tuples of a group to those that are read, the oldest first.
func (s *Lists) read(l *list, g int, inMemory []uint32) error {
	for i := range l.spills {
		if err := s.readPiece(l.spills[i][g]); err != nil {
			return err
		}
	}
	for _, at := range inMemory {
		b := l.chunks[at/chunkSize][at%chunkSize:]
		s.group = append(s.group, b[:tupleSize(b)]...)
	}
	return nil
}

func (s *Lists) yieldGroup(yield func(hash uint64, key []byte, values Values) error) error {
	s.sort()
	return s.yieldSorted(yield)
}

func (s *Lists) yieldSorted(yield func(hash uint64, key []byte, values Values) error) error {
	for from := 0; from < len(s.refs); {
		first := s.refs[from]
		to := from + 1
		for to < len(s.refs) && s.refs[to].hash == first.hash && bytes.Equal(s.key(s.refs[to]), s.key(first)) {
			to++
		}
		if err := yield(first.hash, s.key(first), Values{group: s.group, refs: s.refs[from:to]}); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// buckets is into how many ranges the hashes of a group are cut to be sorted.
const (
	bucketBits = 11
	buckets    = 1 << bucketBits
)

// sort makes refs those of all tuples of the group, by hash and key, and for one key in the
// order in which they came: by counting into ranges of hashes, which then are short.
func (s *Lists) sort() {
	var ends [buckets + 1]int32
	bucket := func(at int) uint64 {
		return binary.LittleEndian.Uint64(s.group[at:]) << (s.shared + groupBits) >> (64 - bucketBits)
	}
	n := 0
	for at := 0; at < len(s.group); at += tupleSize(s.group[at:]) {
		ends[bucket(at)+1]++
		n++
	}
	for i := 1; i < len(ends); i++ {
		ends[i] += ends[i-1]
	}
	s.refs = slices.Grow(s.refs[:0], n)[:n]
	next := ends
	for at := 0; at < len(s.group); at += tupleSize(s.group[at:]) {
		b := bucket(at)
		s.refs[next[b]] = ref{binary.LittleEndian.Uint64(s.group[at:]), uint32(at)}
		next[b]++
	}
	for i := range buckets {
		if some := s.refs[ends[i]:ends[i+1]]; len(some) > 1 {
			slices.SortFunc(some, s.compare)
		}
	}
}

func (s *Lists) compare(a, b ref) int {
	switch {
	case a.hash < b.hash:
		return -1
	case a.hash > b.hash:
		return 1
	}
	if d := bytes.Compare(s.key(a), s.key(b)); d != 0 {
		return d
	}
	return int(a.at) - int(b.at)
}

func (s *Lists) key(r ref) []byte {
	b := s.group[r.at:]
	return b[tupleHead : tupleHead+int(binary.LittleEndian.Uint16(b[8:]))]
}

// Drop forgets a window.
func (s *Lists) Drop(w Span) error {
	l := s.windows[w]
	if l == nil {
		return nil
	}
	for i := range l.spills {
		for _, p := range l.spills[i] {
			if p.size > 0 {
				s.disk.free([]piece{p})
			}
		}
	}
	s.chunks.give(l.chunks)
	s.chunks.charge(-partBytes)
	delete(s.windows, w)
	s.last = nil
	if len(l.spills) == 0 {
		return nil
	}
	return s.disk.compact(s.pieces)
}

// pieces yields where tuples are on disk.
func (s *Lists) pieces(yield func(p *piece) bool) {
	for _, l := range s.windows {
		for i := range l.spills {
			for g := range l.spills[i] {
				if p := &l.spills[i][g]; p.size > 0 && !yield(p) {
					return
				}
			}
		}
	}
}

// Resize gives the store another limit of memory, and returns which it has: see [Store].
func (s *Lists) Resize(limit int64) (int64, error) { return s.chunks.resize(limit, s.spill) }

// Stats returns what the store did so far.
func (s *Lists) Stats() Stats { return s.stats }

// Files returns the paths of what is on disk, of a store that is kept.
func (s *Lists) Files() []string { return s.disk.log.Files() }

// Release gives back files that were given up before the store was last saved, when that
// counts.
func (s *Lists) Release() error { return s.disk.log.Release() }

// Close gives files back. Nothing is to be asked for after that. What was saved stays.
func (s *Lists) Close() error { return s.disk.log.Close() }
