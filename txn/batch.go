package txn

import (
	"github.com/heddle-stream/heddle/internal/arena"
)

// Batch is the events between two punctuations on their way through planning,
// linking and execution. Steps that name a region, shard or worker may run in
// parallel for different ones; the others are for one goroutine.
//
//	Open -> PlanRegion (parallel) -> Seal -> Resolve (parallel) -> execution
//	-> Emit (parallel) -> Deliver -> Install (parallel)
type Batch struct {
	bound *Bound
	feed  *Feed
	plans []Plan // by region
	// The region of worker r holds the accesses [bases[r], bases[r]+len(plan.acc)).
	bases  []uint32
	shares []int
	stride int // accesses that a region has room for

	First      int     // number of the first event in the run
	Times      []int64 // by place: event time, where windows go by it
	times      []int64
	places     []uint32 // by event: its place, when only those are here that a view has as committed
	kept       Feed     // of these
	Cut        *Panic   // why the batch ends before the feed does, found when it was opened
	Events     int
	Acc        []Access
	Src        []uint32 // what each access sees: the writer, or None for the row
	TxLo       []uint32 // by event: its accesses are [TxLo, TxHi)
	TxHi       []uint32
	Fail       []uint64 // by event: committed, or access<<16 | verdict
	levels     []uint32 // by access, see Level
	rejections []Rejection
	texts      [][]byte // by event: its result, when it comes from a view
	seen       []uint64
	Seen       []uint64 // by event: fingerprint of what it saw, when asked for
	Panic      *Panic   // the earliest panic of a plan
	Ops        int      // operations listed
	Accesses   int      // operations and reads listed
	Late       []uint32 // accesses with computed keys, in order

	// OnlySerial tells that the batch has to run serially: it reads intervals of a
	// table whose keys are computed, and any such key may fall into any interval.
	OnlySerial bool

	lates []int    // by table: accesses with computed keys
	heard []int    // by event type: 1 when it has a sink
	due   []uint32 // events to be delivered
}

// Panic is a panic in a user function.
type Panic struct {
	Event int    // place in the batch
	What  string // "plan", "operation" or "result"
	Name  string // of the event type or operation
	Value any
	Stack []byte
}

// NewBatch returns batch memory number 0 or 1: one may be planned while the
// other executes.
func (b *Bound) NewBatch(number int) *Batch {
	x := &Batch{bound: b, plans: make([]Plan, b.Regions), bases: make([]uint32, b.Regions), stride: 64}
	for r := range b.Regions {
		share := number*b.Regions + r
		x.shares = append(x.shares, share)
		x.plans[r] = Plan{app: b.App, worker: share}
	}
	return x
}

// Open takes the events of the feed. The feed belongs to the batch until Close.
func (x *Batch) Open(feed *Feed) {
	x.setFeed(feed)
	x.openTimes()
	x.makeRoom()
}

func (x *Batch) setFeed(feed *Feed) {
	x.feed, x.Events, x.Panic, x.texts, x.places = feed, feed.Len(), nil, nil, nil
	x.rejections = x.rejections[:0]
}

func (x *Batch) makeRoom() {
	n := x.Events
	x.TxLo = arena.Resize(x.TxLo, n)
	x.TxHi = arena.Resize(x.TxHi, n)
	x.Fail = arena.Resize(x.Fail, n)
	x.Acc = arena.Resize(x.Acc, x.stride*len(x.plans))
	for r := range x.plans {
		x.bases[r] = uint32(r * x.stride)
		x.plans[r].acc = x.Acc[r*x.stride : r*x.stride : (r+1)*x.stride]
	}
}

// place returns the place of an event in its batch: events that a view has as aborted
// are left out of the batch, not of the counting.
func (x *Batch) place(event uint32) int {
	if x.places != nil {
		return int(x.places[event])
	}
	return int(event)
}

// Number returns the number of an event in the run.
func (x *Batch) Number(event uint32) int { return x.First + x.place(event) }

// Feed returns the events of the batch.
func (x *Batch) Feed() *Feed { return x.feed }

// regionEvents returns the events [lo, hi) of a region.
func (x *Batch) regionEvents(r int) (lo, hi int) {
	n := len(x.plans)
	return r * x.Events / n, (r + 1) * x.Events / n
}

// PlanRegion runs the plans of a region's events. A panic of a plan ends the
// region early; Seal then cuts the batch before that event.
func (x *Batch) PlanRegion(r int) {
	p := &x.plans[r]
	lo, hi := x.regionEvents(r)
	p.mode, p.refs, p.ops = planGraph, p.refs[:0], 0
	share := x.shares[r]
	for _, t := range x.bound.App.tables {
		t.resetShare(share)
	}
	x.bound.App.resetKinds(share)
	p.lates = p.lates[:0]
	p.panicked, p.rejections, p.rejected = nil, p.rejections[:0], false
	p.planned = lo
	x.planFrom(p, lo, hi, x.bases[r])
}

// resetKinds empties what a worker's plans recorded.
func (a *App) resetKinds(worker int) {
	for _, k := range a.kinds {
		switch {
		case k.op != nil:
			k.op.reset(worker)
		case k.rng != nil:
			k.rng.reset(worker)
		case k.late != nil:
			k.late.reset(worker)
		}
	}
}

func (x *Batch) planFrom(p *Plan, lo, hi int, base uint32) {
	defer func() {
		if v := recover(); v != nil {
			p.panicked = newPanic(p.planned, "plan", x.EventName(p.planned), v)
		}
	}()
	events, refs := x.bound.App.events, x.feed.refs
	for e := lo; e < hi; e++ {
		p.planned = e
		p.begin(uint32(e))
		x.TxLo[e] = base + uint32(len(p.acc))
		events[refs[e].typ].planOne(p, x.feed.id, refs[e].place)
		p.finish()
		x.TxHi[e] = base + uint32(len(p.acc))
	}
}

// EventName returns the name of the type of event e.
func (x *Batch) EventName(e int) string { return x.bound.App.events[x.feed.refs[e].typ].Name() }

// Seal ends planning: it cuts the batch before a plan that panicked, gives
// accesses their final places and tables their slots.
func (x *Batch) Seal(fingerprints bool) {
	x.Panic = x.Cut
	for r := range x.plans {
		if p := x.plans[r].panicked; p != nil {
			x.Panic = p
			x.cut(p.Event)
			break
		}
	}
	x.fit()
	x.sealLates()
	for _, t := range x.bound.App.tables {
		t.orderReads(x)
	}
	x.Src = arena.Resize(x.Src, len(x.Acc))
	for i := range x.Fail {
		x.Fail[i] = committed
	}
	x.sealRejections()
	x.seen, x.Seen = nil, nil
	if fingerprints {
		x.seen = make([]uint64, len(x.Acc))
		x.Seen = make([]uint64, x.Events)
	}
}

// cut drops event e and all after it from the planned batch. What they listed
// stays listed, beyond every transaction, and is never executed: so that no row
// is made for it, the batch is planned once more up to e.
func (x *Batch) cut(e int) {
	x.Events = e
	x.TxLo, x.TxHi, x.Fail = x.TxLo[:e], x.TxHi[:e], x.Fail[:e]
	for r := range x.plans {
		x.plans[r].acc = x.plans[r].acc[:0]
		x.PlanRegion(r)
	}
}

// fit moves the accesses of regions that had too little room, and remembers
// how much they need.
func (x *Batch) fit() {
	longest := 0
	x.Ops, x.Accesses = 0, 0
	for r := range x.plans {
		x.Accesses += len(x.plans[r].acc)
		longest = max(longest, len(x.plans[r].acc))
		x.Ops += x.plans[r].ops
	}
	if longest > x.stride {
		stride := longest + longest/4
		acc := make([]Access, stride*len(x.plans))
		for r := range x.plans {
			delta := uint32(r*stride) - x.bases[r]
			copy(acc[r*stride:], x.plans[r].acc)
			x.bases[r] += delta
			lo, hi := x.regionEvents(r)
			for e := lo; e < hi; e++ {
				x.TxLo[e] += delta
				x.TxHi[e] += delta
			}
		}
		x.Acc, x.stride = acc, stride
	}
}

// Tables returns the number of tables, Shards that of a table's shards.
func (x *Batch) Tables() int { return len(x.bound.App.tables) }

// Shards returns the number of shards of a table.
func (x *Batch) Shards(table int) int { return x.bound.App.tables[table].shardCount() }

// Resolve finds the rows of a shard's accesses and returns them chained. The
// slices are valid until the next batch is sealed.
func (x *Batch) Resolve(table, shard int) Chained {
	t := x.bound.App.tables[table]
	if t.shardCount() > 1 { // a table of one shard was resolved when sealed
		t.resolve(shard, x.shares, x.bases)
	}
	return t.chained(shard)
}

// Chained returns what Resolve returned.
func (x *Batch) Chained(table, shard int) Chained { return x.bound.App.tables[table].chained(shard) }

// Install makes the versions of the slots the values of their rows, which are
// distinct and belong to one shard, and frees rows of the shard that hold nothing.
func (x *Batch) Install(table, shard int, slots []uint32) {
	t := x.bound.App.tables[table]
	t.install(shard, slots)
	t.reclaim(shard)
}

// OperationName returns the name of an access's operation or read.
func (x *Batch) OperationName(id uint32) string {
	return x.bound.App.kinds[x.Acc[id].Index()].name
}

// TableOf returns the number of the table of an access.
func (x *Batch) TableOf(id uint32) int { return x.bound.App.kinds[x.Acc[id].Index()].table.number() }

// Regions appends to dst, for each planned region, the list that its
// operations' Refs point into. Region r has the accesses from r*stride on.
func (x *Batch) Regions(dst [][]uint32) (stride uint32, refs [][]uint32) {
	for r := range x.plans {
		dst = append(dst, x.plans[r].refs)
	}
	return uint32(x.stride), dst
}

// RowName returns table and key of an access, for people.
func (x *Batch) RowName(id uint32) string {
	t := x.bound.App.tables[x.TableOf(id)]
	return t.Name() + "[" + t.keyOf(x.Acc[id].Slot) + "]"
}
