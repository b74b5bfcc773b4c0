package tpg

import "github.com/heddle-stream/heddle/internal/arena"

// Components are the sets of transactions that no edge joins: what happens in one
// cannot matter to another. Its memory is used again.
type Components struct {
	of      []uint32 // by event: the first event of its component
	size    []uint32 // by first event
	Firsts  []uint32 // the components by their first events, in order
	largest uint32
}

// Find finds the components of a graph by union-find over its dependencies, in
// time nearly proportional to the graph.
func (c *Components) Find(g *Graph) {
	c.of, c.size = arena.Resize(c.of, g.Events), arena.Resize(c.size, g.Events)
	for e := range c.of {
		c.of[e] = uint32(e)
	}
	for e := range uint32(g.Events) {
		for id := g.TxLo[e]; id < g.TxHi[e]; id++ {
			if a := &g.Acc[id]; a.IsRange() {
				for m := a.Slot; m < a.Slot+a.Refs; m++ {
					c.join(g, m, e)
				}
			} else {
				c.join(g, id, e)
			}
		}
	}
	c.Firsts, c.largest = c.Firsts[:0], 0
	clear(c.size)
	for e := range uint32(g.Events) {
		first := c.root(e)
		c.of[e] = first
		if first == e {
			c.Firsts = append(c.Firsts, e)
		}
		c.size[first]++
		c.largest = max(c.largest, c.size[first])
	}
}

// join puts an event together with those that its access may see, which are the
// writers before it up to one that hides the rest.
func (c *Components) join(g *Graph, id, e uint32) {
	if g.Acc[id].Commutes() {
		return
	}
	for p := g.Acc[id].Pred; p != None; p = g.Acc[p].Pred {
		if by := g.Acc[p].Event; by != e {
			a, b := c.root(by), c.root(e)
			c.of[max(a, b)] = min(a, b)
		}
		if !g.Acc[p].Commutes() && g.Acc[p].Event != e {
			return
		}
	}
}

// root returns the first event of an event's component so far.
func (c *Components) root(e uint32) uint32 {
	for c.of[e] != e {
		c.of[e] = c.of[c.of[e]]
		e = c.of[e]
	}
	return e
}

// Count returns the number of components.
func (c *Components) Count() int { return len(c.Firsts) }

// Largest returns the number of transactions in the largest component.
func (c *Components) Largest() int { return int(c.largest) }

// Of returns the first event of an event's component.
func (c *Components) Of(e uint32) uint32 { return c.of[e] }

// Size returns the number of transactions in the component with this first event.
func (c *Components) Size(first uint32) int { return int(c.size[first]) }
