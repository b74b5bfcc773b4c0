package tpg

import (
	"github.com/heddle-stream/heddle/internal/invariants"
	"github.com/heddle-stream/heddle/txn"
)

// None stands for no access.
const None uint32 = txn.None

// Graph is the task precedence graph of a batch. It refers to the batch's
// memory and is valid as long as that.
type Graph struct {
	Acc    []txn.Access
	TxLo   []uint32 // by event: its accesses are [TxLo, TxHi)
	TxHi   []uint32
	Events int
	Late   []uint32 // accesses whose keys are computed while the graph executes
	stride uint32
	refs   [][]uint32 // by region: the reads of operations
}

// Reset makes g the graph of a sealed batch, without edges yet.
func (g *Graph) Reset(x *txn.Batch) {
	g.Acc, g.TxLo, g.TxHi, g.Events, g.Late = x.Acc, x.TxLo, x.TxHi, x.Events, x.Late
	g.stride, g.refs = x.Regions(g.refs[:0])
}

// Link adds the accesses of one table shard, which come with all chains that
// they belong to. Different shards may be linked in parallel.
func (g *Graph) Link(c txn.Chained) {
	acc := g.Acc
	for i, id := range c.IDs {
		a := &acc[id]
		a.Slot = c.FirstSlot + uint32(i)
		a.Next = None
		p := c.Prev[i]
		a.Prev = p
		if p == None {
			a.Pred = None
			continue
		}
		q := &acc[p]
		q.Next = id
		if q.Writes() {
			a.Pred = p
		} else {
			a.Pred = q.Pred
		}
		if invariants.Enabled {
			invariants.Check(g.Before(p, id), "access %d is linked behind %d, which comes later", id, p)
		}
	}
}

// Reads returns the accesses that an operation reads besides its own row; of a
// range read the range, not its members.
func (g *Graph) Reads(id uint32) (local []uint32, base uint32) {
	a := &g.Acc[id]
	r := id / g.stride
	return g.refs[r][a.Refs : a.Refs+uint32(a.NRefs)], r * g.stride
}

// owner returns the id that decides where an access stands in serial order: its
// own, or for a member of a range that of the range.
func (g *Graph) owner(id uint32) uint32 {
	if a := &g.Acc[id]; a.IsRange() && id >= g.stride*uint32(len(g.refs)) {
		return a.Arg
	}
	return id
}

// Before reports whether access a comes before b in serial order.
func (g *Graph) Before(a, b uint32) bool { return g.owner(a) < g.owner(b) }

// Remove takes an access out of its chain. Nobody may execute meanwhile.
func (g *Graph) Remove(id uint32) {
	acc := g.Acc
	a := &acc[id]
	if a.Prev != None {
		acc[a.Prev].Next = a.Next
	}
	if a.Next != None {
		acc[a.Next].Prev = a.Prev
	}
	for n := a.Next; n != None && acc[n].Pred == id; n = acc[n].Next {
		acc[n].Pred = a.Pred
	}
	a.Prev, a.Pred, a.Next = None, None, None
}

// Insert adds an access to the chain of a row at its place in serial order, and
// returns the access that is last then. The search begins at tail, the last
// access or any other one that comes behind the place; None for a row that nobody
// touched. Accesses that come behind it see another Pred from now on, up to and
// including the next writer, which is returned as until (None when there is
// none): whatever of them ran already must run again. Takes time proportional to
// the accesses passed over; nobody may execute meanwhile.
func (g *Graph) Insert(id, tail uint32) (last, until uint32) {
	acc := g.Acc
	a := &acc[id]
	next := None
	prev := tail
	for prev != None && g.Before(id, prev) {
		next, prev = prev, acc[prev].Prev
	}
	a.Prev, a.Next, a.Pred = prev, next, None
	if prev != None {
		acc[prev].Next = id
		if acc[prev].Writes() {
			a.Pred = prev
		} else {
			a.Pred = acc[prev].Pred
		}
	}
	if next == None {
		return id, None
	}
	acc[next].Prev = id
	if a.Writes() {
		for next != None {
			acc[next].Pred = id
			if acc[next].Writes() {
				break
			}
			next = acc[next].Next
		}
	}
	return tail, next
}

// Operations calls yield with each operation's id in serial order.
func (g *Graph) Operations(yield func(id uint32) bool) {
	for e := range g.Events {
		for id := g.TxLo[e]; id < g.TxHi[e]; id++ {
			if !g.Acc[id].IsRead() && !yield(id) {
				return
			}
		}
	}
}

// Dependencies calls yield with each earlier operation that an operation waits
// for, and whether the edge is temporal (else parametric). One operation may
// come up several times.
func (g *Graph) Dependencies(id uint32, yield func(on uint32, temporal bool)) {
	if !g.Acc[id].Commutes() {
		g.writers(g.Acc[id].Pred, id, func(on uint32) { yield(on, true) })
	}
	local, base := g.Reads(id)
	for _, l := range local {
		r := &g.Acc[base+l]
		if r.IsRange() {
			for m := r.Slot; m < r.Slot+r.Refs; m++ {
				g.writers(g.visible(m), m, func(on uint32) { yield(on, false) })
			}
			continue
		}
		g.writers(g.visible(base+l), base+l, func(on uint32) { yield(on, false) })
	}
}

// writers calls yield with the writer p that an access sees. Behind commutative
// ones stand those before them, back to the first that is not.
func (g *Graph) writers(p, id uint32, yield func(on uint32)) {
	own, start := g.Acc[id].Event, g.Acc[id].AtStart()
	for ; p != None; p = g.Acc[p].Pred {
		if start && g.Acc[p].Event == own {
			continue
		}
		yield(p)
		if !g.Acc[p].Commutes() {
			return
		}
	}
}

// PrevOperation returns the operation before one on its row, writing or not, or
// None. Reads in between are passed over, and commutative operations, each of
// which stands for itself.
func (g *Graph) PrevOperation(id uint32) uint32 {
	if g.Acc[id].Commutes() {
		return None
	}
	p := g.Acc[id].Prev
	for p != None && (g.Acc[p].IsRead() || g.Acc[p].Commutes()) {
		p = g.Acc[p].Prev
	}
	return p
}

// NextOperation returns the operation that has this one before it, or None.
func (g *Graph) NextOperation(id uint32) uint32 {
	if g.Acc[id].Commutes() {
		return None
	}
	n := g.Acc[id].Next
	for n != None && (g.Acc[n].IsRead() || g.Acc[n].Commutes()) {
		n = g.Acc[n].Next
	}
	return n
}

// visible returns the last writer before an access, for a read at the start of a
// transaction the last one of another transaction.
func (g *Graph) visible(id uint32) uint32 {
	a := &g.Acc[id]
	p := a.Pred
	if a.AtStart() {
		for p != None && g.Acc[p].Event == a.Event {
			p = g.Acc[p].Pred
		}
	}
	return p
}
