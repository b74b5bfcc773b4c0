package schedule

import (
	"cmp"
	"slices"

	"github.com/heddle-stream/heddle/internal/arena"
	"github.com/heddle-stream/heddle/tpg"
)

// nest lays out a batch by connected component. What happens in one component
// cannot matter to another, so each may run in its own way at the same time as
// the others:
//
//   - small ones are packed into bins; a bin is run in event order by one worker,
//     which never has to wait and whose rows nobody else touches meanwhile;
//   - a large one that is little more than one chain is a bin by itself, handed out
//     before all others because it takes longest;
//   - any other large one is handed out in runs of neighbouring events, for all
//     workers to share.
type nest struct {
	components tpg.Components
	levels     []uint32 // by event: transactions on the longest path to it
	longest    []uint32 // by first event of a component
	bin        []uint32 // by first event of a component
	weight     []int    // by bin: events
	first      []uint32 // by bin: how soon it is handed out
	units      []uint32
	starts     []uint32
	at         []uint32
}

const (
	// A component is large if it has this part of a worker's share of the events.
	largePart = 4
	// A component is a chain if its longest path has this part of its events.
	chainPart = 2
)

// lay returns the events by bin, and where the bins begin. A worker takes run
// events at least at a time.
func (n *nest) lay(g *tpg.Graph, workers, run int) (units, starts []uint32) {
	n.components.Find(g)
	run = max(1, run)
	large := max(run, g.Events/(largePart*workers))
	n.paths(g, large)
	n.bins(g, large, run)
	n.sort(g, run)
	return n.units, n.starts
}

// paths finds the longest path of each large component.
func (n *nest) paths(g *tpg.Graph, large int) {
	n.levels, n.longest = arena.Resize(n.levels, g.Events), arena.Resize(n.longest, g.Events)
	if n.components.Largest() <= large {
		return
	}
	clear(n.longest)
	for e := range uint32(g.Events) {
		first := n.components.Of(e)
		if n.components.Size(first) <= large {
			continue
		}
		level := uint32(1)
		for id := g.TxLo[e]; id < g.TxHi[e]; id++ {
			if !g.Acc[id].IsRead() {
				g.Dependencies(id, func(on uint32, _ bool) {
					if by := g.Acc[on].Event; by != e {
						level = max(level, n.levels[by]+1)
					}
				})
			}
		}
		n.levels[e] = level
		n.longest[first] = max(n.longest[first], level)
	}
}

// bins gives each component its bin.
func (n *nest) bins(g *tpg.Graph, large, run int) {
	n.bin, n.weight, n.first = arena.Resize(n.bin, g.Events), n.weight[:0], n.first[:0]
	open := -1 // the bin that small components are packed into
	for _, first := range n.components.Firsts {
		size := n.components.Size(first)
		if size > large || open < 0 || n.weight[open] >= run {
			n.weight, n.first = append(n.weight, 0), append(n.first, first+1)
			if size <= large {
				open = len(n.weight) - 1
			}
		}
		b := len(n.weight) - 1
		if size <= large {
			b = open
		} else if chainPart*int(n.longest[first]) >= size {
			n.first[b] = 0 // before all others
		}
		n.bin[first] = uint32(b)
		n.weight[b] += size
	}
}

// sort puts the events into the order of their bins. Bins that all workers share
// are cut into runs.
func (n *nest) sort(g *tpg.Graph, run int) {
	order := arena.Resize(n.at, len(n.weight))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortStableFunc(order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(n.first[a], n.first[b]), cmp.Compare(n.weight[b], n.weight[a]))
	})
	n.starts = n.starts[:0]
	place := arena.Resize(n.levels, len(n.weight)) // the levels have had their use
	total := uint32(0)
	for _, b := range order {
		place[b] = total
		end := total + uint32(n.weight[b])
		step := uint32(n.weight[b])
		if n.first[b] > 0 && n.weight[b] > 2*run && n.shared(int(b)) {
			step = uint32(run)
		}
		for ; total < end; total += step {
			n.starts = append(n.starts, total)
		}
		total = end
	}
	n.starts = append(n.starts, total)
	n.at = order
	n.units = arena.Resize(n.units, g.Events)
	for e := range uint32(g.Events) {
		b := n.bin[n.components.Of(e)]
		n.units[place[b]] = e
		place[b]++
	}
}

// shared reports whether a bin is one component.
func (n *nest) shared(b int) bool {
	return n.components.Size(n.components.Of(n.first[b]-1)) == n.weight[b]
}
