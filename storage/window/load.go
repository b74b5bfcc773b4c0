package window

import "slices"

// loaded is what was read from disk for some windows.
type loaded struct {
	data   []byte
	places []row // of all pieces, by window
	begins []int // of each window in places
	order  []uint32
	at     []uint64
	buf    []byte
}

// row is where a piece is in data.
type row struct {
	from, to int
	at       uint64
}

// loadMax is how many bytes are read at once, if no window alone has more.
const loadMax = 256 << 10

// rows returns the pieces of window i.
func (l *loaded) rows(i int) []row { return l.places[l.begins[i]:l.begins[i+1]] }

// load reads what is on disk of the first windows and returns how many they are. If they are gathered, it reads so
// many bytes at once, else loadMax.
func (l *loaded) load(s *Unaligned, ids []uint32, gathered int) (int, error) {
	most := max(gathered, loadMax)
	l.data, l.places, l.begins = l.data[:0], l.places[:0], append(l.begins[:0], 0)
	n, size := 0, 0
	for ; n < len(ids) && (n == 0 || size < most); n++ {
		w := &s.windows[ids[n]]
		switch {
		case len(w.pieces) > 0 && gathered > 0:
		case len(w.pieces) > 0:
			s.stats.Misses++
		case w.fetched:
			s.stats.Hits++
		}
		for _, p := range w.pieces {
			l.places = append(l.places, row{at: p.at})
			size += int(p.size)
		}
		l.begins = append(l.begins, len(l.places))
	}
	l.order, l.at = l.order[:0], l.at[:0]
	for i := range l.places {
		l.order = append(l.order, uint32(i))
	}
	slices.SortFunc(l.order, func(a, b uint32) int {
		if l.places[a].at < l.places[b].at {
			return -1
		}
		return 1
	})
	for _, i := range l.order {
		l.at = append(l.at, l.places[i].at)
	}
	err := s.disk.log.Read(l.at, &l.buf, func(i int, bytes []byte) error {
		p := &l.places[l.order[i]]
		p.from, p.to = len(l.data), len(l.data)+len(bytes)
		l.data = append(l.data, bytes...)
		return nil
	})
	s.stats.ReadBytes += int64(size)
	return n, err
}
