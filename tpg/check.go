package tpg

import "fmt"

// Check verifies the graph against its definition, in time proportional to its
// size: chains in serial order and doubly linked, predecessors the nearest
// earlier writers, reads declared by the transaction that uses them.
func (g *Graph) Check() error {
	for e := range g.Events {
		for id := g.TxLo[e]; id < g.TxHi[e]; id++ {
			a := &g.Acc[id]
			if int(a.Event) != e {
				return fmt.Errorf("access %d stands in event %d and says %d", id, e, a.Event)
			}
			if a.IsRange() {
				for m := a.Slot; m < a.Slot+a.Refs; m++ {
					if err := g.checkAccess(m); err != nil {
						return err
					}
				}
				continue
			}
			if err := g.checkAccess(id); err != nil {
				return err
			}
			if err := g.checkReads(id, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *Graph) checkAccess(id uint32) error {
	a := &g.Acc[id]
	if a.Next != None && g.Acc[a.Next].Prev != id {
		return fmt.Errorf("access %d is followed by %d, which is preceded by %d", id, a.Next, g.Acc[a.Next].Prev)
	}
	want := None
	for p := a.Prev; p != None; p = g.Acc[p].Prev {
		if !g.Before(p, id) {
			return fmt.Errorf("access %d is chained behind %d, which comes later", id, p)
		}
		if g.Acc[p].Writes() {
			want = p
			break
		}
	}
	if a.Pred != want {
		return fmt.Errorf("access %d waits for %d; the last writer before it is %d", id, a.Pred, want)
	}
	return nil
}

func (g *Graph) checkReads(id uint32, event int) error {
	if g.Acc[id].IsRead() {
		return nil
	}
	local, base := g.Reads(id)
	for _, l := range local {
		r := base + l
		if r < g.TxLo[event] || r >= g.TxHi[event] || !g.Acc[r].IsRead() {
			return fmt.Errorf("operation %d looks at access %d, which is no read of its transaction", id, r)
		}
		if r > id {
			return fmt.Errorf("operation %d looks at read %d, which comes later", id, r)
		}
	}
	return nil
}
