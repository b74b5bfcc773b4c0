package simulate

import (
	"container/heap"
	"fmt"
	"iter"

	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/tpg"
	"github.com/heddle-stream/heddle/txn"
)

// Work is a batch as a simulation sees it: a graph, how it came out and what its
// operations cost.
type Work struct {
	Graph *tpg.Graph
	Fail  []uint64  // by event: committed, or operation<<16 | verdict
	Cost  []float64 // by access: ns of an operation
}

// Machine is what the simulated scheduler costs, in ns. The zero value is a
// scheduler that costs nothing.
type Machine struct {
	Call float64 // finding and publishing what one call of the executor runs
	Park float64 // finding that a unit has to wait, and taking it up again
	Wake float64 // until a worker without work has noticed that there is some
	Spin float64 // between two looks at a unit that is held
	Redo float64 // resetting a transaction
	// Regions of the next batch that workers without work plan, and what one takes.
	Regions int
	Plan    float64
}

// Execution is the account of a simulated one.
type Execution struct {
	Nanos   float64 // until the last worker was done
	Busy    float64 // with calls, summed over the workers
	Redone  int
	Planned int // regions of the next batch
}

const (
	committed = ^uint64(0)
	// heldLooks is how often a worker of a holding strategy looks before it counts
	// as idle: more than it takes the scheduler to put the held unit aside.
	heldLooks = 34
	// A round in which no worker has anything to do may only be the coming
	// together before a repair. After so many there is an error.
	fruitlessRounds = 4
)

// Execute runs the batch under a strategy on virtual workers. The same arguments
// give the same result.
func Execute(w Work, s schedule.Strategy, workers int, grain schedule.Grain, m Machine) (Execution, error) {
	v := &virtual{Work: w, m: m, run: schedule.NewRun(workers), holds: holds(s)}
	v.run.Start(w.Graph, v, s, make([]uint32, len(w.Graph.Acc)), make([]uint64, w.Graph.Events), grain)
	for i := range workers {
		l := &lane{id: i, w: v.run.Worker(i)}
		l.next, l.stop = iter.Pull(l.loop)
		v.lanes = append(v.lanes, l)
		v.busy = append(v.busy, l) // a heap: all times are 0, ids ascend
	}
	err := v.drive()
	for _, l := range v.lanes {
		l.stop()
	}
	if err != nil {
		return Execution{}, err
	}
	return v.x, nil
}

// holds tells whether workers of a strategy wait at a unit that is not ready.
func holds(s schedule.Strategy) bool {
	return len(s.String()) > 3 && s.String()[:3] == "dfs" || s.String() == "tstream"
}

// lane is a virtual worker.
type lane struct {
	id     int
	w      *schedule.Worker
	time   float64 // when it is to be resumed
	looks  int     // at a held unit
	ended  bool    // stop was called
	next   func() (signal, bool)
	stop   func()
	signal func(signal) bool
}

// signal is why a worker hands control back.
type signal struct {
	cost float64 // of the call that it makes
	what status
}

type status uint8

const (
	calls   status = iota // a call of the executor takes its time
	stepped               // a step is over that did something
	idles                 // a step is over that found nothing
)

// loop takes steps until the run has finished.
func (l *lane) loop(yield func(signal) bool) {
	l.signal = yield
	for !l.ended {
		switch l.w.Step() {
		case schedule.Ran:
			l.say(signal{what: stepped})
		case schedule.Idle:
			l.say(signal{what: idles})
		case schedule.Finished:
			return
		}
	}
}

func (l *lane) say(s signal) {
	if !l.ended && !l.signal(s) {
		l.ended = true
	}
}

// virtual is a simulated execution. As the executor of the run it makes calls
// take virtual time.
type virtual struct {
	Work
	m     Machine
	run   *schedule.Run
	lanes []*lane
	busy  lanesByTime
	idle  []*lane
	holds bool
	now   float64
	waits int64 // units put on waiting lists so far
	x     Execution
}

// Transaction implements [schedule.Executor].
func (v *virtual) Transaction(worker int, lo, hi uint32) (txn.Verdict, uint32) {
	if lo == hi {
		return txn.OK, 0
	}
	verdict, at, cost := txn.OK, uint32(0), v.m.Call
	for id := lo; id < hi && verdict == txn.OK; id++ {
		if !v.Graph.Acc[id].IsRead() {
			cost += v.Cost[id]
			verdict, at = v.verdict(id), id
		}
	}
	v.lanes[worker].say(signal{cost, calls})
	return verdict, at
}

// Operation implements [schedule.Executor].
func (v *virtual) Operation(worker int, id uint32) txn.Verdict {
	v.lanes[worker].say(signal{v.m.Call + v.Cost[id], calls})
	return v.verdict(id)
}

// Place, Row and SetLast implement [schedule.Placer]. The graph has computed keys
// where they were found to be in the end: none is moved.
func (v *virtual) Place(uint32) bool                   { return false }
func (v *virtual) Moved(int) []uint32                  { return nil }
func (v *virtual) Row(uint32) uint32                   { return txn.None }
func (v *virtual) SetLast(uint32, uint32) (was uint32) { return txn.None }

// verdict returns what an operation came to in the real run.
func (v *virtual) verdict(id uint32) txn.Verdict {
	if f := v.Fail[v.Graph.Acc[id].Event]; f != committed && uint32(f>>16) == id {
		return txn.Verdict(f)
	}
	return txn.OK
}

// drive resumes the workers in the order of their times.
func (v *virtual) drive() error {
	for !v.run.Finished() {
		if len(v.busy) == 0 {
			if !v.round() {
				return fmt.Errorf("the simulation does not get on: %s", v.run.Diagnosis())
			}
			continue
		}
		l := heap.Pop(&v.busy).(*lane)
		v.now = l.time
		if !v.resume(l) {
			continue // nothing has changed
		}
		// What it made ready is for it to take first, and then for one without work.
		// When that finds nothing, nobody does.
		for len(v.idle) > 0 {
			i := v.idle[len(v.idle)-1]
			v.idle = v.idle[:len(v.idle)-1]
			i.time = v.now + v.m.Wake
			if !v.resume(i) {
				break
			}
		}
	}
	v.x.Nanos = max(v.x.Nanos, v.now)
	return nil
}

// resume lets a worker go on from its time, and reports whether it did something.
func (v *virtual) resume(l *lane) bool {
	s, more := l.next()
	if !more {
		return true
	}
	if waits := v.run.Stats().Waits; waits != v.waits {
		l.time += float64(waits-v.waits) * v.m.Park
		v.waits = waits
	}
	switch {
	case s.what == calls:
		l.looks = 0
		l.time += s.cost
		v.x.Busy += s.cost
		v.x.Nanos = max(v.x.Nanos, l.time)
	case s.what == stepped:
		l.looks = 0
		v.repaired(l)
	case v.x.Planned < v.m.Regions:
		v.x.Planned++
		l.looks = 0
		l.time += v.m.Plan
		v.x.Nanos = max(v.x.Nanos, l.time)
		heap.Push(&v.busy, l)
		return false
	case v.holds && l.looks < heldLooks:
		l.looks++
		l.time += v.m.Spin
		heap.Push(&v.busy, l)
		return false
	default:
		v.idle = append(v.idle, l)
		return false
	}
	heap.Push(&v.busy, l)
	return true
}

// repaired makes everybody wait for the repair that a step was, if it was one.
func (v *virtual) repaired(l *lane) {
	redone := v.run.Stats().Redone
	if redone == v.x.Redone {
		return
	}
	v.now += float64(redone-v.x.Redone)*v.m.Redo + v.m.Wake
	v.x.Redone = redone
	l.time = v.now
	for _, other := range v.busy {
		other.time = max(other.time, v.now)
	}
	heap.Init(&v.busy)
}

// round resumes every worker when none has work: they may have to come together
// for a repair. It reports whether anything came of it.
func (v *virtual) round() bool {
	for range fruitlessRounds {
		all := v.idle
		v.idle = nil
		did := false
		for _, l := range all {
			l.time = v.now
			did = v.resume(l) || did
		}
		if did || v.run.Finished() {
			return true
		}
	}
	return false
}

// lanesByTime is a heap of workers; those of one time are in the order of their ids.
type lanesByTime []*lane

func (h lanesByTime) Len() int { return len(h) }
func (h lanesByTime) Less(i, j int) bool {
	return h[i].time < h[j].time || h[i].time == h[j].time && h[i].id < h[j].id
}
func (h lanesByTime) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *lanesByTime) Push(x any) { *h = append(*h, x.(*lane)) }

// Pop implements [heap.Interface].
func (h *lanesByTime) Pop() any {
	old := *h
	l := old[len(old)-1]
	*h = old[:len(old)-1]
	return l
}
