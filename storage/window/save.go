package window

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/heddle-stream/heddle/storage/spill"
)

// Items of a store that was saved are: the mark of its log, then for each window what it is, where
// its contents are on disk, and what it has in memory. Memory of one process becomes
// memory of another one as far as its limit allows.

// errSaved tells of items that no store saved.
var errSaved = errors.New("not what a store of windows saved")

// saver writes items. Numbers are varints.
type saver struct {
	add func(item []byte)
	buf []byte
}

func (w *saver) int(v int64)   { w.buf = binary.AppendVarint(w.buf, v) }
func (w *saver) span(s Span)   { w.int(s.Start); w.int(s.End) }
func (w *saver) piece(p piece) { w.int(int64(p.at)); w.int(int64(p.size)) }
func (w *saver) pieces(all []piece) {
	w.int(int64(len(all)))
	for _, p := range all {
		w.piece(p)
	}
}
func (w *saver) flush() { w.add(w.buf); w.buf = w.buf[:0] }

// loader reads them.
type loader struct {
	next func() ([]byte, error)
	rest []byte
	err  error
}

// item goes to the next item, and reports whether there is one.
func (r *loader) item() bool {
	if r.err != nil {
		return false
	}
	item, err := r.next()
	if err != nil {
		if !errors.Is(err, io.EOF) {
			r.err = err
		}
		return false
	}
	r.rest = item
	return true
}

func (r *loader) int() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// count returns a number of things that take at least a byte each.
func (r *loader) count() int {
	n := r.int()
	if n < 0 || n > int64(len(r.rest)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *loader) span() Span { return Span{r.int(), r.int()} }
func (r *loader) piece() piece {
	return piece{uint64(r.int()), uint32(r.int())}
}

func (r *loader) pieces() (all []piece) {
	for range r.count() {
		all = append(all, r.piece())
	}
	return all
}

// fail tells that items are not what was saved.
func (r *loader) fail() {
	if r.err == nil {
		r.err = errSaved
	}
	r.rest = nil
}

// save writes the mark of the log.
func (d *disk) save(w *saver) error {
	m, err := d.log.Mark()
	if err != nil {
		return err
	}
	bytes, err := json.Marshal(m)
	if err != nil {
		return err
	}
	w.add(bytes)
	return nil
}

// load opens the log as it was. It was empty.
func (d *disk) load(o *Options, r *loader) error {
	if !r.item() {
		r.fail()
		return r.err
	}
	var m spill.Mark
	if err := json.Unmarshal(r.rest, &m); err != nil {
		return fmt.Errorf("%w: %w", errSaved, err)
	}
	log, err := spill.OpenKept(o.FS, o.Name, m)
	if err != nil {
		return err
	}
	d.log = log
	d.measure()
	return nil
}

// Save hands out what the store has, as items that [Lists.Load] wants back, and makes what is on
// disk survive a crash, when the directory is synced, too. The store has to be one that is kept.
func (s *Lists) Save(add func(item []byte)) error {
	w := &saver{add: add}
	if err := s.disk.save(w); err != nil {
		return err
	}
	for _, span := range spansOf(s.windows) {
		l := s.windows[span]
		w.span(span)
		w.int(int64(len(l.spills)))
		w.int(int64(len(l.chunks)))
		w.flush()
		for i := range l.spills {
			for _, p := range l.spills[i] {
				w.piece(p)
			}
			w.flush()
		}
		for i, chunk := range l.chunks {
			w.add(chunk[:l.ends[i]])
		}
	}
	return nil
}

// Load makes an empty store what it was when it was saved. Next returns the items, and io.EOF
// behind the last one.
func (s *Lists) Load(next func() ([]byte, error)) error {
	r := &loader{next: next}
	if err := s.disk.load(&s.options, r); err != nil {
		return err
	}
	for r.item() {
		span, spills, chunks := r.span(), r.int(), r.int()
		l, err := s.list(span)
		if err != nil {
			return err
		}
		for ; spills > 0 && r.item(); spills-- {
			var sp spilled
			for g := range sp {
				sp[g] = r.piece()
			}
			l.spills = append(l.spills, sp)
		}
		for ; chunks > 0 && r.item(); chunks-- {
			if err := s.loadChunk(l, r.rest); err != nil {
				return err
			}
		}
		if spills != 0 || chunks != 0 {
			r.fail()
		}
	}
	return r.err
}

// loadChunk adds a chunk of tuples to a window.
func (s *Lists) loadChunk(l *list, tuples []byte) error {
	if len(tuples) > chunkSize || !wholeTuples(tuples) {
		return errSaved
	}
	if err := s.chunk(l); err != nil {
		return err
	}
	n := len(l.chunks) - 1
	l.ends[n] = copy(l.chunks[n], tuples)
	return nil
}

func wholeTuples(b []byte) bool {
	for len(b) > 0 {
		if len(b) < tupleHead || tupleSize(b) > len(b) {
			return false
		}
		b = b[tupleSize(b):]
	}
	return true
}

// Save does as that of [Lists]. All that is on disk comes first: who loads may have to take
// windows to disk, and then has to know what is wanted there.
func (s *Accumulators) Save(add func(item []byte)) error {
	w := &saver{add: add}
	if err := s.disk.save(w); err != nil {
		return err
	}
	spans := s.Windows()
	w.int(int64(len(spans)))
	w.flush()
	for _, span := range spans {
		p := s.windows[span]
		w.span(span)
		w.int(int64(p.table.count))
		w.int(int64(len(p.runs)))
		for _, run := range p.runs {
			w.pieces(run)
		}
		w.flush()
	}
	for _, span := range spans {
		s.windows[span].each(func(hash uint64, key, acc []byte) {
			w.buf = appendEntry(w.buf, hash, key, acc)
			w.flush()
		})
	}
	return nil
}

// each yields what a window has in memory.
func (p *part) each(yield func(hash uint64, key, acc []byte)) {
	for _, slot := range p.table.index {
		if slot != 0 {
			yield(p.table.entry(slot))
		}
	}
}

// Load does as that of [Lists].
func (s *Accumulators) Load(next func() ([]byte, error)) error {
	r := &loader{next: next}
	if err := s.disk.load(&s.options, r); err != nil {
		return err
	}
	if !r.item() {
		return errSaved
	}
	spans, entries := make([]Span, 0), make([]int64, 0)
	for n := r.int(); n > 0 && r.item(); n-- {
		span, inMemory := r.span(), r.int()
		p, err := s.part(span)
		if err != nil {
			return err
		}
		for range r.count() {
			p.runs = append(p.runs, r.pieces())
		}
		spans, entries = append(spans, span), append(entries, inMemory)
	}
	for i, span := range spans {
		for ; entries[i] > 0 && r.item(); entries[i]-- {
			if err := s.loadEntry(span, r.rest); err != nil {
				return err
			}
		}
		if entries[i] != 0 {
			r.fail()
		}
	}
	return r.err
}

// loadEntry adds an entry to a window.
func (s *Accumulators) loadEntry(w Span, entry []byte) error {
	behind := entryHead + s.width
	if len(entry) < behind {
		return errSaved
	}
	n := binary.LittleEndian.Uint64(entry[8:])
	if n > uint64(len(entry)-behind) {
		return errSaved
	}
	acc, fresh, err := s.At(w, binary.LittleEndian.Uint64(entry), entry[behind:behind+int(n)])
	if err == nil && !fresh {
		err = errSaved
	}
	if err != nil {
		return err
	}
	copy(acc, entry[entryHead:behind])
	return nil
}

// Save does as that of [Lists]. Windows keep their numbers.
func (s *Unaligned) Save(add func(item []byte)) error {
	w := &saver{add: add}
	if err := s.disk.save(w); err != nil {
		return err
	}
	w.int(int64(len(s.windows)))
	w.flush()
	gone := make([]bool, len(s.windows))
	for _, id := range s.unused {
		gone[id] = true
	}
	for id := range s.windows {
		if gone[id] {
			continue
		}
		x := &s.windows[id]
		w.int(int64(id))
		w.int(x.expected)
		w.pieces(x.pieces)
		w.buf = s.blocks.append(w.buf, x.first)
		w.flush()
	}
	return nil
}

// Load does as that of [Lists].
func (s *Unaligned) Load(next func() ([]byte, error)) error {
	r := &loader{next: next}
	if err := s.disk.load(&s.options, r); err != nil {
		return err
	}
	if !r.item() {
		return errSaved
	}
	n := r.int()
	if n < 0 || n >= 1<<31 {
		return errSaved
	}
	open := make([]bool, n)
	for range open {
		if _, err := s.Open(); err != nil {
			return err
		}
	}
	for r.item() {
		id, expected := r.int(), r.int()
		if id < 0 || id >= n || open[id] {
			return errSaved
		}
		open[id] = true
		s.windows[id].pieces, s.windows[id].expected = r.pieces(), expected
		if r.err == nil {
			if err := s.loadContents(uint32(id), expected, r.rest); err != nil {
				return err
			}
		}
	}
	for id, is := range open {
		if !is {
			s.unused = append(s.unused, uint32(id))
		}
	}
	return r.err
}

// loadContents adds what a window had in memory.
func (s *Unaligned) loadContents(id uint32, expected int64, contents []byte) error {
	switch {
	case len(contents) == 0:
		return nil
	case s.width == 0:
		return s.extend(id, contents)
	case len(contents) != s.width:
		return errSaved
	}
	acc, fresh, err := s.At(id, expected)
	if err == nil && !fresh {
		err = errSaved
	}
	copy(acc, contents)
	return err
}
