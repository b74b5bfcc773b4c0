package tpg

import (
	"cmp"
	"slices"

	"github.com/heddle-stream/heddle/txn"
)

// Guesser puts accesses with computed keys into the chains of the rows that they
// would have if nothing of the batch ran. Its memory is used again.
type Guesser struct{ guesses []guess }

// guess is an access with the row that its key has before the batch.
type guess struct {
	table int
	row   uint32
	id    uint32
}

// Place finds the rows and inserts the accesses into a linked graph. The executor
// uses the batch already. One goroutine; takes time proportional to the late
// accesses and the chains that they come into.
func (w *Guesser) Place(g *Graph, x *txn.Batch, exec *txn.Executor) {
	if len(x.Late) == 0 || x.OnlySerial {
		return
	}
	for i := range x.Src {
		x.Src[i] = None // so that key functions see the state before the batch
	}
	w.guesses = w.guesses[:0]
	for _, id := range x.Late {
		if exec.Guess(id) {
			w.guesses = append(w.guesses, guess{x.TableOf(id), exec.Row(id), id})
		}
	}
	// Row by row from the end of each chain, so that a chain is walked once.
	slices.SortFunc(w.guesses, func(a, b guess) int {
		return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.row, b.row), cmp.Compare(b.id, a.id))
	})
	for i, p := range w.guesses {
		if i > 0 && w.guesses[i-1].table == p.table && w.guesses[i-1].row == p.row {
			g.Insert(p.id, w.guesses[i-1].id)
			continue
		}
		last, _ := g.Insert(p.id, exec.SetLast(p.id, p.id))
		exec.SetLast(p.id, last)
	}
}
