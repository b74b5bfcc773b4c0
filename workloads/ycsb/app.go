package ycsb

import (
	"fmt"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

const (
	fields      = 10
	accessesMax = 8
	// spacing is between the keys that an ordered table starts with, so that
	// inserts find room in between.
	spacing = 1 << 24
)

// Field is a value and how often it was written since its row is there.
type Field struct{ Version, Value uint32 }

// Row is what a key holds.
type Row [fields]Field

// fresh returns a row as it is loaded and inserted.
func fresh(key uint64) Row {
	var r Row
	for f := range r {
		r[f].Value = uint32(key) + uint32(f)
	}
	return r
}

// Kind is what an access does.
type Kind uint8

// The kinds of accesses.
const (
	Read Kind = iota
	Update
	Modify // read, change what was there
	Insert
	Scan
)

// Access is one operation of a transaction.
type Access struct {
	Key    uint64
	Value  uint32 // to write; of a scan the length in units of the spacing
	Kind   Kind
	Field  uint8 // of an update or modification
	Refuse bool  // abort after the work
}

// Request is an event: the first N accesses.
type Request struct {
	Accesses [accessesMax]Access
	N        uint8
}

// Done is the result of an event; all zero after an abort.
type Done struct {
	Committed bool
	Digest    uint64        // sum over the rows that it read or modified
	Writes    [fields]uint8 // of each field
	Inserts   uint8
}

type operation = txn.Op[uint64, Row, Access]

// App is the declared application.
type App struct {
	App      *txn.App
	Rows     *txn.Table[uint64, Row]
	Requests *txn.Event[Request, Done]

	ops       [Scan + 1]*operation
	intervals *txn.Range[uint64, Row] // of scans; nil when the table has no order
	refused   txn.Verdict
	cost      program.Cost
}

// New declares the application with the keys that it starts with. An ordered
// table can be scanned.
func New(keys int, ordered bool, cost program.Cost) *App {
	app := txn.New("ycsb")
	a := &App{App: app, refused: app.Reason("refused"), cost: cost}
	if ordered {
		rows := txn.NewOrdered[uint64, Row](app, "rows")
		a.Rows, a.intervals = rows.Table, txn.NewRange(rows, "interval")
		a.ops[Scan] = a.scan()
	} else {
		a.Rows = txn.NewTable[uint64, Row](app, "rows")
	}
	for i := range keys {
		key := place(i, ordered)
		a.Rows.Load(key, fresh(key))
	}
	a.ops[Read] = txn.Get(a.Rows, "read", func(c txn.Ctx, access Access, _ Row, _ bool) txn.Verdict { return a.end(c, access) })
	a.ops[Update] = txn.Update(a.Rows, "update", func(c txn.Ctx, access Access, row *Row) txn.Verdict {
		row.update(access)
		return a.end(c, access)
	})
	a.ops[Modify] = txn.Update(a.Rows, "modify", func(c txn.Ctx, access Access, row *Row) txn.Verdict {
		row.modify(access)
		return a.end(c, access)
	})
	a.ops[Insert] = txn.Insert(a.Rows, "insert", func(c txn.Ctx, access Access, row *Row) txn.Verdict {
		*row = fresh(access.Key)
		return a.end(c, access)
	})
	a.Requests = txn.On(app, "request", a.plan, a.result)
	return a
}

// end is what every operation does last.
func (a *App) end(c txn.Ctx, access Access) txn.Verdict {
	a.cost.Spend(c)
	if access.Refuse {
		return a.refused
	}
	return txn.OK
}

// scan declares an operation that looks at the rows of an interval, all fields.
// Where tables are scanned no row changes, so that each must be whole.
func (a *App) scan() *operation {
	damaged := a.App.Reason("damaged row")
	return txn.Get(a.Rows, "scan", func(c txn.Ctx, access Access, _ Row, _ bool) txn.Verdict {
		lo, hi := access.bounds()
		for key, row := range a.intervals.All(c) {
			if key < lo || key >= hi || !row.unscathed(key) {
				return damaged
			}
			lo = key + 1
		}
		return a.end(c, access)
	})
}

func (a *App) plan(p *txn.Plan, e Request) {
	for i := range e.Accesses[:e.N] {
		access := e.Accesses[i]
		if access.Kind == Scan {
			lo, hi := access.bounds()
			a.ops[Scan].At(p, access.Key, access, a.intervals.Of(p, lo, hi))
			continue
		}
		a.ops[access.Kind].At(p, access.Key, access)
	}
}

func (a *App) result(out txn.Outcome, e Request) Done {
	if !out.Committed() {
		return Done{}
	}
	done := Done{Committed: true}
	for _, op := range []*operation{a.ops[Read], a.ops[Modify], a.ops[Scan]} {
		if op == nil {
			continue
		}
		for _, row := range op.All(out) {
			done.Digest += row.digest()
		}
	}
	for _, access := range e.Accesses[:e.N] {
		switch access.Kind {
		case Update, Modify:
			done.Writes[access.Field]++
		case Insert:
			done.Inserts++
		case Read, Scan:
		}
	}
	return done
}

// place returns the key of the i-th row at the start.
func place(i int, ordered bool) uint64 {
	if ordered {
		return uint64(i) * spacing
	}
	return uint64(i)
}

func (a Access) bounds() (lo, hi uint64) { return a.Key, a.Key + uint64(a.Value)*spacing }

func (r *Row) update(a Access) {
	f := &r[a.Field]
	f.Version++
	f.Value = a.Value
}

func (r *Row) modify(a Access) {
	f := &r[a.Field]
	f.Version++
	f.Value = 31*f.Value + a.Value
}

// digest depends on all fields and their order; an absent row has 0.
func (r *Row) digest() uint64 {
	d := uint64(0)
	for _, f := range r {
		d = 31*d + uint64(f.Version)<<32 + uint64(f.Value)
	}
	return d
}

// unscathed reports whether the values are those that were loaded or inserted.
func (r *Row) unscathed(key uint64) bool {
	for f := range r {
		if r[f].Value != uint32(key)+uint32(f) {
			return false
		}
	}
	return true
}

// totals sums up results.
type totals struct {
	writes  [fields]int64
	inserts int64
}

func (t *totals) add(d Done) {
	for f, n := range d.Writes {
		t.writes[f] += int64(n)
	}
	t.inserts += int64(d.Inserts)
}

// check verifies that the versions of each field count the writes that the
// results tell of, that all inserted rows are there, and that a field without a
// write has the value that it began with.
func (a *App) check(keys int, t *totals) error {
	if n := int64(a.Rows.Len()); n != int64(keys)+t.inserts {
		return fmt.Errorf("%d rows; %d at the start and %d inserts make %d", n, keys, t.inserts, int64(keys)+t.inserts)
	}
	var versions [fields]int64
	for key, row := range a.Rows.All() {
		for f, field := range row {
			versions[f] += int64(field.Version)
			if field.Version == 0 && field.Value != uint32(key)+uint32(f) {
				return fmt.Errorf("rows[%d]: field %d has version 0 and value %d, which nobody wrote", key, f, field.Value)
			}
		}
	}
	for f, n := range versions {
		if n != t.writes[f] {
			return fmt.Errorf("versions of field %d sum to %d, %d writes took effect", f, n, t.writes[f])
		}
	}
	return nil
}
