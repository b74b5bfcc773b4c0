package txn

// Serial runs events one after the other, in place, without a graph: the
// fastest way when operations cost next to nothing or depend on each other.
//
// On small tables, whose keys are found in the near caches, an operation runs
// while the plan lists it: a plan does not depend on state, so this makes no
// difference to it. On large tables the plans of a group of events are run
// first, then the keys of the whole group are looked up together so that their
// cache misses overlap, and then each transaction runs. Either way the values
// that operations met are kept, for undoing an abort and for results.
type Serial struct {
	x    *Batch
	w    Worker
	plan *Plan
	acc  []Access // the plan's, while it is not planning

	recording bool // versions are kept for windows, by functions that may panic
}

const (
	serialGroup = 64 // events planned together: their keys fit the first cache
	// Up to this many rows a table stays in the caches near the core, where
	// looking up key by key beats collecting keys first.
	inPlaceRows = 1 << 15
)

// NewSerial returns a serial runner.
func (b *Bound) NewSerial() *Serial { return &Serial{w: Worker{app: b.App, inPlace: true}} }

// Run executes all events of an open batch. It stops at the first event whose
// function panics, with all events before it done and nothing of it, and
// returns that panic. Results are computed on the way.
func (s *Serial) Run(x *Batch, fingerprints bool) *Panic {
	s.x = x
	s.plan = &x.plans[0]
	share := x.shares[0]
	rows := 0
	for _, t := range x.bound.App.tables {
		t.resetShare(share)
		rows = max(rows, t.rowsAllocated())
	}
	for i := range x.Fail {
		x.Fail[i] = committed
	}
	x.Ops, x.Accesses = 0, 0
	x.Panic, x.Seen, s.recording = nil, nil, false
	w := &s.w
	w.fingerprints, w.seen = fingerprints, nil
	if fingerprints {
		x.Seen = make([]uint64, x.Events)
	}
	w.share, w.base, w.batch = share, 0, x
	w.txLo, w.txHi, w.fail = x.TxLo, x.TxHi, x.Fail
	s.plan.rejections, s.plan.rejected = s.plan.rejections[:0], false
	s.begin()
	defer s.end()
	for lo := 0; lo < x.Events && x.Panic == nil; {
		hi := min(lo+serialGroup, x.Events)
		s.clear()
		if rows <= inPlaceRows {
			lo = s.inPlace(lo, hi)
			x.Accesses += len(s.plan.acc)
			s.settle()
			s.clear()
		}
		if lo < hi { // or a panic, of which a run after the plan tells what it is
			s.group(lo, hi)
			x.Accesses += len(s.plan.acc)
			s.settle()
		}
		lo = hi
	}
	x.rejections = append(x.rejections[:0], s.plan.rejections...)
	if x.Panic == nil {
		x.Panic = x.Cut
	}
	return x.Panic
}

// begin lends the plan the runner's memory, which a group fills again and again,
// and end takes it back.
func (s *Serial) begin() {
	p, w := s.plan, &s.w
	p.acc, p.serial = s.acc, w
	w.acc, w.refs = p.acc[:cap(p.acc)], p.refs[:cap(p.refs)]
}

func (s *Serial) end() {
	s.acc = s.plan.acc[:0]
	s.plan.acc, s.plan.serial = nil, nil
}

// clear empties what the plans of a group filled.
func (s *Serial) clear() {
	p := s.plan
	p.acc, p.refs, p.starts, p.panicked = p.acc[:0], p.refs[:0], false, nil
	s.w.app.resetKinds(p.worker)
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

// settle ends a group: nothing of it can be undone any more.
func (s *Serial) settle() {
	for _, t := range s.w.app.tables {
		t.settle()
		for shard := range t.shardCount() {
			t.reclaim(shard)
		}
	}
}

// inPlace runs the events [lo, hi) while planning them. When a user function
// panics it undoes that event and returns its number, else hi.
func (s *Serial) inPlace(lo, hi int) (ev int) {
	x, p, w := s.x, s.plan, &s.w
	p.mode = planInPlace
	ev = lo
	defer func() {
		if recover() == nil {
			return
		}
		s.recording = false
		if w.fail[ev] == committed {
			s.undo(p.txFirst, p.ran)
		}
		w.fail[ev], p.rejected = committed, false
	}()
	events, refs := w.app.events, x.feed.refs
	for ; ev < hi; ev++ {
		r := refs[ev]
		p.event, p.failed, p.unpassed, p.ops = uint32(ev), OK, 0, 0
		p.txFirst, p.opsEnd = uint32(len(p.acc)), 0
		p.ran = p.txFirst
		w.txLo[ev] = p.txFirst
		events[r.typ].planOne(p, x.feed.id, r.place)
		w.txHi[ev] = uint32(len(p.acc))
		p.finish()
		if p.failed != OK {
			s.undo(p.txFirst, p.ran)
			w.fail[ev] = uint64(p.ran)<<16 | uint64(p.failed)
		} else if x.bound.windows {
			s.record(ev)
		}
		events[r.typ].emit(w, x.feed.id, r.place, uint32(ev))
		if x.Seen != nil {
			x.Seen[ev] = w.seenHash(uint32(ev))
		}
		x.Ops += p.ops
	}
	return ev
}

// group plans, looks up and runs the events [lo, hi).
func (s *Serial) group(lo, hi int) {
	x, p := s.x, s.plan
	p.mode, p.ops = planSerial, 0
	x.planFrom(p, lo, hi, 0)
	if p.panicked != nil {
		hi = p.panicked.Event
	}
	for _, t := range s.w.app.tables {
		t.rowed(p)
	}
	x.Ops += p.ops
	if done := s.transactions(lo, hi); done == hi {
		x.Panic = p.panicked
	}
}

// transactions runs the planned events [lo, hi) and returns where it stopped.
func (s *Serial) transactions(lo, hi int) (ev int) {
	x, w := s.x, &s.w
	ev = lo
	result := false
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if s.recording {
			x.Panic = newPanic(ev, "fold", x.EventName(ev), r)
			s.undo(w.txLo[ev], w.txHi[ev])
			return
		}
		if result {
			x.Panic = newPanic(ev, "result", x.EventName(ev), r)
			if w.fail[ev] == committed {
				s.undo(w.txLo[ev], w.txHi[ev])
			}
			return
		}
		x.Panic = newPanic(ev, "operation", w.app.kinds[w.acc[w.current].Index()].name, r)
		s.undo(w.txLo[ev], w.current)
	}()
	kinds, events := w.app.kinds, w.app.events
	for ; ev < hi; ev++ {
		clo, chi := w.txLo[ev], w.txHi[ev]
		if s.plan.starts {
			s.holdStarts(clo, chi)
		}
		for id := clo; id < chi; id++ {
			a := &w.acc[id]
			if a.Kind&kindRead != 0 {
				if a.Kind&kindLate != 0 {
					w.current = id
					kinds[a.Kind&kindIndex].late.(readLate).serialRead(w, id)
				}
				continue
			}
			w.current = id
			if v := kinds[a.Kind&kindIndex].op.serial(w, id); v != OK {
				w.fail[ev] = uint64(id)<<16 | uint64(v)
				s.undo(clo, id)
				break
			}
		}
		if w.fail[ev] == committed && x.bound.windows {
			s.record(ev)
		}
		result = true
		r := x.feed.refs[ev]
		events[r.typ].emit(w, x.feed.id, r.place, uint32(ev))
		result = false
		if x.Seen != nil {
			x.Seen[ev] = w.seenHash(uint32(ev))
		}
	}
	return ev
}

// record keeps the versions that a committed transaction leaves for windows.
func (s *Serial) record(ev int) {
	w := &s.w
	s.recording = true
	for id := w.txHi[ev]; id > w.txLo[ev]; {
		id--
		if a := &w.acc[id]; a.Writes() {
			if t := w.app.kinds[a.Index()].table; t.windowed() {
				t.recordRow(s.x, uint32(ev), a.Slot)
			}
		}
	}
	s.recording = false
}

// holdStarts keeps the values that reads at the start of a transaction see.
func (s *Serial) holdStarts(lo, hi uint32) {
	w := &s.w
	for id := lo; id < hi; id++ {
		if a := &w.acc[id]; a.Kind&kindStart != 0 {
			if k := w.app.kinds[a.Kind&kindIndex]; k.load != nil {
				k.load.hold(w, id)
			}
		}
	}
}

// undo takes back the operations [lo, hi), the last first.
func (s *Serial) undo(lo, hi uint32) {
	w := &s.w
	for id := hi; id > lo; {
		id--
		if a := &w.acc[id]; a.Kind&kindRead == 0 {
			w.app.kinds[a.Kind&kindIndex].op.undo(w, id)
		}
	}
}
