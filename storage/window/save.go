package window

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/heddle-stream/heddle/internal/image"
	"github.com/heddle-stream/heddle/storage/spill"
)

// Items of a store that was saved are: the mark of its log, then for each window what it is, where
// its contents are on disk, and what it has in memory. Memory of one process becomes
// memory of another one as far as its limit allows.

func writeSpan(w *image.Writer, s Span) { w.Int(s.Start); w.Int(s.End) }

func readSpan(r *image.Reader) Span { return Span{Start: r.Int(), End: r.Int()} }

func writePieces(w *image.Writer, all []piece) {
	w.Int(int64(len(all)))
	for _, p := range all {
		w.Int(int64(p.at))
		w.Int(int64(p.size))
	}
}

func readPieces(r *image.Reader) (all []piece) {
	for range r.Count() {
		all = append(all, piece{uint64(r.Int()), uint32(r.Int())})
	}
	return all
}

// save writes the mark of the log.
func (d *disk) save(w *image.Writer) error {
	m, err := d.log.Mark()
	if err != nil {
		return err
	}
	bytes, err := json.Marshal(m)
	if err != nil {
		return err
	}
	w.Add(bytes)
	return nil
}

// load opens the log as it was. It was empty.
func (d *disk) load(o *Options, r *image.Reader) error {
	if !r.Want() {
		return r.Err()
	}
	var m spill.Mark
	if err := json.Unmarshal(r.Rest, &m); err != nil {
		return fmt.Errorf("%w: %w", image.ErrOther, err)
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
	w := &image.Writer{Add: add}
	if err := s.disk.save(w); err != nil {
		return err
	}
	for _, span := range spansOf(s.windows) {
		l := s.windows[span]
		writeSpan(w, span)
		w.Int(int64(len(l.spills)))
		w.Int(int64(len(l.chunks)))
		w.Item()
		for i := range l.spills {
			writePieces(w, l.spills[i][:])
			w.Item()
		}
		for i, chunk := range l.chunks {
			w.Add(chunk[:l.ends[i]])
		}
	}
	return nil
}

// Load makes an empty store what it was when it was saved. Next returns the items, and io.EOF
// behind the last one.
func (s *Lists) Load(next func() ([]byte, error)) error {
	r := &image.Reader{Next: next}
	if err := s.disk.load(&s.options, r); err != nil {
		return err
	}
	for r.Item() {
		span, spills, chunks := readSpan(r), r.Int(), r.Int()
		l, err := s.list(span)
		if err != nil {
			return err
		}
		for ; spills > 0 && r.Item(); spills-- {
			all := readPieces(r)
			if len(all) != groups {
				return image.ErrOther
			}
			l.spills = append(l.spills, spilled(all))
		}
		for ; chunks > 0 && r.Item(); chunks-- {
			if err := s.loadChunk(l, r.Rest); err != nil {
				return err
			}
		}
		if spills != 0 || chunks != 0 {
			r.Fail()
		}
	}
	return r.Err()
}

// loadChunk adds a chunk of tuples to a window.
func (s *Lists) loadChunk(l *list, tuples []byte) error {
	if len(tuples) > chunkSize || !wholeTuples(tuples) {
		return image.ErrOther
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
	w := &image.Writer{Add: add}
	if err := s.disk.save(w); err != nil {
		return err
	}
	spans := s.Windows()
	w.Int(int64(len(spans)))
	w.Item()
	for _, span := range spans {
		p := s.windows[span]
		writeSpan(w, span)
		w.Int(int64(p.table.count))
		w.Int(int64(len(p.runs)))
		for _, run := range p.runs {
			writePieces(w, run)
		}
		w.Item()
	}
	for _, span := range spans {
		s.windows[span].each(func(hash uint64, key, acc []byte) {
			w.Append(func(dst []byte) []byte { return appendEntry(dst, hash, key, acc) })
			w.Item()
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
	r := &image.Reader{Next: next}
	if err := s.disk.load(&s.options, r); err != nil {
		return err
	}
	if !r.Want() {
		return r.Err()
	}
	spans, entries := make([]Span, 0), make([]int64, 0)
	for n := r.Int(); n > 0 && r.Item(); n-- {
		span, inMemory := readSpan(r), r.Int()
		p, err := s.part(span)
		if err != nil {
			return err
		}
		for range r.Count() {
			p.runs = append(p.runs, readPieces(r))
		}
		spans, entries = append(spans, span), append(entries, inMemory)
	}
	for i, span := range spans {
		for ; entries[i] > 0 && r.Item(); entries[i]-- {
			if err := s.loadEntry(span, r.Rest); err != nil {
				return err
			}
		}
		if entries[i] != 0 {
			r.Fail()
		}
	}
	return r.Err()
}

// loadEntry adds an entry to a window.
func (s *Accumulators) loadEntry(w Span, entry []byte) error {
	behind := entryHead + s.width
	if len(entry) < behind {
		return image.ErrOther
	}
	n := binary.LittleEndian.Uint64(entry[8:])
	if n > uint64(len(entry)-behind) {
		return image.ErrOther
	}
	acc, fresh, err := s.At(w, binary.LittleEndian.Uint64(entry), entry[behind:behind+int(n)])
	if err == nil && !fresh {
		err = image.ErrOther
	}
	if err != nil {
		return err
	}
	copy(acc, entry[entryHead:behind])
	return nil
}

// Save does as that of [Lists]. Windows keep their numbers.
func (s *Unaligned) Save(add func(item []byte)) error {
	w := &image.Writer{Add: add}
	if err := s.disk.save(w); err != nil {
		return err
	}
	w.Int(int64(len(s.windows)))
	w.Item()
	gone := make([]bool, len(s.windows))
	for _, id := range s.unused {
		gone[id] = true
	}
	for id := range s.windows {
		if gone[id] {
			continue
		}
		x := &s.windows[id]
		w.Int(int64(id))
		w.Int(x.expected)
		writePieces(w, x.pieces)
		w.Append(func(dst []byte) []byte { return s.blocks.append(dst, x.first) })
		w.Item()
	}
	return nil
}

// Load does as that of [Lists].
func (s *Unaligned) Load(next func() ([]byte, error)) error {
	r := &image.Reader{Next: next}
	if err := s.disk.load(&s.options, r); err != nil {
		return err
	}
	if !r.Want() {
		return r.Err()
	}
	n := r.Int()
	var open []bool
	for range n {
		if _, err := s.Open(); err != nil {
			return err
		}
		open = append(open, false)
	}
	for r.Item() {
		id, expected := r.Int(), r.Int()
		if id < 0 || id >= int64(len(open)) || open[id] {
			return image.ErrOther
		}
		open[id] = true
		s.windows[id].pieces, s.windows[id].expected = readPieces(r), expected
		if r.Err() == nil {
			if err := s.loadContents(uint32(id), expected, r.Rest); err != nil {
				return err
			}
		}
	}
	for id, is := range open {
		if !is {
			s.unused = append(s.unused, uint32(id))
		}
	}
	return r.Err()
}

// loadContents adds what a window had in memory.
func (s *Unaligned) loadContents(id uint32, expected int64, contents []byte) error {
	switch {
	case len(contents) == 0:
		return nil
	case s.width == 0: // of a value the first part may be on disk
		return s.extend(id, contents)
	case len(contents) != s.width:
		return image.ErrOther
	}
	acc, fresh, err := s.At(id, expected)
	if err == nil && !fresh {
		err = image.ErrOther
	}
	copy(acc, contents)
	return err
}
