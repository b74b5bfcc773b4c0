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
	planAhead                   // the keys of operations are fetched
	planCheck                   // nothing but the plan's mistakes are looked for
	planInPlace                 // operations run as they are listed
	planBoxed                   // for the oracle
	planKeys                    // keys are named, see Footprint
)

// Plan collects the operations of one event's transaction. Plan functions get
// one and pass it to At and Of; they must not keep it.
type Plan struct {
	app      *App
	acc      []Access // this worker's, in order
	refs     []uint32 // reads of operations, counted from the worker's first access
	event    uint32
	worker   int
	reads    []planRead // of the event
	passed   int        // so many of the first of them were all passed to operations
	given    uint       // where the givenLen reads begin of the operation that runs at once
	givenLen uint
	stamp    uint64 // of the event, in a serial run
	listed   int    // operations of the event
	ops      int    // operations of all events before
	lates    []uint32
	mode     planMode
	running  *App    // planInPlace: the application, as long as no operation of the event failed
	direct   *App    // the same, as long as nobody wants fingerprints
	serial   *Worker // who runs the operations then
	failed   Verdict // of the first operation of the event that failed
	ran      int     // operations up to that one
	made     int     // reads of all events before
	frame    *BoxedTxn
	planned  int // the event whose plan runs
	panicked *Panic

	footprint  *Footprint
	rejections []Rejection
	rejected   bool // the event in hand
	_          [64]byte
}

// planRead is a read that the plan of an event made.
type planRead struct {
	at     uint32 // its access; where operations run at once: where it finds what it reads
	listed uint32 // operations before it
	kind   uint16
	passed passing // if it is not one of the first that all were passed on
}

type passing uint16

const (
	passedNowhere passing = iota
	passedToRead          // only, and may be passed to the operation, too
	passedOn              // to an operation
)

// begin starts the plan of an event.
func (p *Plan) begin(event uint32) {
	p.event, p.reads, p.passed, p.listed, p.rejected = event, p.reads[:0], 0, 0, false
}

// add records an operation. Its access is filled field by field: a whole Access
// would be built elsewhere in small stores and copied in large ones, which the
// processor cannot forward.
func (p *Plan) add(kind uint16, arg uint32, reads []Arg) uint32 {
	n := len(p.acc)
	if n == cap(p.acc) {
		p.acc = append(p.acc, Access{})[:n]
	}
	p.acc = p.acc[:n+1]
	a := &p.acc[n]
	a.Kind, a.NRefs, a.Event, a.Arg, a.Refs = kind, uint16(len(reads)), p.event, arg, uint32(len(p.refs))
	if len(reads) > 0 {
		p.refer(reads)
	}
	p.listed++
	return uint32(n)
}

// addRead records a read.
func (p *Plan) addRead(kind uint16, arg uint32) (r Arg, id uint32) {
	n := len(p.acc)
	if n == cap(p.acc) {
		p.acc = append(p.acc, Access{})[:n]
	}
	p.acc = p.acc[:n+1]
	a := &p.acc[n]
	a.Kind, a.NRefs, a.Event, a.Arg, a.Refs = kind, 0, p.event, arg, 0
	return p.read(kind, uint32(n)), uint32(n)
}

// read notes a read to be passed to operations.
func (p *Plan) read(kind uint16, at uint32) Arg {
	n := len(p.reads)
	if n == cap(p.reads) {
		p.growReads()
	}
	p.reads = p.reads[:n+1]
	r := &p.reads[n]
	r.at, r.listed, r.kind, r.passed = at, uint32(p.listed), kind, passedNowhere
	return Arg{uint32(n), kind}
}

func (p *Plan) growReads() { p.reads = slices.Grow(p.reads, 1) }

// refer records the accesses of the reads that an operation looks at.
func (p *Plan) refer(reads []Arg) {
	n := len(p.refs)
	if n+len(reads) > cap(p.refs) {
		p.refs = slices.Grow(p.refs, len(reads))[:n]
	}
	p.give(reads)
	p.refs = p.refs[:n+len(reads)]
	refs := p.refs[n:]
	for i, r := range reads {
		refs[i] = p.reads[r.id].at
	}
}

// passOne notes that a read was passed on.
func (p *Plan) passOne(r Arg, to passing) {
	read := &p.reads[r.id]
	if r.kind&kindStart == 0 && (p.wasPassed(r) || read.listed != uint32(p.listed)) {
		p.misplaced(r)
	}
	read.passed = to
}

// wasPassed reports whether an operation was given the read.
func (p *Plan) wasPassed(r Arg) bool {
	return int(r.id) < p.passed || p.reads[r.id].passed == passedOn
}

// misplaced panics because of a read that was passed to a second operation, or not
// to the first one listed since it was made.
func (p *Plan) misplaced(r Arg) {
	name := p.app.kinds[r.kind&kindIndex].name
	if p.wasPassed(r) {
		panic("read " + name + " was passed to two operations: only AtStart reads can be")
	}
	panic("read " + name + " was made before another operation was listed: it reads what stands just before the operation that it is passed to, and must be made there")
}

// addLateRead records a read whose key is computed from others.
func (p *Plan) addLateRead(kind uint16, arg uint32, reads []Arg) (r Arg, id uint32) {
	r, id = p.addRead(kind, arg)
	a := &p.acc[id]
	a.NRefs, a.Refs = uint16(len(reads)), uint32(len(p.refs))
	p.passToRead(reads)
	for _, source := range reads {
		p.refs = append(p.refs, p.reads[source.id].at)
	}
	return r, id
}

// passToRead notes that reads are given to one whose key is computed.
func (p *Plan) passToRead(reads []Arg) {
	for _, r := range reads {
		p.passOne(r, passedToRead)
	}
}

// skip lists an operation that is not run: after one that failed, the plan's
// mistakes are still to be found.
func (p *Plan) skip(reads []Arg) {
	p.give(reads)
	p.listed++
}

// give makes reads those that the operation listed next may look at. As a rule they
// were made in a row, for which a look at the first tells whether the plan made a
// mistake.
func (p *Plan) give(reads []Arg) {
	if len(reads) == 0 {
		p.given, p.givenLen = 0, 0
		return
	}
	first, all := reads[0].id, reads[0].kind
	for i := 1; i < len(reads); i++ {
		if reads[i].id != first+uint32(i) {
			p.giveEach(reads)
			return
		}
		all &= reads[i].kind
	}
	end := int(first) + len(reads)
	if int(first) > p.passed || end > len(p.reads) || len(reads) > readsMax ||
		all&kindStart == 0 && (int(first) != p.passed || p.reads[first].listed != uint32(p.listed)) {
		p.giveEach(reads)
		return
	}
	if end > p.passed {
		p.passed = end
	}
	p.given, p.givenLen = uint(first), uint(len(reads))
}

// readsMax is how many reads an operation can be given.
const readsMax = 0xffff

// giveEach is give with a look at each read.
func (p *Plan) giveEach(reads []Arg) {
	if len(reads) > readsMax {
		panic(fmt.Sprintf("%d reads for one operation: %d are allowed, use a range", len(reads), readsMax))
	}
	for _, r := range reads {
		p.passOne(r, passedOn)
	}
	p.gather(reads)
}

// gather puts copies of reads behind each other and makes them those that the
// next function may look at.
func (p *Plan) gather(reads []Arg) {
	p.given, p.givenLen = uint(len(p.reads)), uint(len(reads))
	for _, r := range reads {
		read := p.reads[r.id]
		read.passed = passedOn
		p.reads = append(p.reads, read)
	}
}

// fail ends the running of an event's operations.
func (p *Plan) fail(v Verdict) {
	p.failed, p.running, p.direct, p.ran = v, nil, nil, p.listed
}

// finish ends the plan of an event.
func (p *Plan) finish() {
	p.check()
	p.ops += p.listed
}

// check checks what only the end of a plan can tell.
func (p *Plan) check() {
	for i := p.passed; i < len(p.reads); i++ {
		if p.reads[i].passed == passedNowhere {
			panic("the plan made a read that it passed to no operation")
		}
	}
	if p.rejected {
		if p.rejected = false; p.listedAny() {
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
	switch w := c.w; {
	case w.boxed != nil:
		return w.app.kinds[w.boxed.Current.Index()].name
	case w.inPlace:
		return w.callingName()
	default:
		return w.app.kinds[w.acc[c.id].Index()].name
	}
}

// Modelled reports that the serial model calls the function, not an engine.
// Functions that only burn time, as benchmarks do, may then return at once; any
// other use makes the model a model of something else.
func (c Ctx) Modelled() bool { return c.w.boxed != nil }
