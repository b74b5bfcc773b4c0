package txn

import (
	"iter"
	"reflect"

	"github.com/heddle-stream/heddle/storage/history"
)

// Span is how far back a window reaches from an event.
type Span struct {
	length int64
	timed  bool
}

// LastEvents reaches back over the n events before an event.
func LastEvents(n int) Span { return Span{length: int64(n)} }

// Within reaches back over a length of event time, in the units of [EventTime].
func Within(length int64) Span { return Span{length: length, timed: true} }

// Window is a handle for reading the versions that a key had in the time before
// an event: those that transactions left which committed in [t-w, t), t being the
// event's number in the run or its event time. An event of the same time and a
// lower number counts as before. A transaction leaves one version of a key that it
// writes: its last one; none if it deletes it. What a table was loaded with, and
// what the own transaction does, is no version.
type Window[K comparable, V any] struct {
	app   *App
	table *Table[K, V]
	name  string
	kind  uint16
	span  Span

	inForce bool
}

// NewWindow declares a read handle for the recent versions of keys. Versions are
// kept as long as a window of the table reaches back to them. A table with
// commutative operations has no windows.
func NewWindow[K comparable, V any](t *Table[K, V], name string, span Span) *Window[K, V] {
	r := &Window[K, V]{app: t.app, table: t, name: name, span: span}
	r.kind = t.addWindow(r, name, span, caller())
	return r
}

// WithInForce makes the window tell, too, what was in force when it begins, see InForce.
// The table then keeps for its windows when keys were deleted as well. It returns r.
func (r *Window[K, V]) WithInForce() *Window[K, V] {
	r.inForce, r.table.inForce = true, true
	r.app.kinds[r.kind&kindIndex].inForce = true
	return r
}

// Of reads the versions of a key. The read may be passed to several operations.
func (r *Window[K, V]) Of(p *Plan, key K) Arg { return r.table.window(p, key, r.kind, r.name) }

// InForce returns what the key held at t-w, just before the first event that the window
// reaches: from an older version, or as the table was loaded; and false if it held nothing.
// It panics if the window is not WithInForce.
func (r *Window[K, V]) InForce(c Ctx) (V, bool) {
	if !r.inForce {
		panic("window " + r.name + " does not keep what is in force when it begins: declare it WithInForce")
	}
	if c.w.boxed != nil {
		return unbox[V](boxedWindow(c, r.kind, r.name).InForce)
	}
	return r.table.out(r.table.heldAt(c.w, c.read(r.kind, r.name), r.span))
}

// All yields the versions, oldest first, each with the number or the time of its
// event, whichever the window goes by.
func (r *Window[K, V]) All(c Ctx) iter.Seq2[int64, V] {
	return func(yield func(int64, V) bool) {
		if c.w.boxed != nil {
			allBoxedVersions(c, r.kind, r.name, yield)
			return
		}
		id := c.read(r.kind, r.name)
		old, _, _, fresh := r.table.versions(c.w, id, r.span)
		for _, part := range [2][]history.Version[V]{old, fresh} {
			for i := range part {
				if v := &part[i]; !v.Gone && !yield(versionAt(r.span, v), r.table.copied(&v.Val)) {
					return
				}
			}
		}
	}
}

// Fold is a handle for reading what the versions of a window add up to, without
// going over them.
type Fold[K comparable, V, S any] struct {
	app    *App
	table  *Table[K, V]
	name   string
	kind   uint16
	span   Span
	add    func(*S, V)
	sub    func(later, earlier S) S
	totals [][]running[S] // by shard and series
}

// running holds the total after each version of a series, from one before the
// first on. Those in front of the head are forgotten.
type running[S any] struct {
	totals []S
	head   int
}

// NewFold declares a read handle for the total of a window, see [NewWindow]. add
// adds a version to a total that begins as the zero value; sub takes an earlier
// total of the same key from a later one. Both must be exact, as sums and counts
// of integers are: the total of a window is the difference of two running totals.
// For floats, or what cannot be taken back, go over the versions of a Window.
func NewFold[K comparable, V, S any](t *Table[K, V], name string, span Span, add func(total *S, v V), sub func(later, earlier S) S) *Fold[K, V, S] {
	where := caller()
	r := &Fold[K, V, S]{app: t.app, table: t, name: name, span: span, add: add, sub: sub}
	if add == nil || sub == nil {
		t.app.fault(where, "fold %q has a nil function", name)
	}
	if sharesMemory(reflect.TypeFor[S]()) {
		t.app.fault(where, "fold %q: totals of type %s share memory when copied; go over the versions of a Window", name, reflect.TypeFor[S]())
	}
	r.kind = t.addWindow(r, name, span, where)
	r.totals = make([][]running[S], t.rows.ShardCount())
	t.hist.Add(r)
	return r
}

// Of reads the total of a key. The read may be passed to several operations.
func (r *Fold[K, V, S]) Of(p *Plan, key K) Arg { return r.table.window(p, key, r.kind, r.name) }

// Get returns the total. Takes time that grows with the logarithm of the versions
// from before the batch and with the number of those from within.
func (r *Fold[K, V, S]) Get(c Ctx) S {
	var total S
	if c.w.boxed != nil {
		allBoxedVersions(c, r.kind, r.name, func(_ int64, v V) bool {
			r.add(&total, v)
			return true
		})
		return total
	}
	old, first, at, fresh := r.table.versions(c.w, c.read(r.kind, r.name), r.span)
	if len(old) > 0 {
		totals := r.totals[at.shard][at.series].live()
		total = r.sub(totals[first+len(old)], totals[first])
	}
	for i := range fresh {
		if !fresh[i].Gone {
			r.add(&total, fresh[i].Val)
		}
	}
	return total
}

func (t *running[S]) live() []S { return t.totals[t.head:] }

// Appended keeps the running total of a series.
func (r *Fold[K, V, S]) Appended(shard int, i uint32, v *V, fresh bool) {
	for len(r.totals[shard]) <= int(i) {
		r.totals[shard] = append(r.totals[shard], running[S]{})
	}
	t := &r.totals[shard][i]
	if fresh {
		var zero S
		t.totals, t.head = append(t.totals[:0], zero), 0
	}
	last := len(t.totals)
	t.totals = append(t.totals, t.totals[last-1])
	if v != nil {
		r.add(&t.totals[last], *v)
	}
}

// Dropped forgets the front of a series; the last of it stays as what later ones
// are counted from. Memory is moved together when half of it is gone, so that a
// total is moved once on average.
func (r *Fold[K, V, S]) Dropped(shard int, i uint32, n int) {
	t := &r.totals[shard][i]
	if t.head += n; t.head*2 < len(t.totals) {
		return
	}
	left := copy(t.totals, t.live())
	clear(t.totals[left:])
	t.totals, t.head = t.totals[:left], 0
}

// Undone leaves the totals of the first versions.
func (r *Fold[K, V, S]) Undone(shard int, i uint32, left int) {
	if int(i) < len(r.totals[shard]) {
		t := &r.totals[shard][i]
		t.totals = t.totals[:min(len(t.totals), t.head+left+1)]
	}
}

// windowed is a window or fold as the engine sees it.
type windowed interface {
	appendSeen(dst []byte, w *Worker, id uint32) []byte
}

func (r *Window[K, V]) appendSeen(dst []byte, w *Worker, id uint32) []byte {
	dst = r.table.appendVersions(dst, w, id, r.span)
	if r.inForce {
		v, ok := r.table.heldAt(w, id, r.span)
		dst = r.table.appendSeen(dst, v, ok)
	}
	return dst
}

func (r *Fold[K, V, S]) appendSeen(dst []byte, w *Worker, id uint32) []byte {
	return r.table.appendVersions(dst, w, id, r.span)
}

// versionAt returns what a window by the span tells of a version.
func versionAt[V any](s Span, v *history.Version[V]) int64 {
	if s.timed {
		return v.Time
	}
	return v.Seq
}
