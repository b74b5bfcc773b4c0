package txn

import "runtime/debug"

// Serial runs events one after the other, in place, without a graph: the
// fastest way when operations cost next to nothing or depend on each other.
//
// An operation runs while the plan lists it: a plan does not depend on state, so
// this makes no difference to it. What operations met and left is kept until the
// event's result is there: for that, and for undoing an abort. On large tables the
// plans of a group of events run once more before, only to have the records of
// their keys fetched, so that the cache misses of the whole group overlap.
type Serial struct {
	x     *Batch
	w     Worker
	plan  *Plan
	phase phase
	stamp uint64 // of the last event
	more  bool   // whether every plan is to be followed by planned
}

// phase is what an event has come to, for panics.
type phase uint8

const (
	phasePlan   phase = iota // and its operations
	phaseRecord              // versions are kept for windows
	phaseResult
)

const (
	serialGroup = 64 // events whose records are fetched together: they fit the first cache
	// Up to this many rows a table stays in the caches near the core, where
	// looking up key by key beats fetching first.
	nearRows = 1 << 15
)

// NewSerial returns a serial runner.
func (b *Bound) NewSerial() *Serial { return &Serial{w: Worker{app: b.App, inPlace: true}} }

// Run executes all events of an open batch. It stops at the first event whose
// function panics, with all events before it done and nothing of it, and
// returns that panic. Results are computed on the way.
func (s *Serial) Run(x *Batch, fingerprints bool) *Panic {
	far := s.begin(x, fingerprints)
	for lo := 0; lo < x.Events && x.Panic == nil; lo += serialGroup {
		hi := min(lo+serialGroup, x.Events)
		if far {
			s.ahead(lo, hi)
		}
		s.group(lo, hi)
		s.settle()
	}
	s.end()
	x.rejections = append(x.rejections[:0], s.plan.rejections...)
	if x.Panic == nil {
		x.Panic = x.Cut
	}
	return x.Panic
}

// begin prepares a batch, and reports whether records need fetching.
func (s *Serial) begin(x *Batch, fingerprints bool) (far bool) {
	s.x, s.plan = x, &x.plans[0]
	for i := range x.Fail {
		x.Fail[i] = committed
	}
	x.Panic, x.Seen = nil, nil
	if fingerprints {
		x.Seen = make([]uint64, x.Events)
	}
	w := &s.w
	w.fingerprints, w.share, w.batch, w.fail = fingerprints, x.shares[0], x, x.Fail
	w.plan, w.keying, w.hash = s.plan, 0, 0
	s.phase, s.more, s.plan.stamp, s.plan.made = phasePlan, fingerprints || x.bound.windows, s.stamp, 0
	s.plan.serial, s.plan.ops, s.plan.rejections = w, 0, s.plan.rejections[:0]
	s.settle()
	for _, t := range w.app.tables {
		far = far || t.rowsInMemory() > nearRows
	}
	return far
}

// end lets go of what the last transactions kept.
func (s *Serial) end() {
	x, p := s.x, s.plan
	x.Ops, x.Accesses, s.stamp = p.ops, p.ops+p.made, p.stamp
	p.serial, p.running, p.direct = nil, nil, nil
	for _, k := range s.w.app.kinds {
		if k.op != nil {
			k.op.resetCalls()
		}
	}
	for _, t := range s.w.app.tables {
		t.forgetHeld()
	}
}

// settle makes room in the tables for what comes next.
func (s *Serial) settle() {
	for _, k := range s.w.app.kinds {
		if k.rng != nil {
			k.rng.reset(s.w.share)
		}
	}
	for _, t := range s.w.app.tables {
		t.reclaimAll()
	}
}

// ahead has the records fetched that the events [lo, hi) will touch. A plan that
// panics is left for when its event's turn has come.
func (s *Serial) ahead(lo, hi int) {
	defer func() { _ = recover() }()
	p := s.plan
	events, refs := s.w.app.events, s.x.feed.refs
	p.mode, p.running, p.direct = planAhead, nil, nil
	for ev := lo; ev < hi; ev++ {
		p.begin(uint32(ev))
		events[refs[ev].typ].planOne(p, s.x.feed.id, refs[ev].place)
	}
}

// group runs the events [lo, hi).
func (s *Serial) group(lo, hi int) {
	x, p := s.x, s.plan
	defer func() {
		if r := recover(); r != nil {
			x.Panic = s.panicked(int(p.event), r, debug.Stack())
		}
	}()
	p.mode = planInPlace
	s.rearm()
	refs := x.feed.refs
	for lo < hi {
		first, end := refs[lo], lo+1
		for end < hi && refs[end] == (eventRef{first.typ, first.place + uint32(end-lo)}) {
			end++
		}
		s.w.app.events[first.typ].inPlace(s, lo, end)
		lo = end
	}
}

// rearm makes operations run as they are listed.
func (s *Serial) rearm() {
	p, app := s.plan, s.w.app
	p.running, p.direct, p.failed = app, app, OK
	if s.w.fingerprints {
		p.direct = nil
	}
}

// planned ends the transaction of an event whose plan is through, when there is
// more to it than that.
func (s *Serial) planned() {
	p, w := s.plan, &s.w
	p.check()
	if s.x.Seen != nil {
		s.x.Seen[p.event], w.hash = w.hash, 0
	}
	switch {
	case p.failed != OK:
		s.undo()
		w.fail[p.event] = uint64(p.failed)
	case s.x.bound.windows:
		s.record()
	}
}

// panicked takes back what an event did before it panicked, and tells which
// function it was: a plan runs before all operations, so one that panics alone
// comes first.
func (s *Serial) panicked(ev int, value any, stack []byte) *Panic {
	x, w := s.x, &s.w
	if w.fail[ev] == committed {
		s.undo()
	}
	w.fail[ev] = committed
	p := &Panic{Event: ev, What: "result", Name: x.EventName(ev), Value: value, Stack: stack}
	switch s.phase {
	case phaseRecord:
		p.What = "fold"
	case phasePlan:
		p.What, p.Name = "operation", w.callingName()
		if alone := s.planAlone(ev); alone != nil {
			return alone
		}
	case phaseResult:
	}
	return p
}

// planAlone returns what the plan of an event panics with, or nil.
func (s *Serial) planAlone(ev int) (p *Panic) {
	defer func() {
		if r := recover(); r != nil {
			p = newPanic(ev, "plan", s.x.EventName(ev), r)
		}
	}()
	r := s.x.feed.refs[ev]
	s.plan.mode, s.plan.running, s.plan.direct = planCheck, nil, nil
	s.plan.begin(uint32(ev))
	s.w.app.events[r.typ].planOne(s.plan, s.x.feed.id, r.place)
	s.plan.check()
	return nil
}

// record keeps the versions that a committed transaction leaves for windows.
func (s *Serial) record() {
	s.phase = phaseRecord
	steps := s.w.steps()
	for i := len(steps) - 1; i >= 0; i-- {
		kind := steps[i]
		if k := s.w.app.kinds[kind&kindIndex]; kind&kindPassive == 0 && k.table.windowed() {
			k.table.recordRow(&s.w, s.x, s.plan.event, k.op.rowOf(i))
		}
	}
	s.phase = phasePlan
}

// undo takes back the operations of the transaction, the last first.
func (s *Serial) undo() {
	steps := s.w.steps()
	for i := len(steps) - 1; i >= 0; i-- {
		s.w.app.kinds[steps[i]&kindIndex].op.undo(i)
	}
}
