package txn

import (
	"cmp"
	"fmt"
	"iter"
	"reflect"
	"sync"

	"github.com/heddle-stream/heddle/internal/arena"
	"github.com/heddle-stream/heddle/internal/codec"
	"github.com/heddle-stream/heddle/storage/history"
	"github.com/heddle-stream/heddle/storage/keyed"
)

// Table is shared state: values of type V under keys of type K.
type Table[K comparable, V any] struct {
	app     *App
	name    string
	id      int
	rows    *keyed.Table[K, V]
	clone   func(V) V
	key     codec.Codec[K]
	val     codec.Codec[V]
	less    func(a, b K) bool // of an ordered table
	shares  []planShare[K]    // by plan worker
	keyPtrs bool              // keys refer to other memory, such as strings
	ranges  []rangeReads      // by plan worker; ordered tables only

	held      []seen[V] // what the reads of a serial transaction see, by their number
	rowBuf    []uint32
	pointRows []uint32 // rows of point accesses of a batch with range reads

	base [keyed.Shards + 1]uint32 // first slot of each shard in this batch

	folders map[int]folder[V] // by kind: the commutative operations
	folding []scratch[V]      // by executing worker: a value with its deltas

	hist                *history.History[K, V] // versions that windows need, if there are any
	reachSeq, reachTime int64                  // how far back the longest of them go
	inForce             bool                   // some window wants to know what is in force when it begins
	fresh               []scratch[[]history.Version[V]]

	loading    [keyed.Shards]sync.Mutex                                 // rows may be loaded by several goroutines
	migrations map[string]func(src []byte, key K, v *V) ([]byte, error) // by the shape of stored values
	decodeKept func(src []byte, key K, v *V) ([]byte, error)            // the one in use, or nil
}

// seen is a value as a read met it.
type seen[V any] struct {
	val V
	ok  bool
}

// planShare is what one worker's plans want of the table, by shard.
type planShare[K comparable] struct {
	buckets [keyed.Shards][]keyed.Entry[K]
	_       [64]byte
}

// bucketFirst is what a bucket holds before it has to grow for the first time.
const bucketFirst = 64

// prepare gives the buckets their first memory, in one piece.
func (s *planShare[K]) prepare(shards int) {
	all := make([]keyed.Entry[K], shards*bucketFirst)
	for i := range s.buckets[:shards] {
		s.buckets[i] = all[i*bucketFirst : i*bucketFirst : (i+1)*bucketFirst]
	}
}

type rangeReads struct {
	ids []uint32 // accesses that read a range, counted from the worker's start
	_   [104]byte
}

// Ordered is a table whose keys can be read by range, see [NewRange]. Its
// batches are linked by one worker, so that a plain table is faster.
type Ordered[K cmp.Ordered, V any] struct {
	*Table[K, V]
}

// Option says something of a table's types.
type Option[K comparable, V any] func(*Table[K, V])

// Clone gives the copy function of a value type that shares memory when copied,
// such as a slice. The engine copies a value before it lets a function change it.
func Clone[K comparable, V any](fn func(V) V) Option[K, V] {
	return func(t *Table[K, V]) { t.clone = fn }
}

// Codec gives the byte form of a type that has no derived one. What Decode makes must not
// refer to src, which is used again.
type Codec[T any] struct {
	Append func(dst []byte, v *T) []byte
	Decode func(src []byte, v *T) (rest []byte, err error)
}

// Codecs gives the byte forms of a table's keys and values. A nil part of
// either leaves the derived codec in place.
func Codecs[K comparable, V any](key Codec[K], val Codec[V]) Option[K, V] {
	return func(t *Table[K, V]) {
		if key.Append != nil {
			t.key = codec.Codec[K](key)
		}
		if val.Append != nil {
			t.val = codec.Codec[V](val)
		}
	}
}

// NewTable declares a table. Keys hold no floats, pointers or interfaces;
// values that hold slices, maps or pointers need [Clone].
func NewTable[K comparable, V any](app *App, name string, opts ...Option[K, V]) *Table[K, V] {
	return newTable(app, name, keyed.New[K, V](), opts, caller())
}

// NewOrdered declares a table that can also be read by range.
func NewOrdered[K cmp.Ordered, V any](app *App, name string, opts ...Option[K, V]) *Ordered[K, V] {
	t := newTable(app, name, keyed.NewOrdered[K, V](), opts, caller())
	t.less = cmp.Less[K]
	return &Ordered[K, V]{t}
}

func newTable[K comparable, V any](app *App, name string, rows *keyed.Table[K, V], opts []Option[K, V], where string) *Table[K, V] {
	t := &Table[K, V]{app: app, name: name, id: len(app.tables), rows: rows}
	t.keyPtrs = arena.HasPointers[K]()
	app.declare("table", name, where)
	for _, opt := range opts {
		opt(t)
	}
	if why := unfitKey(reflect.TypeFor[K]()); why != "" {
		app.fault(where, "table %q: key type %s %s", name, reflect.TypeFor[K](), why)
	}
	if t.clone == nil && sharesMemory(reflect.TypeFor[V]()) {
		app.fault(where, "table %q: values of type %s share memory when copied: give txn.Clone", name, reflect.TypeFor[V]())
	}
	t.key = derived(app, where, name+" key", t.key)
	t.val = derived(app, where, name+" value", t.val)
	app.tables = append(app.tables, t)
	app.limit(t)
	return t
}

// derived returns c, or the derived codec when c is not set.
func derived[T any](app *App, where, what string, c codec.Codec[T]) codec.Codec[T] {
	if c.Append != nil {
		return c
	}
	c, err := codec.Derive[T]()
	if err != nil {
		app.fault(where, "%s: %v", what, err)
	}
	return c
}

// unfitKey says why a type cannot be a key, or "".
func unfitKey(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return "holds a float, and NaN equals nothing"
	case reflect.Interface, reflect.Pointer, reflect.UnsafePointer, reflect.Chan:
		return fmt.Sprintf("holds a %s, which has no byte form", t.Kind())
	case reflect.Array:
		return unfitKey(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if why := unfitKey(f.Type); why != "" {
				return why
			}
		}
	}
	return ""
}

// sharesMemory reports whether two copies of a value can see each other's changes.
func sharesMemory(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return true
	case reflect.Array:
		return sharesMemory(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if sharesMemory(f.Type) {
				return true
			}
		}
	}
	return false
}

// Name returns the declared name.
func (t *Table[K, V]) Name() string { return t.name }

// Load sets the value of a key before the first event.
func (t *Table[K, V]) Load(key K, v V) { t.rows.Load(key, v) }

// Peek returns the committed value of a key. Only while no engine runs, or from
// a sink function or an event listener, which run between batches.
func (t *Table[K, V]) Peek(key K) (V, bool) {
	v, ok := t.rows.Get(key)
	if !ok {
		var zero V
		return zero, false
	}
	return t.copied(&v), true
}

// All yields each key with its committed value, in no particular order. When
// it may be called, see Peek.
func (t *Table[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for k, v := range t.rows.All() {
			if !yield(k, t.copied(v)) {
				return
			}
		}
	}
}

// Len returns the number of keys with a value, in time proportional to those in memory.
func (t *Table[K, V]) Len() int { return t.rows.Len() }

func (t *Table[K, V]) copied(v *V) V {
	if t.clone != nil {
		return t.clone(*v)
	}
	return *v
}

// touch records that the access wants the row of a key.
func (t *Table[K, V]) touch(p *Plan, key K, id uint32) {
	h := t.rows.Hash(key)
	b := &t.shares[p.worker].buckets[t.rows.Shard(h)&(keyed.Shards-1)]
	*b = append(*b, keyed.Entry[K]{Hash: h, ID: id, Key: key})
}

// look returns the value that a read of a serial run sees: what stood there when it
// was made, since it is made just before its operation or sees the start.
func (t *Table[K, V]) look(r planRead) (*V, bool) {
	held := &t.held[r.at]
	return &held.val, held.ok
}

// load returns the value that an access sees.
func (t *Table[K, V]) load(w *Worker, id uint32) (*V, bool) { return t.see(w, id, &w.acc[id]) }

// see is load for a caller that has the access at hand.
func (t *Table[K, V]) see(w *Worker, id uint32, a *Access) (*V, bool) {
	from := w.src[id]
	if from == None {
		return t.rows.Before(a.Slot)
	}
	b := &w.acc[from]
	if b.Commutes() {
		return t.folded(w, from), true
	}
	return &t.rows.Ver[b.Slot], t.rows.Has[b.Slot]
}

// growHeld makes room for what the n-th read of a transaction sees.
func (t *Table[K, V]) growHeld(n int) { t.held = append(t.held, make([]seen[V], n+1)...) }

// hold makes the n-th read of a serial transaction see a value, or none.
func (t *Table[K, V]) hold(n int, v V, ok bool) {
	if n >= len(t.held) {
		t.growHeld(n)
	}
	t.held[n].val, t.held[n].ok = v, ok
}
