package keyed

import (
	"iter"

	"github.com/heddle-stream/heddle/internal/arena"
)

// None stands for "no row" and "no access".
const None = ^uint32(0)

const (
	shardBits = 4
	// Shards is how many parts a plain table has. More than the workers, so that
	// a worker which is done early takes over a shard of a slower one.
	Shards = 1 << shardBits

	group = 16 // look-ups in flight together: about the misses that a core keeps open
)

// Entry is one access of a batch on its way to a row.
type Entry[K comparable] struct {
	Hash uint32
	ID   uint32 // the access, counted from the start of its plan worker's share
	Key  K
}

// Record is one row. An absent row is only a place in chains for the time of a
// batch.
type Record[K comparable, V any] struct {
	Val   V
	Key   K
	state rowState
}

type rowState uint8

const (
	rowAbsent rowState = iota
	rowPresent
	rowFree // on the free list
)

// Present reports whether the row holds a value.
func (r *Record[K, V]) Present() bool { return r.state == rowPresent }

// SetPresent marks the row as holding a value or not.
func (r *Record[K, V]) SetPresent(yes bool) {
	r.state = rowAbsent
	if yes {
		r.state = rowPresent
	}
}

// touch tells which access of which batch touched a row last. It stands apart
// from the record because the serial strategy has no use for it.
type touch struct{ epoch, last uint32 }

type indexEntry struct {
	hash uint32
	row  uint32 // local row + 1; 0 is an empty place
}

type shard[K comparable, V any] struct {
	// What each look-up needs stands in one cache line.
	index []indexEntry
	recs  []Record[K, V]
	mask  uint32
	marks []touch // by row
	used  int
	free  []uint32 // local rows to be used again
	fresh []uint32 // local rows made in this batch, absent until installed
	_     [56]byte
}

// Table maps keys to rows with values. Shards may be worked on by different
// goroutines at the same time; one shard by one goroutine only.
type Table[K comparable, V any] struct {
	hash   hasher[K]
	bits   uint // of the row number that name the shard
	shift  uint // 32 - bits
	shards []shard[K, V]
	order  *order[K] // of an ordered table, else nil
	epoch  uint32

	// The versions of a batch, by slot. Each access owns one; those of a shard
	// stand together, in event order.
	Ver  []V
	Has  []bool
	Rows []uint32 // the row of each slot
	Prev []uint32 // the access that touched the row before, or None
	IDs  []uint32 // the access that owns the slot

	pointers bool
}

// New returns an empty table.
func New[K comparable, V any]() *Table[K, V] {
	return newTable[K, V](shardBits)
}

func newTable[K comparable, V any](bits uint) *Table[K, V] {
	t := &Table[K, V]{hash: newHasher[K](), bits: bits, shift: 32 - bits, pointers: arena.HasPointers[V]()}
	t.shards = make([]shard[K, V], 1<<bits)
	for i := range t.shards {
		t.shards[i].index = make([]indexEntry, 8)
		t.shards[i].mask = 7
	}
	return t
}

// ShardCount returns 16, or 1 for an ordered table.
func (t *Table[K, V]) ShardCount() int { return len(t.shards) }

// Hash returns the hash of a key; its shard is Shard(hash).
func (t *Table[K, V]) Hash(k K) uint32 { return t.hash.sum(k) }

// Shard returns the shard of a hash.
func (t *Table[K, V]) Shard(hash uint32) uint32 { return uint32(uint64(hash) >> (t.shift & 63)) }

// At returns the record of a row. The pointer is valid until a row is added.
func (t *Table[K, V]) At(row uint32) *Record[K, V] {
	return &t.shards[row&(1<<t.bits-1)].recs[row>>t.bits]
}

// Find returns the row of a key, or None.
func (t *Table[K, V]) Find(hash uint32, key K) uint32 {
	si := t.Shard(hash)
	s := &t.shards[si]
	for i := hash & s.mask; ; i = (i + 1) & s.mask {
		e := s.index[i]
		if e.row == 0 {
			return None
		}
		if e.hash == hash && s.recs[e.row-1].Key == key {
			return (e.row-1)<<t.bits | si
		}
	}
}

// Ensure returns the row of a key with its record, making an absent one when
// there is none. The pointer is valid until a row is added.
//
// Nearly all keys are at the first or second place looked at. Which of them is
// chosen without a branch, because one that is guessed wrong would hold up the
// look-ups behind it.
func (t *Table[K, V]) Ensure(key K) (*Record[K, V], uint32) {
	hash := t.hash.sum(key)
	si := uint32(uint64(hash) >> (t.shift & 63))
	s := &t.shards[si]
	e, f := s.index[hash&s.mask], s.index[(hash+1)&s.mask]
	d := e.hash ^ hash
	other := uint32(int32(d|-d) >> 31) // all ones when the first place is not it
	row := e.row ^ (e.row^f.row)&other
	if local := row - 1; int(local) < len(s.recs) && s.recs[local].Key == key && s.recs[local].state != rowFree {
		return &s.recs[local], local<<(t.bits&31) | si
	}
	local := t.ensure(s, hash, key)
	return &s.recs[local], local<<t.bits | si
}

// ensure works on local rows.
func (t *Table[K, V]) ensure(s *shard[K, V], hash uint32, key K) uint32 {
	i := hash & s.mask
	for ; ; i = (i + 1) & s.mask {
		e := s.index[i]
		if e.row == 0 {
			break
		}
		if e.hash == hash && s.recs[e.row-1].Key == key {
			return e.row - 1
		}
	}
	var local uint32
	if n := len(s.free); n > 0 {
		local = s.free[n-1]
		s.free = s.free[:n-1]
		s.recs[local] = Record[K, V]{Key: key}
	} else {
		local = uint32(len(s.recs))
		s.recs = arena.AppendHuge(s.recs, Record[K, V]{Key: key})
		s.marks = arena.AppendHuge(s.marks, touch{})
	}
	s.fresh = append(s.fresh, local)
	s.index[i] = indexEntry{hash, local + 1}
	s.used++
	if s.used*2 > len(s.index) {
		s.grow()
	}
	if t.order != nil {
		t.order.tree.Set(place[K]{key, local})
	}
	return local
}

func (s *shard[K, V]) grow() {
	old := s.index
	s.index = arena.MakeHuge[indexEntry](2 * len(old))[:2*len(old)]
	s.mask = uint32(len(s.index) - 1)
	for _, e := range old {
		if e.row == 0 {
			continue
		}
		i := e.hash & s.mask
		for s.index[i].row != 0 {
			i = (i + 1) & s.mask
		}
		s.index[i] = e
	}
}

// drop removes a local row from the index and puts it on the free list.
func (t *Table[K, V]) drop(s *shard[K, V], local uint32) {
	rec := &s.recs[local]
	if t.order != nil {
		t.order.tree.Delete(place[K]{key: rec.Key})
	}
	i := t.hash.sum(rec.Key) & s.mask
	for s.index[i].row != local+1 {
		i = (i + 1) & s.mask
	}
	// Shift back each later entry of the cluster that may stand earlier.
	for j := i; ; {
		j = (j + 1) & s.mask
		e := s.index[j]
		if e.row == 0 {
			break
		}
		if home := e.hash & s.mask; (j-home)&s.mask >= (j-i)&s.mask {
			s.index[i] = e
			i = j
		}
	}
	s.index[i] = indexEntry{}
	s.used--
	*rec = Record[K, V]{state: rowFree}
	s.free = append(s.free, local)
}

// Load sets the value of a key outside of batches.
func (t *Table[K, V]) Load(key K, v V) {
	rec, _ := t.Ensure(key)
	rec.Val = v
	rec.SetPresent(true)
}

// Len returns the number of rows that hold a value, in time proportional to
// the rows.
func (t *Table[K, V]) Len() int {
	n := 0
	for range t.All() {
		n++
	}
	return n
}

// RowsAllocated returns how many rows exist, absent ones and free ones included.
func (t *Table[K, V]) RowsAllocated() int {
	n := 0
	for i := range t.shards {
		n += len(t.shards[i].recs)
	}
	return n
}

// All yields each present key with a pointer to its value, in no particular
// order. Only between batches.
func (t *Table[K, V]) All() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for i := range t.shards {
			recs := t.shards[i].recs
			for j := range recs {
				if recs[j].Present() && !yield(recs[j].Key, &recs[j].Val) {
					return
				}
			}
		}
	}
}
