package window

import "fmt"

// Accumulators keeps one value of fixed size per key and window: the store for aggregates
// that are computed as tuples come. A value that is on disk is not read to be changed: what
// comes for its key is collected in another one, and both are merged when the window fires.
type Accumulators struct {
	width   int
	merge   func(into, from []byte)
	shared  uint
	chunks  chunks
	disk    disk
	options Options
	stats   Stats

	windows map[Span]*part
	last    *part // of the window that was asked for last
	out     []byte
	ends    []int
}

// part is the contents of one window.
type part struct {
	span  Span
	table table
	runs  [][]piece // on disk, each in order
}

// NewAccumulators returns an empty store of values of width bytes, a multiple of eight. Merge
// adds the second of two values of one key, which is the later one, to the first.
func NewAccumulators(o Options, width int, merge func(into, from []byte)) *Accumulators {
	s := &Accumulators{width: width, merge: merge, shared: o.Shared, windows: map[Span]*part{}}
	s.chunks = chunks{limit: max(o.Limit, LimitMin), stats: &s.stats}
	s.disk, s.options = newDisk(&o, &s.stats), o
	return s
}

// At returns the value of a key in a window, and whether it is new and all zero. It may be
// changed until the next call.
func (s *Accumulators) At(w Span, hash uint64, key []byte) (acc []byte, fresh bool, err error) {
	p := s.last
	if p == nil || p.span != w {
		if p, err = s.part(w); err != nil {
			return nil, false, err
		}
		s.last = p
	}
	if p.table.homes > 0 {
		if acc, _ = p.table.find(hash, key); acc != nil {
			return acc, false, nil
		}
	}
	acc, err = s.add(p, hash, key)
	return acc, true, err
}

// partBytes is about what a window takes beside its contents.
const partBytes = 256

// part returns the contents of a window, which may be new.
func (s *Accumulators) part(w Span) (*part, error) {
	if p := s.windows[w]; p != nil {
		return p, nil
	}
	if err := s.charge(partBytes); err != nil {
		return nil, err
	}
	p := &part{span: w, table: table{width: s.width, shared: s.shared}}
	s.windows[w] = p
	return p, nil
}

// add puts a key into a window that does not have it.
func (s *Accumulators) add(p *part, hash uint64, key []byte) ([]byte, error) {
	if p.table.size(key) > chunkSize {
		return nil, fmt.Errorf("a key of %d bytes: at most %d are allowed", len(key), chunkSize-entryHead-s.width-unit)
	}
	s.stats.UserBytes += int64(len(key) + s.width)
	for {
		switch {
		case p.table.full(): // what makes room may be this window's going to disk
			if err := s.grow(p); err != nil {
				return nil, err
			}
		case !p.table.fits(key):
			if err := s.lengthen(p); err != nil {
				return nil, err
			}
		default:
			_, at := p.table.find(hash, key)
			if acc := p.table.add(hash, key, at); acc != nil {
				return acc, nil
			}
			p.table.lengthen() // hashes crowd, very rarely
			s.chunks.force(overhang * 8)
		}
	}
}

// lengthen gives a window another chunk.
func (s *Accumulators) lengthen(p *part) error {
	chunk := s.chunks.take()
	if chunk == nil {
		return s.spill()
	}
	p.table.chunks, p.table.next = append(p.table.chunks, chunk), 0
	return nil
}

// grow gives a window a larger index, or its first one.
func (s *Accumulators) grow(p *part) error {
	before := p.table.homes
	homes := max(2*before, homesMin)
	if err := s.charge(indexBytes(homes)); err != nil {
		return err
	}
	if p.table.homes != before { // it went to disk
		s.chunks.charge(-indexBytes(homes))
		return nil
	}
	if before == 0 {
		p.table.lay(homes)
		return nil
	}
	old := p.table.bytes()
	p.table.grow()
	s.chunks.force(p.table.bytes() - indexBytes(homes)) // of hashes that crowd
	s.chunks.charge(-old)
	return nil
}

// charge takes memory, for which windows go to disk if need be.
func (s *Accumulators) charge(bytes int64) error {
	for !s.chunks.charge(bytes) {
		if err := s.spill(); err != nil {
			return err
		}
	}
	return nil
}

// spill takes windows to disk.
func (s *Accumulators) spill() error { return spillLast(&s.chunks, s.windows, s.spillWindow) }

func (p *part) bounds() Span { return p.span }

// spillable returns how much memory becomes free when a window goes to disk. One without entries has an index
// at most, for which it would ask again.
func (p *part) spillable() int64 {
	if p.table.count == 0 {
		return 0
	}
	return p.bytes()
}

// spillWindow takes a window to disk.
func (s *Accumulators) spillWindow(last *part) error {
	last.table.sort()
	run, err := s.write(&cursor{t: &last.table})
	if err != nil {
		return err
	}
	s.empty(last)
	last.runs = append(last.runs, run)
	if len(last.runs) >= runsMax {
		return s.compact(last)
	}
	return nil
}

// bytes returns how much memory a window takes.
func (p *part) bytes() int64 { return p.table.bytes() + int64(len(p.table.chunks))*chunkSize }

// empty gives back the memory of a window.
func (s *Accumulators) empty(p *part) {
	if p.table.homes > 0 {
		s.chunks.give(p.table.chunks)
		s.chunks.charge(-p.table.bytes())
	}
	p.table = table{width: s.width, shared: s.shared}
}

// runsMax is how many runs a window has at most: to be merged, one block of each is in
// memory.
const runsMax = 16

// compact makes one run of those that a window has.
func (s *Accumulators) compact(p *part) error {
	m, err := newMerger(s.cursors(nil, p))
	if err != nil {
		return err
	}
	w := s.writer()
	err = m.each(s.width, s.merge, func(hash uint64, key, acc []byte) error { return w.add(hash, key, acc) })
	if err == nil {
		err = w.flush()
	}
	if err != nil {
		return err
	}
	s.free(p)
	p.runs = [][]piece{w.run}
	return s.tidy()
}

func (s *Accumulators) free(p *part) {
	for _, run := range p.runs {
		s.disk.free(run)
	}
	p.runs = nil
}

// write puts the entries of a cursor on disk.
func (s *Accumulators) write(c *cursor) ([]piece, error) {
	w := s.writer()
	for {
		ok, err := c.advance()
		if err != nil {
			return nil, err
		}
		if !ok {
			return w.run, w.flush()
		}
		if err := w.add(c.hash, c.key, c.acc); err != nil {
			return nil, err
		}
	}
}

// runWriter collects the blocks of a run.
type runWriter struct {
	s   *Accumulators
	run []piece
}

const (
	blockSize = 16 << 10 // bytes of a run, at least
	writeSize = 16 * blockSize
)

func (s *Accumulators) writer() *runWriter {
	s.out, s.ends = s.out[:0], s.ends[:0]
	return &runWriter{s: s}
}

func (w *runWriter) add(hash uint64, key, acc []byte) error {
	s := w.s
	s.out = appendEntry(s.out, hash, key, acc)
	begin := 0
	if n := len(s.ends); n > 0 {
		begin = s.ends[n-1]
	}
	if len(s.out)-begin < blockSize {
		return nil
	}
	s.ends = append(s.ends, len(s.out))
	if len(s.out) < writeSize {
		return nil
	}
	return w.flush()
}

func (w *runWriter) flush() error {
	s := w.s
	if n := len(s.ends); len(s.out) > 0 && (n == 0 || s.ends[n-1] < len(s.out)) {
		s.ends = append(s.ends, len(s.out))
	}
	pieces, err := s.disk.put(s.out, s.ends)
	w.run = append(w.run, pieces...)
	s.out, s.ends = s.out[:0], s.ends[:0]
	return err
}

// Each yields the keys of some windows with their values, those of one key merged in the
// order of the windows. Key and value are valid during the call, the value may be changed.
// It takes memory for one block of each part that is on disk.
func (s *Accumulators) Each(windows []Span, yield func(hash uint64, key, acc []byte) error) error {
	var all []*cursor
	for _, w := range windows {
		if p := s.windows[w]; p != nil {
			all = s.cursors(all, p)
		}
	}
	m, err := newMerger(all)
	if err != nil {
		return err
	}
	return m.each(s.width, s.merge, yield)
}

// cursors adds those of a window, the oldest part first.
func (s *Accumulators) cursors(all []*cursor, p *part) []*cursor {
	for _, run := range p.runs {
		all = append(all, &cursor{d: &s.disk, run: run, width: s.width})
	}
	if p.table.homes > 0 {
		p.table.sort()
		all = append(all, &cursor{t: &p.table})
	}
	return all
}

// Drop forgets a window.
func (s *Accumulators) Drop(w Span) error {
	p := s.windows[w]
	if p == nil {
		return nil
	}
	onDisk := len(p.runs) > 0
	s.free(p)
	s.empty(p)
	s.chunks.charge(-partBytes)
	delete(s.windows, w)
	s.last = nil
	if onDisk {
		return s.tidy()
	}
	return nil
}

// tidy gives back files of which little is wanted.
func (s *Accumulators) tidy() error {
	var err error
	if s.disk.log.Size() > 0 {
		err = s.disk.compact(s.pieces)
	}
	return err
}

// pieces yields where the contents of windows are on disk.
func (s *Accumulators) pieces(yield func(p *piece) bool) {
	for _, p := range s.windows {
		for _, run := range p.runs {
			for i := range run {
				if !yield(&run[i]) {
					return
				}
			}
		}
	}
}

// Windows returns the windows that have contents, the one that ends first at the front.
func (s *Accumulators) Windows() []Span { return spansOf(s.windows) }

// Resize gives the store another limit of memory, and returns which it has: see [Store].
func (s *Accumulators) Resize(limit int64) (int64, error) { return s.chunks.resize(limit, s.spill) }

// Stats returns what the store did so far.
func (s *Accumulators) Stats() Stats { return s.stats }

// Files returns the paths of what is on disk, of a store that is kept.
func (s *Accumulators) Files() []string { return s.disk.log.Files() }

// Release gives back files that were given up before the store was last saved, when that
// counts.
func (s *Accumulators) Release() error { return s.disk.log.Release() }

// Close gives files back. Nothing is to be asked for after that. What was saved stays.
func (s *Accumulators) Close() error { return s.disk.log.Close() }
