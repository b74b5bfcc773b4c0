package txn

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/heddle-stream/heddle/storage/history"
	"github.com/heddle-stream/heddle/storage/keyed"
)

// Reset removes all rows, so that another state can be loaded. Only before the
// application runs.
func (v TableView) Reset() { v.t.reset() }

// LoadRow sets a row from the byte form that AppendRow and Rows give, which must
// be all of src. Between batches. For many rows see Loader.
func (v TableView) LoadRow(src []byte) error { return v.t.loadRow(src) }

// Versions calls yield with the byte form of each version that the table keeps for
// windows, those of a key oldest first; the bytes are valid during the call.
func (v TableView) Versions(yield func(version []byte) bool) { v.t.encodedVersions(yield) }

// LoadVersion adds a version from the byte form that Versions gives, which must be
// all of src. Versions of a key come in the order in which Versions gave them.
func (v TableView) LoadVersion(src []byte) error { return v.t.loadVersion(src) }

// Resume tells that the events before number first were run before, the last of
// them at the given event time. Only before the application runs.
func (b *Bound) Resume(first int, lastTime int64) {
	b.lastTime, b.begun = lastTime, first > 0
}

func (t *Table[K, V]) encodedVersions(yield func([]byte) bool) {
	if t.hist == nil {
		return
	}
	var buf []byte
	for key, v := range t.hist.All() {
		if buf = t.encodeVersion(buf[:0], &key, &v); !yield(buf) {
			return
		}
	}
}

func (t *Table[K, V]) freshlyKept(yield func([]byte) bool) {
	if t.hist == nil {
		return
	}
	var buf []byte
	for key, v := range t.hist.Fresh() {
		if buf = t.encodeVersion(buf[:0], &key, &v); !yield(buf) {
			return
		}
	}
}

// What a version holds besides its value, where windows want what is in force when they
// begin: whether it has none, and whether what the key held before follows.
const (
	versionGone   = 1
	versionBefore = 2
)

func (t *Table[K, V]) encodeVersion(dst []byte, key *K, v *history.Kept[V]) []byte {
	dst = t.key.Append(dst, key)
	dst = binary.AppendVarint(binary.AppendVarint(dst, v.Seq), v.Time)
	if !t.inForce {
		return t.val.Append(dst, &v.Val)
	}
	before := v.First && v.Before.Ok
	flags := byte(0)
	if v.Gone {
		flags |= versionGone
	}
	if before {
		flags |= versionBefore
	}
	dst = append(dst, flags)
	if !v.Gone {
		dst = t.val.Append(dst, &v.Val)
	}
	if before {
		dst = t.val.Append(dst, &v.Before.Val)
	}
	return dst
}

// decodeHeld reads what encodeVersion adds behind the time.
func (t *Table[K, V]) decodeHeld(src []byte, key K, v *history.Version[V], before *history.Held[V]) (rest []byte, err error) {
	flags := byte(0)
	if t.inForce {
		if len(src) == 0 || src[0] > versionGone|versionBefore {
			return nil, errors.New("bad flags")
		}
		flags, src = src[0], src[1:]
	}
	if v.Gone = flags&versionGone != 0; !v.Gone {
		if src, err = t.decodeStored(src, key, &v.Val); err != nil {
			return nil, err
		}
	}
	if before.Ok = flags&versionBefore != 0; before.Ok {
		return t.decodeStored(src, key, &before.Val)
	}
	return src, nil
}

func (t *Table[K, V]) loadVersion(src []byte) error {
	if t.hist == nil { // the windows that wanted it are gone
		return nil
	}
	var key K
	var v history.Version[V]
	var before history.Held[V]
	rest, err := t.key.Decode(src, &key)
	for _, n := range []*int64{&v.Seq, &v.Time} {
		if err == nil {
			var size int
			if *n, size = binary.Varint(rest); size <= 0 {
				err = errors.New("bad number")
			} else {
				rest = rest[size:]
			}
		}
	}
	if err == nil {
		rest, err = t.decodeHeld(rest, key, &v, &before)
	}
	if err != nil {
		return fmt.Errorf("version of table %s: %w", t.name, err)
	}
	if len(rest) != 0 {
		return fmt.Errorf("version of table %s: %d bytes too many", t.name, len(rest))
	}
	t.hist.Append(t.rows.ShardOfKey(key), key, before, v)
	return nil
}

func (t *Table[K, V]) reset() {
	t.rows.Reset()
	if t.hist != nil {
		t.hist.Reset()
	}
}

func (t *Table[K, V]) loadRow(src []byte) error {
	var row keyed.Row[K, V]
	if err := t.decodeRow(src, &row); err != nil {
		return err
	}
	t.rows.Load(row.Key, row.Val)
	return nil
}

// decodeRow decodes key and value of a row that is zero.
func (t *Table[K, V]) decodeRow(src []byte, row *keyed.Row[K, V]) error {
	rest, err := t.key.Decode(src, &row.Key)
	if err == nil {
		rest, err = t.decodeStored(rest, row.Key, &row.Val)
	}
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%d bytes too many", len(rest))
	}
	if err != nil {
		return fmt.Errorf("row of table %s: %w", t.name, err)
	}
	return nil
}

// rowLoader collects rows by shard, so that each shard is locked once for many.
type rowLoader[K comparable, V any] struct {
	t    *Table[K, V]
	row  keyed.Row[K, V] // in hand: here, because codecs get pointers
	rows [keyed.Shards][]keyed.Row[K, V]
}

// RowLoader loads rows of a table. Any number of goroutines may do so at once, each with
// a loader of its own.
type RowLoader interface {
	// Load takes a row in the byte form that AppendRow and Rows give, which must be all
	// of src.
	Load(src []byte) error
	// Flush puts the rows taken since the last Flush into the table.
	Flush()
}

// Loader returns a loader. The rows that are loaded have distinct keys.
func (v TableView) Loader() RowLoader { return v.t.loader() }

// Reserve makes room for so many rows in a table that is empty.
func (v TableView) Reserve(rows int) { v.t.reserve(rows) }

func (t *Table[K, V]) reserve(rows int) { t.rows.Reserve(rows) }

func (t *Table[K, V]) loader() RowLoader { return &rowLoader[K, V]{t: t} }

// Load implements [RowLoader].
func (l *rowLoader[K, V]) Load(src []byte) error {
	l.row = keyed.Row[K, V]{}
	if err := l.t.decodeRow(src, &l.row); err != nil {
		return err
	}
	l.row.Hash = l.t.rows.Hash(l.row.Key)
	shard := l.t.rows.Shard(l.row.Hash)
	l.rows[shard] = append(l.rows[shard], l.row)
	return nil
}

// Flush implements [RowLoader].
func (l *rowLoader[K, V]) Flush() {
	for shard := range l.rows {
		if len(l.rows[shard]) == 0 {
			continue
		}
		mu := &l.t.loading[shard]
		mu.Lock()
		l.t.rows.LoadShard(shard, l.rows[shard])
		mu.Unlock()
		clear(l.rows[shard]) // it may hold memory
		l.rows[shard] = l.rows[shard][:0]
	}
}

// EventNames returns the names of the event types in declaration order.
func (a *App) EventNames() []string {
	out := make([]string, len(a.events))
	for i, ev := range a.events {
		out[i] = ev.Name()
	}
	return out
}

// CopyTo puts event i behind those of dst.
func (f *Feed) CopyTo(dst *Feed, i int) {
	r := f.refs[i]
	f.app.events[r.typ].move(f.id, r.place, dst)
}

// RegionCount returns in how many parts the batch is planned.
func (x *Batch) RegionCount() int { return len(x.plans) }
