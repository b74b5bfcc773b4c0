package txn

import (
	"fmt"
	"slices"
)

// Access is one state access of a batch: an operation, or a read of one. Its id
// is its place in the batch's accesses, which are in event and then declaration
// order, so ids compare as serial order does. 32 bytes, two to a cache line.
//
// The plan fills Kind, NRefs, Event, Arg and Refs; linking fills the rest.
type Access struct {
	Kind  uint16
	NRefs uint16 // reads that the operation looks at
	Event uint32 // place of the event in the batch
	Arg   uint32 // place of the argument in its worker's slab
	Refs  uint32 // first of the NRefs reads in the worker's list
	Slot  uint32 // version slot in the table; of a range: its first member
	Prev  uint32 // access that touched the row before, or None
	Pred  uint32 // last earlier operation that writes the row, or None
	Next  uint32 // access that touches the row next, or None
}

// IsRead reports whether the access is a read of an operation, not one itself.
func (a *Access) IsRead() bool { return a.Kind&kindRead != 0 }

// Writes reports whether the access makes a version.
func (a *Access) Writes() bool { return a.Kind&(kindRead|kindPassive) == 0 }

// Commutes reports whether the access changes its row without seeing it, so that
// it need not wait for what changes the row before.
func (a *Access) Commutes() bool { return a.Kind&kindDelta != 0 }

// AtStart reports whether the access sees the state before its transaction.
func (a *Access) AtStart() bool { return a.Kind&kindStart != 0 }

// IsRange reports whether the access stands for Refs member accesses from Slot on.
func (a *Access) IsRange() bool { return a.Kind&kindRange != 0 }

// Index returns the number of the operation or read handle.
func (a *Access) Index() int { return int(a.Kind & kindIndex) }

type planMode uint8

const (
	planGraph   planMode = iota // keys are collected by shard, to be linked
	planSerial                  // keys are collected and looked up together
	planInPlace                 // operations run as they are listed
	planBoxed                   // for the oracle
)

// Plan collects the operations of one event's transaction. Plan functions get
// one and pass it to At and Of; they must not keep it.
type Plan struct {
	app        *App
	acc        []Access // this worker's, in order
	refs       []uint32 // reads of operations, counted from the worker's first access
	event      uint32
	worker     int
	unpassed   int // reads made and not yet passed to an operation
	ops        int // operations listed
	lates      []uint32
	txFirst    uint32 // first access of the event
	opsEnd     uint32 // one past the last operation listed, so far
	starts     bool
	mode       planMode
	serial     *Worker // who runs the operations one after the other, or nil
	failed     Verdict // planInPlace: of the first operation that failed
	ran        uint32  // planInPlace: operations before it took effect, the failed one is it
	frame      *BoxedTxn
	rejections []Rejection
	rejected   bool // the event in hand
	planned    int  // the event whose plan runs
	panicked   *Panic
	_          [64]byte
}

// add records an operation. Its access is filled field by field: a whole Access
// would be built elsewhere in small stores and copied in large ones, which the
// processor cannot forward.
func (p *Plan) add(kind uint16, arg uint32, reads []Arg) (uint32, *Access) {
	n := len(p.acc)
	if n == cap(p.acc) {
		p.growAccesses()
	}
	p.acc = p.acc[:n+1]
	a := &p.acc[n]
	a.Kind, a.NRefs, a.Event, a.Arg, a.Refs = kind, uint16(len(reads)), p.event, arg, uint32(len(p.refs))
	p.ops++
	if len(reads) > 0 {
		p.pass(reads)
	}
	p.opsEnd = uint32(n) + 1
	return uint32(n), a
}

// addRead records a read.
func (p *Plan) addRead(kind uint16, arg uint32) (uint32, *Access) {
	n := len(p.acc)
	if n == cap(p.acc) {
		p.growAccesses()
	}
	p.acc = p.acc[:n+1]
	a := &p.acc[n]
	a.Kind, a.NRefs, a.Event, a.Arg, a.Refs, a.Next = kind, 0, p.event, arg, 0, 0
	p.unpassed++
	if kind&kindStart != 0 {
		p.starts = true
	}
	return uint32(n), a
}

// pass records the reads of an operation.
func (p *Plan) pass(reads []Arg) {
	n := len(p.refs)
	if n+len(reads) > cap(p.refs) {
		p.growRefs(len(reads))
	}
	p.refs = p.refs[:n+len(reads)]
	refs := p.refs[n:]
	for i, r := range reads {
		// Next is free until the batch is linked; here it tells that the read was passed.
		read := &p.acc[r.id]
		switch {
		case read.Next == 0:
			p.inPlace(r)
			read.Next = passedOn
			p.unpassed--
		case read.Next == passedToRead:
			p.inPlace(r)
			read.Next = passedOn
		case r.kind&kindStart == 0:
			panic("read " + p.app.kinds[r.kind&kindIndex].name + " was passed to two operations: only AtStart reads can be")
		}
		refs[i] = r.id
	}
}

// inPlace checks that no operation was listed since the read was made.
func (p *Plan) inPlace(r Arg) {
	if r.id < p.opsEnd && r.kind&kindStart == 0 {
		panic("read " + p.app.kinds[r.kind&kindIndex].name + " was made before another operation was listed: it reads what stands just before the operation that it is passed to, and must be made there")
	}
}

// While a batch is planned the Next of a read tells whether it was passed on.
const (
	passedOn     = 1 // to an operation
	passedToRead = 2 // to a read only, and may be passed to the operation, too
)

// addLateRead records a read whose key is computed from others.
func (p *Plan) addLateRead(kind uint16, arg uint32, reads []Arg) uint32 {
	id, a := p.addRead(kind, arg)
	a.NRefs, a.Refs = uint16(len(reads)), uint32(len(p.refs))
	if len(reads) > 0 {
		p.pass(reads)
		for _, r := range reads {
			p.acc[r.id].Next = passedToRead
		}
	}
	return id
}

// growAccesses and growRefs make room. A worker that runs operations while they
// are listed sees all of it, so that it need not be told of each one.
func (p *Plan) growAccesses() {
	n := len(p.acc)
	p.acc = append(p.acc, Access{})[:n]
	if p.serial != nil {
		p.serial.acc = p.acc[:cap(p.acc)]
	}
}

func (p *Plan) growRefs(more int) {
	if more > 0xffff {
		panic(fmt.Sprintf("%d reads for one operation: 65535 are allowed, use a range", more))
	}
	n := len(p.refs)
	p.refs = slices.Grow(p.refs, more)[:n]
	if p.serial != nil {
		p.serial.refs = p.refs[:cap(p.refs)]
	}
}

// finish checks what only the end of a plan can tell.
func (p *Plan) finish() {
	if p.unpassed != 0 {
		p.unpassed = 0
		panic("the plan made a read that it passed to no operation")
	}
	if p.rejected {
		if p.rejected = false; p.listed() {
			panic("the plan lists something for an event that it rejected")
		}
	}
}

// Ctx is what an operation's function gets of the engine: the place to look up
// its reads. It is valid until the function returns.
type Ctx struct {
	w  *Worker
	id uint32
}

func (c Ctx) operation() string {
	if c.w.boxed != nil {
		return c.w.app.kinds[c.w.boxed.Current.Index()].name
	}
	return c.w.app.kinds[c.w.acc[c.id].Index()].name
}

// Modelled reports that the serial model calls the function, not an engine.
// Functions that only burn time, as benchmarks do, may then return at once; any
// other use makes the model a model of something else.
func (c Ctx) Modelled() bool { return c.w.boxed != nil }
