package txn

import (
	"fmt"

	"github.com/heddle-stream/heddle/storage/keyed"
)

// changes is what of a table changed, see [Changes].
type changes interface {
	track() keyed.Tracker
	all(tracker keyed.Tracker)
	count(tracker keyed.Tracker) int
	take(tracker keyed.Tracker, shard, at, limit int, yield func(item []byte, gone bool)) (next int)
	shardCount() int
}

// Changes tells which rows of an application changed since it was asked last. One
// goroutine, between batches.
type Changes struct {
	tables   []changes
	trackers []keyed.Tracker
	at       cursor
}

// cursor is a place among the marks of changed rows.
type cursor struct{ table, shard, word int }

// Track makes the application remember what changes from now on, for one more who
// asks.
func (a *App) Track() *Changes {
	c := &Changes{}
	for _, t := range a.tables {
		c.tables = append(c.tables, t.changes())
		c.trackers = append(c.trackers, t.changes().track())
	}
	return c
}

// All marks every row as changed.
func (c *Changes) All() {
	for i, t := range c.tables {
		t.all(c.trackers[i])
	}
	c.at = cursor{}
}

// Count returns how many rows are left to be taken, in time proportional to a
// sixty-fourth of all rows.
func (c *Changes) Count() int {
	n := 0
	for i, t := range c.tables {
		n += t.count(c.trackers[i])
	}
	return n
}

// Take yields about limit changed rows, beginning where the last call stopped: the
// number of the table and key and value, or only the key of a row that is gone. The
// bytes are valid during the call. It returns false when it came to the end of the
// tables; the next call begins anew, with what changed meanwhile.
func (c *Changes) Take(limit int, yield func(table int, item []byte, gone bool)) (more bool) {
	for ; c.at.table < len(c.tables); c.at = (cursor{table: c.at.table + 1}) {
		t := c.tables[c.at.table]
		for c.at.shard < t.shardCount() {
			if limit <= 0 {
				return true
			}
			next := t.take(c.trackers[c.at.table], c.at.shard, c.at.word, limit, func(item []byte, gone bool) {
				limit--
				yield(c.at.table, item, gone)
			})
			if next >= 0 {
				c.at.word = next
				return true
			}
			c.at.shard, c.at.word = c.at.shard+1, 0
		}
	}
	c.at = cursor{}
	return false
}

// tableChanges is a table as changes.
type tableChanges[K comparable, V any] struct {
	*Table[K, V]
	buf []byte
}

func (t *Table[K, V]) changes() changes { return &tableChanges[K, V]{Table: t} }

func (t *tableChanges[K, V]) track() keyed.Tracker            { return t.rows.Track() }
func (t *tableChanges[K, V]) all(tracker keyed.Tracker)       { t.rows.ChangeAll(tracker) }
func (t *tableChanges[K, V]) count(tracker keyed.Tracker) int { return t.rows.Changes(tracker) }

func (t *tableChanges[K, V]) take(tracker keyed.Tracker, shard, at, limit int, yield func([]byte, bool)) int {
	return t.rows.TakeChanges(tracker, shard, at, limit, func(key *K, v *V) {
		t.buf = t.key.Append(t.buf[:0], key)
		if v != nil {
			t.buf = t.val.Append(t.buf, v)
		}
		yield(t.buf, v == nil)
	})
}

// DropRow removes the row of a key from its byte form, if there is one. Only before
// the application runs.
func (v TableView) DropRow(key []byte) error { return v.t.dropRow(key) }

func (t *Table[K, V]) dropRow(src []byte) error {
	var key K
	rest, err := t.key.Decode(src, &key)
	if err != nil {
		return fmt.Errorf("key of table %s: %w", t.name, err)
	}
	if len(rest) != 0 {
		return fmt.Errorf("key of table %s: %d bytes too many", t.name, len(rest))
	}
	t.rows.Delete(key)
	return nil
}

// FreshVersions calls yield with the byte form of each version that the table keeps
// for windows since the last batch, those of a key oldest first; the bytes are valid
// during the call.
func (v TableView) FreshVersions(yield func(version []byte) bool) { v.t.freshlyKept(yield) }
