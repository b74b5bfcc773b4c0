package txn

import (
	"fmt"

	"github.com/heddle-stream/heddle/storage/keyed"
)

// changes is what of a table changed, see [Changes].
type changes interface {
	track() keyed.Tracker
	untrack(tracker keyed.Tracker)
	all(tracker keyed.Tracker)
	cut(tracker keyed.Tracker)
	takeGone(tracker keyed.Tracker, yield func(key []byte))
	take(tracker keyed.Tracker, shard, at, limit int, yield func(row []byte)) (next int)
	takeKeys(tracker keyed.Tracker, shard, at, limit int, yield func(key []byte)) (next int)
	shardCount() int
}

// Changes tells which rows of an application changed between two cuts, and what they
// held at the second one, while the application goes on to change them. One goroutine,
// between batches.
type Changes struct {
	app      *App
	tables   []changes
	trackers []keyed.Tracker
	at       cursor
}

// cursor is a place among the marks of changed rows.
type cursor struct{ table, shard, word int }

// Track makes the application remember what changes from now on, for one more who
// asks.
func (a *App) Track() *Changes {
	c := &Changes{app: a}
	for _, t := range a.tables {
		c.tables = append(c.tables, t.changes())
		c.trackers = append(c.trackers, t.changes().track())
	}
	return c
}

// Stop ends the remembering, of the one who began last of those who still ask.
func (c *Changes) Stop() {
	for i, t := range c.tables {
		t.untrack(c.trackers[i])
	}
}

// All marks every row as changed.
func (c *Changes) All() {
	for i, t := range c.tables {
		t.all(c.trackers[i])
	}
}

// Cut makes what changed since the last cut due to be taken, as it is now. What was
// due before has to be taken already.
func (c *Changes) Cut() {
	c.at = cursor{}
	for i, t := range c.tables {
		t.cut(c.trackers[i])
	}
}

// Forget passes over all that changed so far.
func (c *Changes) Forget() {
	c.Cut()
	c.TakeGone(func(int, []byte) {})
	for c.Take(1<<20, func(int, []byte) {}) {
	}
}

// Err returns why what was taken is not whole: a row could not be read. Between batches.
func (c *Changes) Err() error { return c.app.LogErr() }

// TakeGone yields the keys that were removed, each with the number of its table. It
// comes first after a cut: rows that Take yields may have such keys again. The bytes
// are valid during the call.
func (c *Changes) TakeGone(yield func(table int, key []byte)) {
	for i, t := range c.tables {
		t.takeGone(c.trackers[i], func(key []byte) { yield(i, key) })
	}
}

// Take yields about limit rows that are due, key and value, each with the number of
// its table. The bytes are valid during the call. It returns false when nothing is
// left.
func (c *Changes) Take(limit int, yield func(table int, row []byte)) (more bool) {
	return c.each(limit, changes.take, yield)
}

// TakeKeys is Take that yields the keys alone.
func (c *Changes) TakeKeys(limit int, yield func(table int, key []byte)) (more bool) {
	return c.each(limit, changes.takeKeys, yield)
}

type taking = func(t changes, tracker keyed.Tracker, shard, at, limit int, yield func([]byte)) (next int)

// each goes on through the tables, from where the last call ended.
func (c *Changes) each(limit int, take taking, yield func(table int, item []byte)) (more bool) {
	for ; c.at.table < len(c.tables); c.at = (cursor{table: c.at.table + 1}) {
		t := c.tables[c.at.table]
		for c.at.shard < t.shardCount() {
			if limit <= 0 {
				return true
			}
			next := take(t, c.trackers[c.at.table], c.at.shard, c.at.word, limit, func(item []byte) {
				limit--
				yield(c.at.table, item)
			})
			if next >= 0 {
				c.at.word = next
				continue
			}
			c.at.shard, c.at.word = c.at.shard+1, 0
		}
	}
	return false
}

// tableChanges is a table as changes.
type tableChanges[K comparable, V any] struct {
	*Table[K, V]
	buf []byte
}

func (t *Table[K, V]) changes() changes { return &tableChanges[K, V]{Table: t} }

func (t *tableChanges[K, V]) track() keyed.Tracker      { return t.rows.Track() }
func (t *tableChanges[K, V]) untrack(tr keyed.Tracker)  { t.rows.Untrack(tr) }
func (t *tableChanges[K, V]) all(tracker keyed.Tracker) { t.rows.ChangeAll(tracker) }
func (t *tableChanges[K, V]) cut(tracker keyed.Tracker) { t.rows.Cut(tracker) }

func (t *tableChanges[K, V]) takeGone(tracker keyed.Tracker, yield func([]byte)) {
	t.rows.TakeGone(tracker, func(key *K) {
		t.buf = t.key.Append(t.buf[:0], key)
		yield(t.buf)
	})
}

func (t *tableChanges[K, V]) take(tracker keyed.Tracker, shard, at, limit int, yield func([]byte)) int {
	return t.rows.Take(tracker, shard, at, limit, func(key *K, v *V) {
		t.buf = t.val.Append(t.key.Append(t.buf[:0], key), v)
		yield(t.buf)
	})
}

func (t *tableChanges[K, V]) takeKeys(tracker keyed.Tracker, shard, at, limit int, yield func([]byte)) int {
	return t.rows.Take(tracker, shard, at, limit, func(key *K, _ *V) {
		t.buf = t.key.Append(t.buf[:0], key)
		yield(t.buf)
	})
}

// DropRow removes the row of a key from its byte form, if there is one. Between batches.
func (v TableView) DropRow(key []byte) error { return v.t.dropRow(key) }

func (t *Table[K, V]) dropRow(src []byte) error {
	key, err := t.decodeKey(src)
	if err == nil {
		t.rows.Delete(key)
	}
	return err
}

// decodeKey decodes a key, which must be all of src.
func (t *Table[K, V]) decodeKey(src []byte) (key K, err error) {
	rest, err := t.key.Decode(src, &key)
	if err != nil {
		return key, fmt.Errorf("key of table %s: %w", t.name, err)
	}
	if len(rest) != 0 {
		return key, fmt.Errorf("key of table %s: %d bytes too many", t.name, len(rest))
	}
	return key, nil
}

// FreshVersions calls yield with the byte form of each version that the table keeps
// for windows since the last batch, those of a key oldest first; the bytes are valid
// during the call.
func (v TableView) FreshVersions(yield func(version []byte) bool) { v.t.freshlyKept(yield) }
