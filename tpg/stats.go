package tpg

import (
	"slices"

	"github.com/heddle-stream/heddle/internal/arena"
)

// Stats tells what a graph is made of and how much of it can run in parallel.
type Stats struct {
	Events      int     `json:"events"`
	Operations  int     `json:"operations"`
	Reads       int     `json:"reads"`
	Chains      int     `json:"chains"` // rows touched
	Temporal    int     `json:"temporal_edges"`
	Parametric  int     `json:"parametric_edges"`
	Logical     int     `json:"logical_groups"` // transactions of more than one operation
	Strata      int     `json:"strata"`         // operations on the longest path
	Path        int     `json:"path"`           // transactions on the longest path
	ChainLenMax int     `json:"chain_length_max"`
	ChainSkew   float64 `json:"chain_skew"`    // Gini coefficient of the chains' lengths: 0 all alike
	FanOutMax   int     `json:"fan_out_max"`   // operations that wait for the same one, at most
	Cyclic      int     `json:"cyclic_chains"` // chains that wait for each other in a circle
	Components  int     `json:"components"`    // sets of transactions without an edge between them
	Largest     int     `json:"component_max"` // transactions in the largest of them
}

// Stats walks the whole graph, in time proportional to it.
func (g *Graph) Stats() Stats {
	s := Stats{Events: g.Events}
	var lengths []int
	fanOut := make([]int32, len(g.Acc))
	for e := range g.Events {
		ops := 0
		for id := g.TxLo[e]; id < g.TxHi[e]; id++ {
			a := &g.Acc[id]
			if g.onRow(id) && a.Prev == None {
				lengths = append(lengths, g.chainLength(id))
			}
			if a.IsRead() {
				s.Reads++
				continue
			}
			ops++
			g.Dependencies(id, func(on uint32, temporal bool) {
				fanOut[on]++
				if temporal {
					s.Temporal++
				} else {
					s.Parametric++
				}
			})
		}
		s.Operations += ops
		if ops > 1 {
			s.Logical++
		}
	}
	s.Chains, s.ChainLenMax, s.ChainSkew = len(lengths), maxOf(lengths), gini(lengths)
	for _, n := range fanOut {
		s.FanOutMax = max(s.FanOutMax, int(n))
	}
	var layers Strata
	layers.Operations(g)
	s.Strata = layers.Count()
	s.Path = g.Path(nil)
	s.Cyclic = g.cyclicChains()
	var c Components
	c.Find(g)
	s.Components, s.Largest = c.Count(), c.Largest()
	return s
}

// onRow reports whether an access stands in a chain: a range does not, and one
// whose key is not known yet has none.
func (g *Graph) onRow(id uint32) bool {
	a := &g.Acc[id]
	if a.IsRange() {
		return false
	}
	_, late := slices.BinarySearch(g.Late, id)
	return !late || a.Prev != None || a.Next != None
}

func (g *Graph) chainLength(head uint32) int {
	n := 0
	for id := head; id != None; id = g.Acc[id].Next {
		n++
	}
	return n
}

func maxOf(v []int) int {
	if len(v) == 0 {
		return 0
	}
	return slices.Max(v)
}

// gini returns how unequal the lengths are: 0 when all are alike, near 1 when one
// has nearly all.
func gini(lengths []int) float64 {
	slices.Sort(lengths)
	sum, weighted := 0, 0
	for i, n := range lengths {
		sum += n
		weighted += (i + 1) * n
	}
	if sum == 0 {
		return 0
	}
	n := float64(len(lengths))
	return 2*float64(weighted)/(n*float64(sum)) - (n+1)/n
}

// Shape is what decides how much of a graph can run in parallel. The zero value
// stands for a graph without edges.
type Shape struct {
	Events      int
	Strata      int // operations on the longest path
	Path        int // transactions on the longest path
	ChainLenMax int // accesses of one row
}

// Share returns a length per event.
func (s Shape) Share(length int) float64 { return float64(length) / float64(max(1, s.Events)) }

// Shaper finds shapes. Its memory is used again.
type Shaper struct {
	strata []uint32
	path   []uint32
}

// Shape walks the graph once.
func (w *Shaper) Shape(g *Graph) Shape {
	w.path = arena.Resize(w.path, g.Events)
	s := Shape{Events: g.Events, Path: g.Path(w.path)}
	w.strata = arena.Resize(w.strata, len(g.Acc))
	for e := range g.Events {
		for id := g.TxLo[e]; id < g.TxHi[e]; id++ {
			if g.Acc[id].IsRead() {
				continue
			}
			level := uint32(1)
			g.Dependencies(id, func(on uint32, _ bool) { level = max(level, w.strata[on]+1) })
			w.strata[id] = level
			s.Strata = max(s.Strata, int(level))
		}
	}
	s.ChainLenMax = g.longestChain()
	return s
}

// longestChain returns the number of accesses of the row with the most.
func (g *Graph) longestChain() int {
	longest := 0
	for e := range g.Events {
		for id := g.TxLo[e]; id < g.TxHi[e]; id++ {
			if g.Acc[id].Prev == None && g.onRow(id) {
				longest = max(longest, g.chainLength(id))
			}
		}
	}
	return longest
}

// Path returns the number of transactions on the longest path: how many have to
// run one after the other when each runs in one go. levels is memory for it.
func (g *Graph) Path(levels []uint32) int {
	levels = arena.Resize(levels, g.Events)
	longest := uint32(0)
	for e := range uint32(g.Events) {
		level := uint32(1)
		for id := g.TxLo[e]; id < g.TxHi[e]; id++ {
			if g.Acc[id].IsRead() {
				continue
			}
			g.Dependencies(id, func(on uint32, _ bool) {
				if by := g.Acc[on].Event; by != e {
					level = max(level, levels[by]+1)
				}
			})
		}
		levels[e] = level
		longest = max(longest, level)
	}
	return int(longest)
}

// cyclicChains counts the chains that wait for each other: by way of their
// operations each has to run before the other. It looks for the strongly connected
// components of the graph of chains (Tarjan 1972), without recursion.
func (g *Graph) cyclicChains() int {
	chain, n := g.chainsOf()
	next := make([][]uint32, n)
	g.Operations(func(id uint32) bool {
		if chain[id] != None {
			g.Dependencies(id, func(on uint32, _ bool) {
				if from := chain[on]; from != None && from != chain[id] {
					next[from] = append(next[from], chain[id])
				}
			})
		}
		return true
	})
	cyclic := 0
	for _, size := range strongComponents(next) {
		if size > 1 {
			cyclic += size
		}
	}
	return cyclic
}

// chainsOf numbers the chains and returns each access's, None outside of any.
func (g *Graph) chainsOf() (chain []uint32, count int) {
	chain = make([]uint32, len(g.Acc))
	for i := range chain {
		chain[i] = None
	}
	for e := range g.Events {
		for id := g.TxLo[e]; id < g.TxHi[e]; id++ {
			if g.Acc[id].Prev != None || !g.onRow(id) {
				continue
			}
			for at := id; at != None; at = g.Acc[at].Next {
				chain[at] = uint32(count)
			}
			count++
		}
	}
	return chain, count
}

// strongComponents returns the sizes of the strongly connected components.
func strongComponents(next [][]uint32) (sizes []int) {
	const unseen = 0
	type frame struct{ node, edge int }
	order, low := make([]int, len(next)), make([]int, len(next))
	onStack := make([]bool, len(next))
	var stack []int
	var calls []frame
	count := 0
	enter := func(v int) {
		count++
		order[v], low[v] = count, count
		stack, onStack[v] = append(stack, v), true
		calls = append(calls, frame{v, 0})
	}
	for root := range next {
		if order[root] != unseen {
			continue
		}
		enter(root)
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			if f.edge < len(next[f.node]) {
				to := int(next[f.node][f.edge])
				f.edge++
				switch {
				case order[to] == unseen:
					enter(to)
				case onStack[to]:
					low[f.node] = min(low[f.node], order[to])
				}
				continue
			}
			v := f.node
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				up := calls[len(calls)-1].node
				low[up] = min(low[up], low[v])
			}
			if low[v] != order[v] {
				continue
			}
			size := 0
			for done := false; !done; size++ {
				top := stack[len(stack)-1]
				stack, onStack[top] = stack[:len(stack)-1], false
				done = top == v
			}
			sizes = append(sizes, size)
		}
	}
	return sizes
}
