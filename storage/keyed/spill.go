package keyed

import (
	"sync/atomic"

	"github.com/heddle-stream/heddle/internal/arena"
)

// Log keeps rows in byte form, outside of memory. Append, Read and Free may be called
// from several goroutines, for different rows.
type Log interface {
	// Append adds rows, which stand in data one behind the other and end at the given
	// offsets, and sets their addresses: above 0 and below AddressMax.
	Append(data []byte, ends []int, addresses []uint64) error
	// Row returns the row at an address, in memory of the caller.
	Row(address uint64, buf *[]byte) ([]byte, error)
	// Read yields the rows at addresses in ascending order; buf is the caller's memory.
	Read(addresses []uint64, buf *[]byte, yield func(i int, row []byte) error) error
	// Free gives up a row of so many bytes.
	Free(address uint64, row int)
	// Each yields all rows, those that are given up perhaps included.
	Each(yield func(address uint64, row []byte) error) error
	// Compact moves rows, if that frees much.
	Compact(there func(address uint64, row []byte) bool, moved func(row []byte, from, to uint64)) error
	// Size returns the bytes it takes.
	Size() int64
	// Close frees everything.
	Close() error
}

// spilling is what a table that may have rows in a log has besides.
type spilling[K comparable, V any] struct {
	budget *Budget
	log    Log
	append func(dst []byte, key *K, v *V) []byte
	decode func(src []byte, key *K, v *V) error
	keys   func(*K) int          // bytes that a key refers to, nil when it cannot
	vals   func(*V) int          // and a value
	held   atomic.Int64          // bytes of the budget
	places atomic.Int64          // of all shards
	failed atomic.Pointer[error] // the first of the log's errors
	shards [Shards]spilled[K, V]
}

// spilled is what a shard of such a table has besides.
type spilled[K comparable, V any] struct {
	cold    cold
	hand    uint32 // where the search for rows to go stands
	outside int64  // bytes that records refer to, as the budget has them
	sampled uint32 // the place looked at last for that
	fits    uint32
	come    int // rows so far
	gone    int
	nanos   int64 // that took, by samples where rows come one by one

	victims []victim[K]
	data    []byte
	ends    []int
	wanted  []uint64
	buf     []byte
	key     K // of the row in hand
	val     V
	_       [64]byte
}

// Limit makes the table keep rows in memory as far as the budget allows, and the others in
// the log, in the byte form that the functions give and take. Not while a batch runs.
func (t *Table[K, V]) Limit(b *Budget, log Log, encode func(dst []byte, key *K, v *V) []byte, decode func(src []byte, key *K, v *V) error) {
	p := &spilling[K, V]{budget: b, log: log, append: encode, decode: decode, keys: arena.Outside[K](), vals: arena.Outside[V]()}
	t.spill = p
	b.tables++
	for i := range t.shards[:t.count] {
		p.shards[i].cold.marks = make([][]marks, len(t.shards[i].changes))
		p.charge(t.placesBytes(int(t.shards[i].mask) + 1))
		p.places.Add(int64(t.shards[i].mask) + 1)
	}
	for i := range t.shards[:t.count] {
		t.weigh(i)
		t.settle(i)
	}
}

// Limited reports whether rows may be in a log.
func (t *Table[K, V]) Limited() bool { return t.spill != nil }

// Traffic tells of the rows in the log: how many there are now, how many went there and
// came back so far, how many bytes it takes, and how much time moving rows took, summed over
// those who did it.
type Traffic struct {
	Rows, Gone, Come int
	Bytes, Nanos     int64
}

// Add adds that of another table.
func (n *Traffic) Add(other Traffic) {
	n.Rows += other.Rows
	n.Gone += other.Gone
	n.Come += other.Come
	n.Bytes += other.Bytes
	n.Nanos += other.Nanos
}

// Traffic returns that of the table. Between batches.
func (t *Table[K, V]) Traffic() (sum Traffic) {
	if t.spill == nil {
		return sum
	}
	for i := range t.shards[:t.count] {
		z := &t.spill.shards[i]
		sum.Add(Traffic{Rows: z.cold.used, Gone: z.gone, Come: z.come, Nanos: z.nanos})
	}
	sum.Bytes = t.spill.log.Size()
	return sum
}

// LogErr returns the first error of the log. After one the table is not whole: what could
// not be read was taken to be absent.
func (t *Table[K, V]) LogErr() error {
	if t.spill == nil {
		return nil
	}
	if err := t.spill.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// CloseLog frees the log, and the rows in it with it.
func (t *Table[K, V]) CloseLog() error {
	if t.spill == nil {
		return nil
	}
	for i := range t.spill.shards {
		c := &t.spill.shards[i].cold
		t.spill.charge(-c.bytes())
		c.clear()
	}
	return t.spill.log.Close()
}

// Tidy has the log free what rows left behind. Between batches, one goroutine.
func (t *Table[K, V]) Tidy() {
	if t.spill == nil {
		return
	}
	slot := func(row []byte, address uint64) (c *cold, at uint32, ok bool) {
		var key K
		var v V
		if !t.spill.decoded(row, &key, &v) {
			return nil, 0, false
		}
		hash := t.hash.sum(key)
		c = &t.spill.shards[t.Shard(hash)].cold
		at, ok = c.at(hash, address)
		return c, at, ok
	}
	t.spill.fail(t.spill.log.Compact(
		func(address uint64, row []byte) bool {
			_, _, ok := slot(row, address)
			return ok
		},
		func(row []byte, from, to uint64) {
			if c, at, ok := slot(row, from); ok {
				c.slots[at] = c.slots[at]&^addressMask | to
			}
		}))
}

func (p *spilling[K, V]) fail(err error) {
	if err != nil {
		p.failed.CompareAndSwap(nil, &err)
	}
}
