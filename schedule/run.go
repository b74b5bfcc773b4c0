package schedule

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/heddle-stream/heddle/internal/arena"
	"github.com/heddle-stream/heddle/tpg"
	"github.com/heddle-stream/heddle/txn"
)

// Executor runs operations. Calls for different workers may be concurrent.
type Executor interface {
	// Transaction runs the operations of [lo, hi) in order until one does not say
	// OK, and returns its verdict and id.
	Transaction(worker int, lo, hi uint32) (txn.Verdict, uint32)
	// Operation runs one.
	Operation(worker int, id uint32) txn.Verdict
	Placer
}

// Placer moves accesses with computed keys between rows. Transaction says
// txn.Moved when one of its accesses has another row than the graph says. Nobody
// executes while the methods are called.
type Placer interface {
	// Moved returns the accesses that made a worker's last transaction say so.
	Moved(worker int) []uint32
	// Place gives an access the row that it has and reports whether there is one.
	Place(id uint32) bool
	// Row returns the row of an access, or txn.None.
	Row(id uint32) uint32
	// SetLast makes last the last access on the row of access id, and returns what was.
	SetLast(id, last uint32) (was uint32)
}

// The state of a transaction. Anything else is the last unit that waits for it,
// plus firstWaiter.
const (
	pending = iota
	done
	void // aborted
	firstWaiter
)

// The state of an operation of a split transaction.
const (
	opPending = iota // nobody has come to it
	opQueued         // one worker runs it, or one waiting list or ready list holds it
	opDone           // its version may be seen
	opFailed         // ran without making a version that counts, or was not needed
	opHeld           // and above, of a shared read: plus the worker that decides it
)

const committed = ^uint64(0)

// failure returns committed, or the earliest failing operation of a split
// transaction and its verdict.
func (r *Run) failure(e uint32) uint64 { return ^r.failed[e].Load() }

// Run is the execution of one batch under one strategy. Its memory is used
// again for the next.
type Run struct {
	g     *tpg.Graph
	x     Executor
	s     Strategy
	src   []uint32 // by access: the version that it sees
	fail  []uint64 // by event: committed, or operation<<16 | verdict
	grain Grain

	state    []atomic.Uint32 // by event
	opState  []atomic.Uint32 // by access, of split transactions
	left     []atomic.Int32  // by event: operations of a split transaction to run
	failed   []atomic.Uint64 // by event: complement of the fail of a split transaction, so that 0 is none
	waitNext []uint32        // by access: the next unit on the same waiting list

	strata  tpg.Strata
	units   []uint32 // what is handed out, in order; nil means the events themselves
	levels  []uint32 // chain units end where the level changes; nil: at the chain's end
	bins    []uint32 // of a nested run: bin i is units[bins[i]:bins[i+1]]; else nil
	nest    nest
	whole   bool // units are transactions, run in one go on final versions only
	cursor  atomic.Int64
	limit   atomic.Int64 // units before it may be taken
	stratum atomic.Int64

	unfinished atomic.Int64 // events
	executed   atomic.Int64 // operations
	late       struct {
		sync.Mutex
		events []uint32     // that aborted after others had seen their versions
		moved  []uint32     // accesses that have another row than the graph says
		count  atomic.Int32 // of both
	}
	stop      atomic.Uint32 // number of the stop in progress, or 0
	stops     uint32
	arrived   atomic.Int32
	affected  *roaring.Bitmap
	remaining []uint32 // transactions of a run that gave up speculating

	workers []*Worker
	idle    parking
	stats   Stats

	// Meanwhile, when set, gives a worker without units something else to do. It
	// returns false when there is nothing. Called by Drive.
	Meanwhile func(worker int) bool
}

// Grain tells how coarsely to work.
type Grain struct {
	// Events handed out at once, at least 1.
	Events int
	// Publish operations one by one: pays when one takes longer than the
	// publishing, a microsecond or so.
	Fine bool
	// Operations of a chain run per step, at least 1.
	Operations int
	// Transactions that may be reset before a run gives up speculating. On keys
	// that everybody touches each late abort takes all that follow with it, and a
	// run without a bound would spend its time on that.
	RedoMax int
}

// GrainFor returns how coarsely to work on a batch whose operations take so long
// each, 0 when nobody knows: a step should be long against claiming it, and leave
// every worker something to do.
func GrainFor(opNs float64, ops, events, workers int) Grain {
	const stepNs, most = 20_000, 64
	n := most
	if perEvent := opNs * float64(ops) / float64(max(events, 1)); perEvent > 0 {
		n = int(min(stepNs/perEvent, most))
	}
	return Grain{Events: max(1, min(n, events/(8*workers))), Fine: fine(opNs), Operations: 64, RedoMax: 64 + events/8}
}

// Stats tells what a run did.
type Stats struct {
	Redone   int   // transactions reset by aborts and computed keys
	Moved    int   // computed keys that were not the ones foreseen
	Repairs  int   // times that the world was stopped
	Steals   int64 // units taken from another worker
	Waits    int64 // units that were put on a waiting list
	UsefulNs int64 // estimated from samples: in user functions and the executor
	WaitNs   int64 // workers without work
	RepairNs int64
}

// NewRun returns the memory for runs with the given number of workers.
func NewRun(workers int) *Run {
	r := &Run{affected: roaring.New()}
	r.idle.init()
	for i := range workers {
		r.workers = append(r.workers, &Worker{r: r, id: i})
	}
	return r
}

// Worker returns worker i.
func (r *Run) Worker(i int) *Worker { return r.workers[i] }

// Start prepares the execution of a linked graph. The executor's batch provides
// src and fail, both filled when the run has finished.
func (r *Run) Start(g *tpg.Graph, x Executor, s Strategy, src []uint32, fail []uint64, grain Grain) {
	r.g, r.x, r.s, r.src, r.fail, r.grain = g, x, s, src, fail, grain
	// Splitting a transaction pays only when an operation takes longer than its
	// publication. Otherwise those of a transaction run together, nobody sees a
	// version whose fate is open, and an abort costs nothing.
	together := s.unit == byOperation && s.explore == ns && !grain.Fine
	// An access that turns out to belong into another chain changes what a chain
	// or a stratum is. So then transactions are the units, whatever the strategy.
	r.whole = s.unit == byTransaction || together || len(g.Late) > 0
	r.state = reset(r.state, g.Events)
	r.stats = Stats{}
	split := !r.whole && (s.unit == byChain || s.explore != ns)
	if !r.whole {
		r.opState = reset(r.opState, len(g.Acc))
		r.left = arena.Resize(r.left, g.Events)
		r.failed = arena.Resize(r.failed, g.Events)
		clear(r.failed)
	}
	r.waitNext = arena.Resize(r.waitNext, len(g.Acc))
	r.unfinished.Store(int64(g.Events))
	r.executed.Store(0)
	r.stop.Store(0)
	r.arrived.Store(0)
	r.late.events, r.late.moved = r.late.events[:0], r.late.moved[:0]
	r.late.count.Store(0)
	for _, w := range r.workers {
		w.start()
	}
	r.order(split)
}

// reset returns s with n zeroed items.
func reset(s []atomic.Uint32, n int) []atomic.Uint32 {
	s = arena.Resize(s, n)
	clear(s)
	return s
}

// order lays out the units in the order in which the strategy hands them out.
func (r *Run) order(split bool) {
	r.units, r.levels, r.bins = nil, nil, nil
	r.cursor.Store(0)
	r.stratum.Store(0)
	if r.s.nested {
		r.units, r.bins = r.nest.lay(r.g, len(r.workers), r.grain.Events)
		r.limit.Store(int64(len(r.bins) - 1))
		return
	}
	if !split {
		r.limit.Store(int64(r.g.Events))
		return
	}
	switch {
	case r.s.unit == byChain && r.s.explore == ns:
		r.strata.Chains(r.g)
	case r.s.unit == byChain:
		r.strata.Segments(r.g)
		r.levels = r.strata.Level
	default:
		r.strata.Operations(r.g)
	}
	r.units = r.strata.Units
	r.limit.Store(int64(len(r.units)))
	if r.s.explore == bfs && len(r.units) > 0 {
		r.limit.Store(int64(r.strata.Start[1]))
	}
	empty := 0
	for e := range r.g.Events {
		if n := r.splitEvent(uint32(e)); n == 0 {
			r.state[e].Store(done)
			empty++
		}
	}
	r.unfinished.Add(-int64(empty))
}

// splitEvent prepares a transaction whose operations run one by one, and
// returns their number.
func (r *Run) splitEvent(e uint32) int {
	n := int32(0)
	for id := r.g.TxLo[e]; id < r.g.TxHi[e]; id++ {
		if !r.g.Acc[id].IsRead() {
			n++
		}
	}
	r.left[e].Store(n)
	return int(n)
}

// Finished reports that every transaction has its final outcome.
func (r *Run) Finished() bool {
	// In this order: what stops the run is set before the last event is counted.
	return r.unfinished.Load() == 0 && r.stop.Load() == 0 && r.late.count.Load() == 0
}

// Stats returns what the run did. After it has finished.
func (r *Run) Stats() Stats {
	s := r.stats
	for _, w := range r.workers {
		s.Steals += w.steals
		s.Waits += w.waits
		s.WaitNs += w.waitNs
		s.UsefulNs += w.usefulNs()
	}
	return s
}

// Diagnosis describes the state of a run that does not get on, for tests.
func (r *Run) Diagnosis() string {
	out := fmt.Sprintf("%s: %d events unfinished, %d operations executed, cursor %d of %d, stratum %d, stop %d, late %d",
		r.s, r.unfinished.Load(), r.executed.Load(), r.cursor.Load(), r.limit.Load(), r.stratum.Load(), r.stop.Load(), r.late.count.Load())
	for e := range r.g.Events {
		state := r.state[e].Load()
		if state == done || state == void {
			continue
		}
		out += fmt.Sprintf("\n event %d state %d:", e, state)
		if r.whole {
			continue
		}
		out += fmt.Sprintf(" failure %x", r.failure(uint32(e)))
		for id := r.g.TxLo[e]; id < r.g.TxHi[e]; id++ {
			if !r.g.Acc[id].IsRead() {
				out += fmt.Sprintf(" op %d=%d", id, r.opState[id].Load())
			}
		}
	}
	for _, w := range r.workers {
		out += fmt.Sprintf("\n worker %d ready %v held %d atStop %d", w.id, w.ready.units, w.held, w.atStop)
	}
	return out
}
