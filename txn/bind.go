package txn

import (
	"fmt"

	"github.com/heddle-stream/heddle/storage/history"
)

// tableRuntime is a table of any type, as the engine runs it.
type tableRuntime interface {
	Name() string
	number() int
	bind(shares int)
	startBatch(shares []int, lates int)
	lateSlot(n int, id uint32) (slot uint32)
	lateRow(slot uint32) uint32
	setLast(slot, last uint32) (was uint32)
	installSlot(slot uint32)
	intervals(shares []int) int
	resetShare(share int)
	shardCount() int
	resolve(shard int, shares []int, bases []uint32)
	chained(shard int) Chained
	orderReads(b *Batch)
	install(shard int, slots []uint32)
	windowed() bool
	commutes() bool
	forgetVersions()
	record(x *Batch, id, limit uint32)
	recordRow(w *Worker, x *Batch, event, row uint32)
	expire(seq, time int64)
	versionsKept() int
	settleDeltas(x *Batch, id, limit uint32, list []uint32) []uint32
	reclaim(shard int)
	forgetHeld()
	reclaimAll()
	rowsAllocated() int
	rowsInMemory() int

	appendSeen(dst []byte, own any, found bool) []byte
	appendLoad(dst []byte, w *Worker, id uint32) []byte
	appendLook(dst []byte, r planRead) []byte
	appendMember(dst []byte, w *Worker, id uint32) []byte
	appendRows(dst []byte, rows []uint32) []byte
	appendKeyBoxed(dst []byte, key any) []byte
	appendValueBoxed(dst []byte, val any) []byte
	allBoxed(yield func(key, val any) bool)
	allVersions(yield func(key any, seq, time int64, val, before Boxed))
	encodedRows(yield func(row []byte) bool)
	encodedVersions(yield func(version []byte) bool)
	loadVersion(src []byte) error
	lessBoxed(a, b any) bool
	reset()
	loadRow(src []byte) error
	dropRow(key []byte) error
	appendRowOf(dst, key []byte) (row []byte, found bool, err error)
	markChanged(key []byte) error
	keyLen(row []byte) (int, error)
	reserve(rows int)
	loader() RowLoader
	schema() Schema
	migrate(kept Schema) error
	changes() changes
	rowLimited
	freshlyKept(yield func(version []byte) bool)
	appendVersion(dst []byte, slot uint32) []byte
	readVersion(src []byte, slot uint32) (rest []byte, found bool, err error)
	keyOf(slot uint32) string
	valueText(w *Worker, id uint32) string
}

// Bound is an application ready to be run by an engine.
type Bound struct {
	App     *App
	Workers int
	Regions int // parts of a batch that are planned apart

	lastTime int64 // of the event opened last
	begun    bool
	windows  bool // some table keeps versions
	simple   bool // no interval reads, windows or commutative operations
	prepares bool // or has commutative operations
}

// Bind fixes the declarations and prepares the application for batches, two of
// which may be in flight: one planned while the other executes. An application
// is bound once.
func Bind(app *App, workers int) (*Bound, error) {
	if err := app.Err(); err != nil {
		return nil, err
	}
	if app.bound {
		return nil, fmt.Errorf("application %q runs already: make a new one for another run", app.name)
	}
	app.bound = true
	b := &Bound{App: app, Workers: workers, Regions: 2 * workers}
	if workers == 1 {
		b.Regions = 1
	}
	shares := batchesInFlight * b.Regions
	for _, t := range app.tables {
		t.bind(shares)
		b.windows = b.windows || t.windowed()
		b.prepares = b.prepares || t.windowed() || t.commutes()
	}
	for _, k := range app.kinds {
		switch {
		case k.op != nil:
			k.op.bind(shares)
		case k.rng != nil:
			k.rng.bind(shares)
		case k.late != nil:
			k.late.bind(shares)
		}
	}
	b.findSimple()
	return b, nil
}

const batchesInFlight = 2

// NewFeed returns an empty feed. Not while an engine runs the application.
func (a *App) NewFeed() *Feed {
	a.feeds++
	for _, ev := range a.events {
		ev.grow(a.feeds)
	}
	return &Feed{app: a, id: a.feeds - 1}
}

func (t *Table[K, V]) bind(shares int) {
	t.shares = make([]planShare[K], shares)
	if shares > batchesInFlight { // otherwise batches run serially
		t.rows.Prepare()
		for i := range t.shares {
			t.shares[i].prepare(t.rows.ShardCount())
		}
	}
	t.ranges = make([]rangeReads, shares)
	t.folding = make([]scratch[V], shares)
	t.fresh = make([]scratch[[]history.Version[V]], shares)
}

func (t *Table[K, V]) shardCount() int { return t.rows.ShardCount() }

func (t *Table[K, V]) resetShare(share int) {
	s := &t.shares[share]
	for i := range s.buckets[:t.rows.ShardCount()] {
		if t.keyPtrs {
			clear(s.buckets[i])
		}
		s.buckets[i] = s.buckets[i][:0]
	}
	t.ranges[share].ids = t.ranges[share].ids[:0]
}

// startBatch gives each shard its slots, in the order of the shares, and behind
// them some for accesses whose rows are found later.
func (t *Table[K, V]) startBatch(shares []int, lates int) {
	n := 0
	for shard := range t.rows.ShardCount() {
		t.base[shard] = uint32(n)
		for _, share := range shares {
			n += len(t.shares[share].buckets[shard])
		}
	}
	t.base[t.rows.ShardCount()] = uint32(n)
	t.rows.Begin(n + lates)
}

func (t *Table[K, V]) resolve(shard int, shares []int, bases []uint32) {
	slot := t.base[shard]
	for i, share := range shares {
		entries := t.shares[share].buckets[shard]
		t.rows.Resolve(shard, entries, bases[i], slot)
		slot += uint32(len(entries))
	}
}

// Chained is the accesses of one shard of a table, in event order, with the
// access that touched each one's row before.
type Chained struct {
	FirstSlot uint32
	IDs       []uint32
	Prev      []uint32
}

func (t *Table[K, V]) chained(shard int) Chained {
	lo, hi := t.base[shard], t.base[shard+1]
	return Chained{lo, t.rows.IDs[lo:hi], t.rows.Prev[lo:hi]}
}

func (t *Table[K, V]) install(shard int, slots []uint32) { t.rows.Install(shard, slots) }
func (t *Table[K, V]) reclaim(shard int)                 { t.rows.Reclaim(shard) }
func (t *Table[K, V]) reclaimAll()                       { t.rows.ReclaimAll() }
func (t *Table[K, V]) rowsAllocated() int                { return t.rows.RowsAllocated() }
func (t *Table[K, V]) rowsInMemory() int                 { return t.rows.RowsInMemory() }

// forgetHeld forgets what reads of a serial run saw.
func (t *Table[K, V]) forgetHeld() { clear(t.held) }

// orderReads prepares an ordered table with range reads: rows first, then the
// intervals as rows, then all chained in event order by one worker, because an
// interval must meet the rows of keys that stand later in the batch.
func (t *Table[K, V]) orderReads(b *Batch) {
	if t.rows.Ordered() {
		t.chainOrdered(b)
	}
}

// keyOf returns the key of a slot's row for messages.
func (t *Table[K, V]) keyOf(slot uint32) string {
	if slot == None || t.rows.Rows[slot] == None {
		return "?" // a computed key that is not known yet
	}
	return fmt.Sprint(t.rows.At(t.rows.Rows[slot]).Key)
}

// valueText returns what an access saw, for messages.
func (t *Table[K, V]) valueText(w *Worker, id uint32) string {
	v, ok := t.load(w, id)
	if !ok {
		return "absent"
	}
	return fmt.Sprintf("%v", *v)
}
