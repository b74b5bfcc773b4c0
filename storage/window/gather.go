package window

import (
	"cmp"
	"slices"
)

// When very many windows fire at once, as all do at the end of the input, more is asked for than memory has room for,
// and in an order that has nothing to do with where it is on disk. Reading it window by window is a read for each
// piece; going through the files again and again, for as much as memory takes, reads them as many times. Here the
// order is known, though: it costs one pass to distribute the pieces to parts that fit into memory, one behind the
// other on disk, and then each part is read in one go. That is a distribution sort.

const (
	gatherShare   = 8        // a part is an eighth of the memory,
	gatherMax     = 4 << 20  // but not more bytes than that
	gatherMin     = 4        // parts for which it is done
	gatherBuffers = 4        // parts, about, whose pieces are in memory together
	gatherRun     = 16 << 10 // bytes of a part that are written at once then, about, at least
)

// gathering distributes pieces to parts.
type gathering struct {
	s         *Unaligned
	parts     []gathered
	room      int // bytes that are collected before all of them are written
	collected int
}

// gathered is what is collected of a part.
type gathered struct {
	data   []byte
	ends   []int
	pieces []*piece
}

// scattered is a piece of a window that is asked for.
type scattered struct {
	*piece
	part int
}

// gather puts what the first of some windows have on disk in the order in which they are asked for, if that pays: of
// so many that memory for a half of the limit suffices to collect pieces of all parts. It returns how many windows
// these are, and how many bytes can be read at once.
func (s *Unaligned) gather(ids []uint32) (n, most int, err error) {
	most = int(min(max(s.blocks.chunks.limit/gatherShare, loadMax), gatherMax))
	size, pieces := 0, 0
	for ; n < len(ids) && size < gatherBuffers*most/gatherRun*most; n++ {
		for _, p := range s.windows[ids[n]].pieces {
			size += int(p.size)
			pieces++
		}
	}
	if size < gatherMin*most {
		return 0, 0, nil
	}
	all := s.scattered(ids[:n], pieces, most)
	at := make([]uint64, len(all))
	for i := range all {
		at[i] = all[i].at
	}
	if !s.apart(all, at, size) {
		return 0, 0, nil
	}
	for _, id := range ids[:n] {
		if len(s.windows[id].pieces) > 0 {
			s.stats.Gathered++
		}
	}
	g := gathering{s: s, parts: make([]gathered, size/most+1), room: gatherBuffers * most}
	return n, most, g.distribute(all, at)
}

// scattered returns the pieces of some windows, which are so many, in the order in which they are on disk, each with
// its part of so many bytes.
func (s *Unaligned) scattered(ids []uint32, pieces, most int) []scattered {
	all, size := make([]scattered, 0, pieces), 0
	for _, id := range ids {
		part, some := size/most, s.windows[id].pieces
		for i := range some {
			all = append(all, scattered{&some[i], part})
			size += int(some[i].size)
		}
	}
	slices.SortFunc(all, func(a, b scattered) int { return cmp.Compare(a.at, b.at) })
	return all
}

// apart reports whether it takes longer to read pieces, which are in the order in which they are on disk, part by
// part than to go through them twice and write them once.
func (s *Unaligned) apart(all []scattered, at []uint64, size int) bool {
	jumps := 0
	for i, p := range all {
		if i == 0 || p.part != all[i-1].part {
			jumps++
		}
	}
	return (jumps-s.disk.log.Reads(at))*readCost > 3*size
}

// distribute writes pieces, which are in the order in which they are on disk, part by part.
func (g *gathering) distribute(all []scattered, at []uint64) error {
	err := g.s.disk.log.Scan(at, &g.s.loaded.buf, func(i int, row []byte) error {
		g.s.stats.ReadBytes += int64(len(row))
		part := &g.parts[all[i].part]
		part.data = append(part.data, row...)
		part.ends, part.pieces = append(part.ends, len(part.data)), append(part.pieces, all[i].piece)
		if g.collected += len(row); g.collected < g.room {
			return nil
		}
		return g.write()
	})
	if err != nil {
		return err
	}
	return g.write()
}

// write puts on disk what is collected, and gives free where it was: also of parts of which there is little, since the
// files that it comes from could not go before.
func (g *gathering) write() error {
	g.collected, g.s.freed = 0, true
	for i := range g.parts {
		part := &g.parts[i]
		if len(part.ends) == 0 {
			continue
		}
		moved, err := g.s.disk.put(part.data, part.ends)
		if err != nil {
			return err
		}
		for k, p := range part.pieces {
			g.s.disk.log.Free(p.at, int(p.size))
			*p = moved[k]
		}
		part.data, part.ends, part.pieces = part.data[:0], part.ends[:0], part.pieces[:0]
	}
	return g.s.disk.log.Sweep()
}
