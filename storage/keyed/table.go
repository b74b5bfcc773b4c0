package keyed

import (
	"iter"
	"slices"
	"unsafe"

	"github.com/heddle-stream/heddle/internal/arena"
)

// None stands for "no row" and "no access".
const None = ^uint32(0)

const (
	shardBits = 4
	// Shards is how many parts a plain table has. More than the workers, so that
	// a worker which is done early takes over a shard of a slower one.
	Shards = 1 << shardBits

	ahead = 16 // look-ups for which records are fetched meanwhile

	placesMin = 16
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
	Val V
	Key K
	tag uint32 // the hash without its lowest bits, which are the state; 0 is no row
}

const (
	tagState   = 3
	rowAbsent  = 1
	rowPresent = 2
	rowIdle    = 3 // present, and a candidate for the log, see victim
)

// Present reports whether the row holds a value.
func (r *Record[K, V]) Present() bool { return r.tag&rowPresent != 0 }

// use notes that somebody looked for the row.
func (r *Record[K, V]) use() {
	if r.tag&tagState == rowIdle {
		r.tag ^= rowIdle ^ rowPresent
	}
}

// SetPresent marks the row as holding a value or not.
func (r *Record[K, V]) SetPresent(yes bool) {
	r.tag = r.tag&^tagState | rowAbsent
	if yes {
		r.tag ^= rowAbsent ^ rowPresent
	}
}

// is reports whether the place holds the row of a key.
func (r *Record[K, V]) is(hash uint32, key K) bool {
	return (r.tag^hash)&^tagState == 0 && r.Key == key && r.tag != 0
}

// differs returns 0 when the place can be that of a hash, else 1, without a branch.
func (r *Record[K, V]) differs(hash uint32) uint32 { return -((r.tag ^ hash) >> 2) >> 31 }

// touch tells which access of which batch touched a row last. It stands apart
// from the record because the serial strategy has no use for it.
type touch struct{ epoch, last uint32 }

type shard[K comparable, V any] struct {
	recs  []Record[K, V] // the places, then rows for which there was none
	mask  uint32         // number of places - 1
	marks []touch        // by row
	used  int            // places that hold a row
	full  int            // as many as may before the batch ends
	late  map[K]uint32   // rows that have no place
	fresh []K            // of rows that may hold nothing when the batch ends

	changes []changed[K, V] // by tracker
	_       [128]byte       // up to a size that multiplies by a shift
}

// Table maps keys to rows with values. Shards may be worked on by different
// goroutines at the same time; one shard by one goroutine only.
type Table[K comparable, V any] struct {
	hash   hasher[K]
	shift  uint // of a hash, to get its shard
	count  int  // of shards in use
	shards [Shards]shard[K, V]
	order  *order[K] // of an ordered table, else nil
	epoch  uint32
	groups uint32          // calls of ReclaimAll
	spill  *spilling[K, V] // of a table that need not fit into memory, else nil

	// The versions of a batch, by slot. Each access owns one; those of a shard
	// stand together, in event order.
	Ver  []V
	Has  []bool
	base []V      // what the row of each slot held before the batch
	was  []bool   // whether it did
	Rows []uint32 // the row of each slot
	Prev []uint32 // the access that touched the row before, or None
	IDs  []uint32 // the access that owns the slot

	pointers bool
	copies   bool // values are small: base is filled
	tracked  bool // somebody wants to know what changes
}

// copyMax is up to which size of a value a copy of it costs less than the miss
// that a second look at its record would be.
const copyMax = 64

// New returns an empty table.
func New[K comparable, V any]() *Table[K, V] { return newTable[K, V](Shards, 32-shardBits) }

func newTable[K comparable, V any](shards int, shift uint) *Table[K, V] {
	t := &Table[K, V]{hash: newHasher[K](), count: shards, shift: shift, pointers: arena.HasPointers[V]()}
	t.copies = unsafe.Sizeof(*new(V)) <= copyMax
	for i := range t.shards[:t.count] {
		t.shards[i].clear()
	}
	return t
}

// clear makes the shard an empty one, of which nothing has changed.
func (s *shard[K, V]) clear() {
	*s = shard[K, V]{changes: make([]changed[K, V], len(s.changes))}
	s.lay(placesMin)
}

// lay makes new places, a power of two, all free.
func (s *shard[K, V]) lay(places int) {
	s.recs = arena.MakeHuge[Record[K, V]](places)[:places]
	s.marks = arena.MakeHuge[touch](places)[:places]
	s.mask = uint32(places - 1)
	s.used, s.full = 0, places/8*7
	for i := range s.changes {
		s.changes[i].marks = make([]marks, words(places))
	}
}

// ShardCount returns 16, or 1 for an ordered table.
func (t *Table[K, V]) ShardCount() int { return t.count }

// Hash returns the hash of a key; its shard is Shard(hash).
func (t *Table[K, V]) Hash(k K) uint32 { return t.hash.sum(k) }

// Shard returns the shard of a hash.
func (t *Table[K, V]) Shard(hash uint32) uint32 {
	return uint32(uint64(hash)>>(t.shift&63)) & (Shards - 1)
}

// ShardOfKey returns the shard that the rows of a key belong to. It differs from
// process to process.
func (t *Table[K, V]) ShardOfKey(key K) int { return int(t.Shard(t.hash.sum(key))) }

// ShardOf returns the shard of a row.
func (t *Table[K, V]) ShardOf(row uint32) uint32 { return row & (Shards - 1) }

// At returns the record of a row. The pointer is valid until a row is added.
func (t *Table[K, V]) At(row uint32) *Record[K, V] {
	return &t.shards[row&(Shards-1)].recs[row>>shardBits]
}

// Find returns the row of a key and its record, or None and nil.
func (t *Table[K, V]) Find(key K) (*Record[K, V], uint32) {
	hash := t.hash.sum(key)
	si := t.Shard(hash)
	s := &t.shards[si]
	local, ok := s.find(hash, key)
	if !ok && t.spill != nil {
		local, ok = t.recall(int(si), hash, key)
	}
	if !ok {
		return nil, None
	}
	s.recs[local].use()
	return &s.recs[local], local<<shardBits | si
}

// Ensure returns the row of a key with its record, making an absent one when
// there is none. The pointer is valid until a row is added.
//
// A key is most likely at its home or at the next place. Which of the two is
// found out without a branch, because one that is guessed wrong would hold up
// the look-ups behind it.
func (t *Table[K, V]) Ensure(key K) (*Record[K, V], uint32) {
	var hash uint32
	if t.hash.kind == hashWord4 { // told apart here, where it can be inlined
		hash = t.hash.word(uint64(*(*uint32)(unsafe.Pointer(&key))))
	} else {
		hash = t.hash.sum(key)
	}
	si := t.Shard(hash)
	s := &t.shards[si]
	local, want := s.home(hash), hash&^tagState|rowPresent
	local = local&^inBucket | (local+uint32(-uint64(s.recs[local].tag^want)>>63))&inBucket
	if r := &s.recs[local]; r.tag == want && r.Key == key {
		return r, local<<shardBits | si
	}
	return t.ensureAnywhere(hash, key)
}

func (t *Table[K, V]) ensureAnywhere(hash uint32, key K) (*Record[K, V], uint32) {
	si := t.Shard(hash)
	local := t.ensure(int(si), hash, key)
	return &t.shards[si].recs[local], local<<shardBits | si
}

// home is the place where the search for a hash begins.
func (s *shard[K, V]) home(hash uint32) uint32 { return hash >> 2 & s.mask }

// inBucket masks the number of a place in its bucket: a search looks at all places
// of one, from home on and around, before it goes to the next, because those of
// small records share a cache line.
const inBucket = 3

// after is the place that a search from home looks at after place i.
func (s *shard[K, V]) after(i, home uint32) uint32 {
	if next := (i + 1) & inBucket; next != home&inBucket {
		return i&^inBucket | next
	}
	return ((i | inBucket) + 1 + home&inBucket) & s.mask
}

// find returns the local row of a key, or the place where it would be put.
func (s *shard[K, V]) find(hash uint32, key K) (local uint32, ok bool) {
	i := s.home(hash)
	for s.recs[i].tag != 0 {
		if s.recs[i].is(hash, key) {
			return i, true
		}
		i = s.after(i, s.home(hash))
	}
	if len(s.late) > 0 {
		if local, ok := s.late[key]; ok {
			return local, true
		}
	}
	return i, false
}

// ensure returns the local row of a key, brought back from the log or made if need be.
func (t *Table[K, V]) ensure(si int, hash uint32, key K) uint32 {
	s := &t.shards[si]
	if local, ok := s.find(hash, key); ok {
		s.recs[local].use()
		return local
	}
	if t.spill != nil {
		if local, ok := t.recall(si, hash, key); ok {
			return local
		}
	}
	local := s.place(hash, key)
	r := &s.recs[local]
	r.Key, r.tag = key, hash&^tagState|rowAbsent
	s.fresh = append(s.fresh, key)
	if t.order != nil {
		t.order.tree.Set(key)
	}
	return local
}

// place returns a place for the row of a key that has none. Rows keep their places until
// the end of the batch, so a row for which there is none stands behind them for now.
func (s *shard[K, V]) place(hash uint32, key K) uint32 {
	if s.used < s.full {
		s.used++
		return s.free(hash)
	}
	local := uint32(len(s.recs))
	s.recs = append(s.recs, Record[K, V]{})
	s.marks = append(s.marks, touch{})
	s.reach(len(s.recs))
	if s.late == nil {
		s.late = map[K]uint32{}
	}
	s.late[key] = local
	return local
}

// free returns the first free place for a hash.
func (s *shard[K, V]) free(hash uint32) uint32 {
	home := s.home(hash)
	i := home
	for s.recs[i].tag != 0 {
		i = s.after(i, home)
	}
	return i
}

// roomy reports whether at most half of the places are taken, so that nearly all
// keys are found at once, or three quarters when records are large.
func (s *shard[K, V]) roomy() bool { return roomyFor[K, V](s.used, len(s.recs)) }

func roomyFor[K comparable, V any](rows, places int) bool {
	const large = 64
	if unsafe.Sizeof(Record[K, V]{}) > large {
		return rows*4 <= places*3
	}
	return rows*2 <= places
}

// settle gives all rows of a shard places with room for more. No batch is running.
func (t *Table[K, V]) settle(si int) {
	s := &t.shards[si]
	places := int(s.mask) + 1
	if len(s.late) == 0 {
		s.recs, s.marks = s.recs[:places], s.marks[:places] // what stood behind is free
	}
	switch {
	case t.spill != nil:
		t.fit(si)
	case len(s.late) > 0 || !s.roomy():
		places *= 2
		for len(s.late) > places/2 {
			places *= 2
		}
		s.relay(places)
	}
}

// relay moves all rows to so many places.
func (s *shard[K, V]) relay(places int) {
	if places == int(s.mask)+1 {
		s.admit()
		return
	}
	old, changes := s.recs, slices.Clone(s.changes)
	clear(s.late)
	s.lay(places)
	for i := range old {
		if old[i].tag == 0 {
			continue
		}
		j := s.free(old[i].tag)
		s.recs[j] = old[i]
		s.used++
		s.relaid(changes, uint32(i), j)
	}
}

// admit gives the rows that stand behind the places some of those that are free.
func (s *shard[K, V]) admit() {
	places := int(s.mask) + 1
	for i := places; i < len(s.recs); i++ {
		if s.recs[i].tag == 0 {
			continue
		}
		j := s.free(s.recs[i].tag)
		s.recs[j] = s.recs[i]
		s.used++
		s.moved(uint32(i), j)
	}
	clear(s.late)
	clear(s.recs[places:]) // they may hold memory
	s.recs, s.marks = s.recs[:places], s.marks[:places]
}

// drop removes a row that has a place, and moves back each row behind that can
// be found earlier then. No batch is running.
func (s *shard[K, V]) drop(i uint32) {
	s.recs[i] = Record[K, V]{}
	for j, ok := s.heir(i); ok; j, ok = s.heir(i) {
		s.recs[i], s.recs[j] = s.recs[j], Record[K, V]{}
		s.moved(j, i)
		i = j
	}
	s.used--
}

// heir returns a row for which the free place i comes earlier in the search than
// its own. The search for a row goes beyond a bucket only if that is full.
func (s *shard[K, V]) heir(i uint32) (uint32, bool) {
	for first := i &^ inBucket; ; first = (first + inBucket + 1) & s.mask {
		full := true
		for j := first; j <= first+inBucket; j++ {
			switch tag := s.recs[j].tag; {
			case tag == 0:
				full = full && j == i
			case s.steps(s.home(tag), i) < s.steps(s.home(tag), j):
				return j, true
			}
		}
		if !full {
			return 0, false
		}
	}
}

// steps returns how many places come before place i in a search from home.
func (s *shard[K, V]) steps(home, i uint32) uint32 {
	return (i&^inBucket-home&^inBucket)&s.mask | (i-home)&inBucket
}

// Load sets the value of a key outside of batches.
func (t *Table[K, V]) Load(key K, v V) {
	rec, row := t.Ensure(key)
	t.Changing(row)
	rec.Val = v
	rec.SetPresent(true)
	if s := &t.shards[row&(Shards-1)]; len(s.fresh) > 0 || len(s.late) > 0 {
		s.fresh = s.fresh[:0]
		t.settle(int(row & (Shards - 1)))
	}
}

// Row is a key with its value on the way into a table.
type Row[K comparable, V any] struct {
	Hash uint32
	Key  K
	Val  V
}

// Reserve makes room for so many rows in an empty table, so that it need not grow while
// they are loaded. It does nothing where memory is limited.
func (t *Table[K, V]) Reserve(rows int) {
	if t.spill != nil {
		return
	}
	places := placesMin
	for places/2 < rows/t.count {
		places *= 2
	}
	for i := range t.shards[:t.count] {
		if s := &t.shards[i]; s.used == 0 && places > int(s.mask)+1 {
			s.lay(places)
		}
	}
}

// LoadShard sets the values of keys of one shard outside of batches. Shards may be
// loaded by different goroutines at the same time; an ordered table has one.
func (t *Table[K, V]) LoadShard(si int, rows []Row[K, V]) {
	s, plain := &t.shards[si], t.spill == nil && t.order == nil
	for i := range rows {
		if i+ahead < len(rows) {
			arena.Prefetch(unsafe.Pointer(&s.recs[s.home(rows[i+ahead].Hash)]))
		}
		local, ok := s.find(rows[i].Hash, rows[i].Key)
		switch {
		case ok:
		case plain && s.used < s.full: // as ensure does, but it will not be absent
			s.used++
			s.recs[local].Key, s.recs[local].tag = rows[i].Key, rows[i].Hash&^tagState|rowAbsent
		default:
			local = t.ensure(si, rows[i].Hash, rows[i].Key)
		}
		s.changing(local)
		rec := &s.recs[local]
		rec.Val = rows[i].Val
		rec.SetPresent(true)
		if len(s.late) > 0 || !s.roomy() {
			t.settle(si)
		}
	}
	clear(s.fresh) // keys may hold strings
	s.fresh = s.fresh[:0]
}

// Delete removes the row of a key outside of batches, if there is one.
func (t *Table[K, V]) Delete(key K) {
	rec, row := t.Find(key)
	if rec == nil {
		return
	}
	t.Changing(row)
	rec.SetPresent(false)
	t.discard(&t.shards[t.ShardOf(row)], row>>shardBits)
}

// Len returns the number of rows that hold a value, in time proportional to
// the rows in memory.
func (t *Table[K, V]) Len() int {
	n := t.Traffic().Rows
	for i := range t.shards[:t.count] {
		recs := t.shards[i].recs
		for j := range recs {
			if recs[j].Present() {
				n++
			}
		}
	}
	return n
}

// RowsAllocated returns how many rows exist, absent ones included.
func (t *Table[K, V]) RowsAllocated() int { return t.RowsInMemory() + t.Traffic().Rows }

// RowsInMemory returns how many of them are not in the log.
func (t *Table[K, V]) RowsInMemory() int {
	n := 0
	for i := range t.shards[:t.count] {
		n += t.shards[i].used + len(t.shards[i].late)
	}
	return n
}

// All yields each present key with a pointer to its value, in no particular
// order, those in the log last. Only between batches.
func (t *Table[K, V]) All() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for i := range t.shards[:t.count] {
			recs := t.shards[i].recs
			for j := range recs {
				if recs[j].Present() && !yield(recs[j].Key, &recs[j].Val) {
					return
				}
			}
		}
		t.allCold(func(key *K, v *V) bool { return yield(*key, v) })
	}
}
