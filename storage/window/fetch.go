package window

import (
	"cmp"
	"slices"
)

// Windows that fire are read one by one, or where they stand near each other. That is good as long as what
// fires together went to disk together. Of keys that are always busy it did not: a window has pieces
// everywhere, and each is a read. Then it costs less to go through the files once and to take into memory
// what is expected soon: FlowKV's predictive batch read. When that pays is known by what reads cost so far: once
// single reads have cost a part of what it did the last time, it is done.

// readCost is how many bytes can be read in a row in the time of one read somewhere: measured, a read at
// random takes 0.1 ms on a cloud disk that gives 2 GB/s.
const readCost = 192 << 10

// debtPart is of the cost of going through the files the part that single reads may cost before: that serves thousands
// of windows that are asked for next, as a rule. Were it 8, sessions of users who come back would be 0.1 to 0.4 faster
// and more of them, 0.25 instead of 0.2, would be read one by one.
const debtPart = 24

// fetch counts what it costs to read the first of some windows that are asked for one by one. If it costs less
// in the long run, it reads them, and others that are asked for or expected soon, in one go.
func (s *Unaligned) fetch(ids []uint32) error {
	at, size, n := s.loaded.at[:0], 0, 0
	for ; n < len(ids) && size < loadMax; n++ {
		for _, p := range s.windows[ids[n]].pieces {
			at = append(at, p.at)
			size += int(p.size)
		}
	}
	if s.loaded.at = at; len(at) == 0 {
		return nil
	}
	slices.Sort(at)
	s.debt += int64(s.disk.log.Reads(at)) * readCost
	if s.passed == 0 {
		s.passed = s.disk.log.Size()
	}
	if s.debt < s.passed/debtPart {
		return nil
	}
	s.debt = 0
	s.stats.Fetches++
	// An eighth stays what it is, half is what is read, as blocks half as much again.
	room := s.blocks.capacity()
	if err := s.makeRoom(room / 8); err != nil {
		return err
	}
	if err := s.take(s.soon(ids, room/2)); err != nil {
		return err
	}
	for _, id := range ids[:n] { // it was too late for these
		if w := &s.windows[id]; w.fetched {
			w.fetched = false
			s.stats.Misses++
		}
	}
	return nil
}

// makeRoom lets contents in memory have no more than so many bytes.
func (s *Unaligned) makeRoom(target int64) error {
	if s.blocks.used <= target {
		return nil
	}
	return s.spillTo(target)
}

// soon returns windows on disk of so many bytes together: those that are asked for, in that order, and then
// those that are expected first.
func (s *Unaligned) soon(ids []uint32, budget int64) (some []uint32) {
	asked := make(map[uint32]bool, len(ids))
	fits := func(id uint32) bool {
		for _, p := range s.windows[id].pieces {
			budget -= int64(p.size)
		}
		return budget >= 0
	}
	for _, id := range ids {
		if asked[id] = true; len(s.windows[id].pieces) == 0 {
			continue
		}
		if !fits(id) {
			return some
		}
		some = append(some, id)
	}
	var others []uint32
	for id := range s.windows {
		if len(s.windows[id].pieces) > 0 && !asked[uint32(id)] {
			others = append(others, uint32(id))
		}
	}
	slices.SortFunc(others, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(s.windows[a].expected, s.windows[b].expected), cmp.Compare(a, b))
	})
	for _, id := range others {
		if !fits(id) {
			break
		}
		some = append(some, id)
	}
	return some
}

// chain is the blocks of a piece that is in memory again.
type chain struct{ first, last place }

// take reads windows into memory, as far as there is room.
func (s *Unaligned) take(ids []uint32) error {
	type source struct {
		at    uint64
		piece int // of all
	}
	var sources []source
	for _, id := range ids {
		for _, p := range s.windows[id].pieces {
			sources = append(sources, source{p.at, len(sources)})
		}
	}
	slices.SortFunc(sources, func(a, b source) int { return cmp.Compare(a.at, b.at) })
	at := s.loaded.at[:0]
	for _, x := range sources {
		at = append(at, x.at)
	}
	s.passed = s.disk.log.ScanBytes(at)
	chains := make([]chain, len(sources))
	err := s.disk.log.Scan(at, &s.loaded.buf, func(i int, row []byte) error {
		s.stats.ReadBytes += int64(len(row))
		chains[sources[i].piece] = s.chainOf(row)
		return nil
	})
	s.loaded.at = at
	for _, id := range ids {
		n := len(s.windows[id].pieces)
		if err == nil {
			s.adopt(id, chains[:n])
		} else {
			s.giveUp(chains[:n])
		}
		chains = chains[n:]
	}
	return err
}

// chainOf puts bytes into blocks. Without room it has none.
func (s *Unaligned) chainOf(row []byte) (c chain) {
	for len(row) > 0 {
		p := s.blocks.take(classOf(len(row)))
		if p == 0 {
			s.blocks.free(c.first)
			return chain{}
		}
		row = s.blocks.fill(p, row)
		if c.first == 0 {
			c.first = p
		} else {
			s.blocks.link(c.last, p)
		}
		c.last = p
	}
	return c
}

func (s *Unaligned) giveUp(chains []chain) {
	for _, c := range chains {
		s.blocks.free(c.first)
	}
}

// adopt makes the pieces of a window, which are in memory again, the front of what it has there. If one of
// them is not, it stays as it was.
func (s *Unaligned) adopt(id uint32, chains []chain) {
	for _, c := range chains {
		if c.first == 0 {
			s.giveUp(chains)
			return
		}
	}
	w := &s.windows[id]
	if w.first != 0 {
		chains = append(chains[:len(chains):len(chains)], chain{w.first, w.last})
	}
	all := chains[0]
	for _, c := range chains[1:] {
		if s.width > 0 {
			s.merge(s.blocks.bytes(all.first)[:s.width], s.blocks.bytes(c.first)[:s.width])
			s.blocks.free(c.first)
			continue
		}
		s.blocks.link(all.last, c.first)
		all.last = c.last
	}
	s.disk.free(w.pieces)
	s.freed = true
	w.first, w.last, w.pieces, w.fetched = all.first, all.last, w.pieces[:0], true
}
