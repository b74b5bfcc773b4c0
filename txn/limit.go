package txn

import (
	"errors"
	"fmt"

	"github.com/heddle-stream/heddle/storage/keyed"
)

// RowLog keeps rows in byte form, outside of memory.
type RowLog = keyed.Log

// RowAddressMax is the largest address of a row in a [RowLog], and one.
const RowAddressMax = keyed.AddressMax

// RowTraffic tells of rows in logs: how many there are, how many went there and came back
// so far, how many bytes they take, and how much time that took.
type RowTraffic = keyed.Traffic

// rowLimited is a table whose rows may be in a log.
type rowLimited interface {
	limit(b *keyed.Budget, log RowLog)
	logErr() error
	tidy()
	traffic() RowTraffic
	closeLog() error
}

// LimitMemory makes the tables keep about so many bytes of rows in memory, together, and
// the others in logs, of which open makes one for each table, by its number. It changes no
// result. Call it once, before an engine runs the application, and best before rows are
// loaded; package storage/spill has logs. Versions that windows keep, and the keys of
// ordered tables, stay in memory besides.
func (a *App) LimitMemory(bytes int64, open func(table int) RowLog) {
	a.budget, a.openLog = keyed.NewBudget(bytes), open
	for _, t := range a.tables {
		a.limit(t)
	}
}

func (a *App) limit(t tableRuntime) {
	if a.budget != nil {
		t.limit(a.budget, a.openLog(t.number()))
	}
}

// MemoryUsed returns how many bytes of memory rows take, by the account of LimitMemory.
func (a *App) MemoryUsed() int64 {
	if a.budget == nil {
		return 0
	}
	return a.budget.Used()
}

// Limited reports whether LimitMemory was called.
func (a *App) Limited() bool { return a.budget != nil }

// LogErr returns the first error of a log. The state is not whole then: rows may be
// missing. Between batches.
func (a *App) LogErr() error {
	if !a.Limited() {
		return nil
	}
	var errs []error
	for _, t := range a.tables {
		errs = append(errs, t.logErr())
	}
	return errors.Join(errs...)
}

// Tidy frees what rows left behind that came back from the logs. Between batches, one
// goroutine.
func (a *App) Tidy() {
	if a.Limited() {
		for _, t := range a.tables {
			t.tidy()
		}
	}
}

// Traffic returns how many rows are in the logs, and went there and came back so far.
// Between batches.
func (a *App) Traffic() (sum RowTraffic) {
	for _, t := range a.tables {
		sum.Add(t.traffic())
	}
	return sum
}

// Close frees the logs, and the rows that are there with them. An application without
// LimitMemory need not be closed.
func (a *App) Close() error {
	if !a.Limited() {
		return nil
	}
	var errs []error
	for _, t := range a.tables {
		errs = append(errs, t.closeLog())
	}
	return errors.Join(errs...)
}

func (t *Table[K, V]) limit(b *keyed.Budget, log RowLog) {
	if t.key.Append == nil || t.val.Append == nil { // Err tells
		return
	}
	t.rows.Limit(b, log,
		func(dst []byte, key *K, v *V) []byte { return t.val.Append(t.key.Append(dst, key), v) },
		func(src []byte, key *K, v *V) error {
			rest, err := t.key.Decode(src, key)
			if err == nil {
				rest, err = t.val.Decode(rest, v)
			}
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("%d bytes too many", len(rest))
			}
			if err != nil {
				return fmt.Errorf("row of table %s: %w", t.name, err)
			}
			return nil
		})
}

func (t *Table[K, V]) logErr() error {
	if err := t.rows.LogErr(); err != nil {
		return fmt.Errorf("table %s: %w", t.name, err)
	}
	return nil
}

func (t *Table[K, V]) tidy()               { t.rows.Tidy() }
func (t *Table[K, V]) traffic() RowTraffic { return t.rows.Traffic() }
func (t *Table[K, V]) closeLog() error     { return t.rows.CloseLog() }
