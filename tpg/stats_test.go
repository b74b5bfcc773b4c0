package tpg_test

import (
	"math"
	"testing"

	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/tpg"
)

// naive computes statistics from the edges alone, without any cleverness.
type naive struct {
	edges  [][2]uint32 // from, to
	reach  map[[2]uint32]bool
	chains [][]uint32
}

func newNaive(g *tpg.Graph) *naive {
	n := &naive{reach: map[[2]uint32]bool{}}
	g.Operations(func(id uint32) bool {
		g.Dependencies(id, func(on uint32, _ bool) { n.edges = append(n.edges, [2]uint32{on, id}) })
		return true
	})
	for e := range g.Events {
		for id := g.TxLo[e]; id < g.TxHi[e]; id++ {
			if a := &g.Acc[id]; !a.IsRange() && a.Prev == tpg.None {
				var chain []uint32
				for at := id; at != tpg.None; at = g.Acc[at].Next {
					chain = append(chain, at)
				}
				n.chains = append(n.chains, chain)
			}
		}
	}
	return n
}

// longest returns the longest path under the edges, nodes named by of.
func (n *naive) longest(nodes int, of func(id uint32) int) int {
	level := make([]int, nodes)
	for changed := true; changed; {
		changed = false
		for _, e := range n.edges {
			if a, b := of(e[0]), of(e[1]); a != b && level[b] < level[a]+1 {
				level[b], changed = level[a]+1, true
			}
		}
	}
	longest := 0
	for _, l := range level {
		longest = max(longest, l+1)
	}
	return longest
}

// cyclic counts the chains from which a walk over edges comes back.
func (n *naive) cyclic() int {
	of := map[uint32]int{}
	for i, c := range n.chains {
		for _, id := range c {
			of[id] = i
		}
	}
	reach := make([][]bool, len(n.chains))
	for i := range reach {
		reach[i] = make([]bool, len(n.chains))
	}
	for _, e := range n.edges {
		a, oka := of[e[0]]
		b, okb := of[e[1]]
		if oka && okb && a != b {
			reach[a][b] = true
		}
	}
	for k := range reach {
		for i := range reach {
			for j := range reach {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	count := 0
	for i := range reach {
		if reach[i][i] {
			count++
		}
	}
	return count
}

// components labels events until nothing changes.
func (n *naive) components(g *tpg.Graph) (count, largest int) {
	label := make([]int, g.Events)
	for i := range label {
		label[i] = i
	}
	for changed := true; changed; {
		changed = false
		for _, e := range n.edges {
			a, b := g.Acc[e[0]].Event, g.Acc[e[1]].Event
			if low := min(label[a], label[b]); label[a] != low || label[b] != low {
				label[a], label[b], changed = low, low, true
			}
		}
	}
	size := map[int]int{}
	for _, l := range label {
		size[l]++
		largest = max(largest, size[l])
	}
	return len(size), largest
}

func (n *naive) skew() float64 {
	total, apart := 0, 0
	for _, a := range n.chains {
		total += len(a)
		for _, b := range n.chains {
			apart += max(len(a)-len(b), len(b)-len(a))
		}
	}
	if total == 0 {
		return 0
	}
	return float64(apart) / (2 * float64(len(n.chains)) * float64(total))
}

func TestStatsEqualANaiveComputation(t *testing.T) {
	cycles := 0
	for seed := range uint64(metamorphic.Seeds(150)) {
		r := rng.New(seed, 8)
		events := metamorphic.Draw(r, 1+r.IntN(40), metamorphic.Shape{Keys: 1 + r.IntN(20), OpsMax: 3, Tables: 1 + r.IntN(3), NoLate: true})
		g, _ := graphOf(t, events, 2)
		n, got := newNaive(g), g.Stats()
		fan := map[uint32]int{}
		fanOut := 0
		for _, e := range n.edges {
			fan[e[0]]++
			fanOut = max(fanOut, fan[e[0]])
		}
		chainMax := 0
		for _, c := range n.chains {
			chainMax = max(chainMax, len(c))
		}
		want := got
		want.Chains, want.ChainLenMax, want.FanOutMax = len(n.chains), chainMax, fanOut
		want.Strata = n.longest(len(g.Acc), func(id uint32) int { return int(id) })
		if got.Operations == 0 {
			want.Strata = 0
		}
		want.Path = n.longest(g.Events, func(id uint32) int { return int(g.Acc[id].Event) })
		want.Components, want.Largest = n.components(g)
		want.Cyclic = n.cyclic()
		cycles += want.Cyclic
		if got != want || got.Temporal+got.Parametric != len(n.edges) {
			t.Fatalf("seed %d: %d edges\n got %+v\nwant %+v\n%s", seed, len(n.edges), got, want, metamorphic.Text(events))
		}
		if skew := n.skew(); math.Abs(skew-got.ChainSkew) > 1e-9 {
			t.Fatalf("seed %d: skew %v, expected %v", seed, got.ChainSkew, skew)
		}
	}
	if cycles == 0 {
		t.Error("no chains in a circle were drawn")
	}
}
