package engine

import (
	"cmp"
	"slices"

	"github.com/heddle-stream/heddle/tpg"
	"github.com/heddle-stream/heddle/txn"
)

// guess is an access with the row that its key has before the batch.
type guess struct {
	table int
	row   uint32
	id    uint32
}

// placeLate puts accesses with computed keys into the chains of the rows that
// they would have if nothing of the batch ran.
func (g *graphPath) placeLate(x *txn.Batch) {
	for i := range x.Src {
		x.Src[i] = tpg.None // so that key functions see the state before the batch
	}
	g.guesses = g.guesses[:0]
	for _, id := range x.Late {
		if g.exec.Guess(id) {
			g.guesses = append(g.guesses, guess{x.TableOf(id), g.exec.Row(id), id})
		}
	}
	// Row by row from the end of each chain, so that a chain is walked once.
	slices.SortFunc(g.guesses, func(a, b guess) int {
		return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.row, b.row), cmp.Compare(b.id, a.id))
	})
	for i, p := range g.guesses {
		if i > 0 && g.guesses[i-1].table == p.table && g.guesses[i-1].row == p.row {
			g.graph.Insert(p.id, g.guesses[i-1].id)
			continue
		}
		last, _ := g.graph.Insert(p.id, g.exec.SetLast(p.id, p.id))
		g.exec.SetLast(p.id, last)
	}
}

// installLate makes the last versions of the rows values whose chains end with an
// access with a computed key. No shard lists those.
func (g *graphPath) installLate(x *txn.Batch, limit uint32) {
	for _, id := range x.Late {
		if g.exec.Row(id) == tpg.None || x.Acc[id].Next != tpg.None {
			continue
		}
		if w := g.slots[0].lastVersion(x, id, limit); w != tpg.None {
			x.InstallVersion(w)
			if x.Windowed(x.TableOf(id)) {
				x.Record(id, limit)
			}
		}
	}
}
