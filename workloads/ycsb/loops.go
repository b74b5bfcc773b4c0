package ycsb

import (
	"github.com/tidwall/btree"

	"github.com/heddle-stream/heddle/program"
)

func list(c *program.Config) []Request {
	g := newGenerator(c)
	out := make([]Request, c.Events)
	for i := range out {
		out[i] = g.next()
	}
	return out
}

// loadMap and loadTree make the state at the start. Rows stand in one piece of
// memory, and those that are inserted get their own.
func loadMap(keys int) map[uint64]*Row {
	rows, memory := make(map[uint64]*Row, keys), make([]Row, keys)
	for i := range memory {
		key := place(i, false)
		memory[i] = fresh(key)
		rows[key] = &memory[i]
	}
	return rows
}

func loadTree(keys int) *btree.Map[uint64, *Row] {
	rows, memory := btree.NewMap[uint64, *Row](0), make([]Row, keys)
	for i := range memory {
		key := place(i, true)
		memory[i] = fresh(key)
		rows.Load(key, &memory[i])
	}
	return rows
}

func overMap(c *program.Config) func() {
	rows, events, cost := loadMap(c.Int("keys")), list(c), c.Cost("complexity")
	return func() {
		total := uint64(0)
		for i := range events {
			total += applyMap(rows, &events[i], cost)
		}
	}
}

func overTree(c *program.Config) func() {
	rows, events, cost := loadTree(c.Int("keys")), list(c), c.Cost("complexity")
	return func() {
		total := uint64(0)
		for i := range events {
			total += applyTree(rows, &events[i], cost)
		}
	}
}

// applyMap runs a transaction of a table without order and returns its digest.
func applyMap(rows map[uint64]*Row, e *Request, cost program.Cost) (digest uint64) {
	cost.SpendTimes(int(e.N))
	refused := e.Accesses[e.N-1].Refuse
	for i := range e.Accesses[:e.N] {
		switch a := &e.Accesses[i]; a.Kind {
		case Read:
			if row := rows[a.Key]; row != nil {
				digest += row.digest()
			}
		case Update:
			if row := rows[a.Key]; !refused {
				row.update(*a)
			}
		case Modify:
			if row := rows[a.Key]; !refused {
				row.modify(*a)
				digest += row.digest()
			}
		case Insert:
			if !refused {
				row := fresh(a.Key)
				rows[a.Key] = &row
			}
		case Scan:
		}
	}
	return digest
}

// applyTree runs a transaction of an ordered table and returns its digest.
func applyTree(rows *btree.Map[uint64, *Row], e *Request, cost program.Cost) (digest uint64) {
	cost.SpendTimes(int(e.N))
	refused := e.Accesses[e.N-1].Refuse
	for i := range e.Accesses[:e.N] {
		a := &e.Accesses[i]
		if a.Kind == Insert {
			if !refused {
				row := fresh(a.Key)
				rows.Set(a.Key, &row)
			}
			continue
		}
		lo, hi := a.bounds()
		rows.Ascend(lo, func(key uint64, row *Row) bool {
			if key == lo {
				digest += row.digest()
			}
			return key < hi && row.unscathed(key)
		})
	}
	return digest
}
