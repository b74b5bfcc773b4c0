package tpg

import "github.com/heddle-stream/heddle/internal/arena"

// Strata are the layers of the graph: stratum 0 waits for nothing, stratum n
// for something in n-1.
type Strata struct {
	Level []uint32 // by access; only operations have one
	Units []uint32 // operations by stratum, within one in serial order
	Start []uint32 // stratum s is Units[Start[s]:Start[s+1]]
	// Through[s] counts the operations in the strata up to and including s.
	Through []uint32
	temp    []uint32
}

// Count returns the number of strata.
func (s *Strata) Count() int { return len(s.Start) - 1 }

// Operations layers single operations, in time proportional to the graph.
func (s *Strata) Operations(g *Graph) { s.build(g, false) }

// Segments layers pieces of chains: an operation stands in the stratum of the
// operation before it on its row, unless something else that it waits for stands
// there or later. Units are the first operations of the pieces; a piece goes on
// along the chain while the level stays the same. Chains that wait for each
// other, which is a cycle between whole chains, come out as several pieces.
func (s *Strata) Segments(g *Graph) { s.build(g, true) }

// Chains makes each chain one unit, named by its first operation, all of them
// in one stratum.
func (s *Strata) Chains(g *Graph) {
	s.Level, s.temp, s.Through = s.Level[:0], s.temp[:0], s.Through[:0]
	ops := uint32(0)
	g.Operations(func(id uint32) bool {
		ops++
		if g.PrevOperation(id) == None {
			s.temp = append(s.temp, id)
		}
		return true
	})
	s.Units = append(s.Units[:0], s.temp...)
	s.Start = append(s.Start[:0], 0, uint32(len(s.Units)))
	s.Through = append(s.Through, ops)
}

func (s *Strata) build(g *Graph, segments bool) {
	s.Level = arena.Resize(s.Level, len(g.Acc))
	s.temp = s.temp[:0]
	level := s.Level
	counts, through := s.Start[:0], s.Through[:0]
	g.Operations(func(id uint32) bool {
		at, chain := uint32(0), None
		if segments {
			if chain = g.PrevOperation(id); chain != None {
				at = level[chain]
			}
		}
		g.Dependencies(id, func(on uint32, temporal bool) {
			if !temporal || !segments || g.Acc[on].Commutes() {
				at = max(at, level[on]+1)
			}
		})
		level[id] = at
		for int(at) >= len(counts) {
			counts, through = append(counts, 0), append(through, 0)
		}
		through[at]++
		if chain == None || level[chain] != at {
			counts[at]++
			s.temp = append(s.temp, id)
		}
		return true
	})
	for i := range through {
		if i > 0 {
			through[i] += through[i-1]
		}
	}
	s.Through = through
	s.sort(counts)
}

// sort orders the collected units by level, keeping serial order within one.
func (s *Strata) sort(counts []uint32) {
	total := uint32(0)
	for i, n := range counts {
		counts[i] = total
		total += n
	}
	s.Units = arena.Resize(s.Units, int(total))
	for _, id := range s.temp {
		at := s.Level[id]
		s.Units[counts[at]] = id
		counts[at]++
	}
	// Each entry now holds the end of its stratum: shift to starts.
	counts = append(counts, 0)
	copy(counts[1:], counts)
	counts[0] = 0
	s.Start = counts
}
