package txn

// Serial runs events one after the other, in place, without a graph: the
// fastest way when operations cost next to nothing or depend on each other.
//
// It plans a group of events at a time. On large tables it then looks up the
// keys of the whole group together, so that their cache misses overlap; on
// small ones each key is looked up when it is listed. Plans do not depend on
// state, which makes both the same. Then each transaction runs, with the values
// it met kept for undoing an abort.
type Serial struct {
	x       *Batch
	w       Worker
	plan    *Plan
	results bool
	ops     int
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
// returns that panic. Results are computed when asked for.
func (s *Serial) Run(x *Batch, fingerprints bool) *Panic {
	s.x = x
	s.plan = &x.plans[0]
	share := x.shares[0]
	rows := 0
	for _, t := range x.bound.App.tables {
		t.resetShare(share)
		rows = max(rows, t.rowsAllocated())
	}
	p := s.plan
	p.mode, p.refs = planSerial, p.refs[:0]
	if rows <= inPlaceRows {
		p.mode = planInPlace
	}
	for i := range x.Fail {
		x.Fail[i] = committed
	}
	x.Ops = 0
	x.Panic, x.Seen = nil, nil
	if fingerprints {
		x.Seen = make([]uint64, x.Events)
	}
	s.w.share, s.w.base = share, 0
	s.w.txLo, s.w.txHi, s.w.fail = x.TxLo, x.TxHi, x.Fail
	for lo := 0; lo < x.Events; lo += serialGroup {
		hi := min(lo+serialGroup, x.Events)
		s.group(lo, hi)
		if x.Panic != nil {
			break
		}
	}
	return x.Panic
}

// group plans, looks up and runs the events [lo, hi).
func (s *Serial) group(lo, hi int) {
	x, p := s.x, s.plan
	p.acc, p.refs, p.starts = p.acc[:0], p.refs[:0], false
	p.panicked = nil
	for _, k := range s.w.app.kinds {
		if k.op != nil {
			k.op.reset(p.worker)
		} else if k.rng != nil {
			k.rng.reset(p.worker)
		}
	}
	x.planFrom(p, lo, hi, 0)
	if p.panicked != nil {
		hi = p.panicked.Event
	}
	if p.mode == planSerial {
		for _, t := range s.w.app.tables {
			t.rowed(p)
		}
	}
	s.w.acc, s.w.refs = p.acc, p.refs
	if x.Seen != nil {
		s.w.seen = make([]uint64, len(p.acc))
	}
	if done := s.transactions(lo, hi); done == hi {
		x.Panic = p.panicked
	}
	for _, t := range s.w.app.tables {
		t.settle()
		for shard := range t.shardCount() {
			t.reclaim(shard)
		}
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
				continue
			}
			w.current = id
			x.Ops++
			if v := kinds[a.Kind&kindIndex].op.serial(w, id); v != OK {
				w.fail[ev] = uint64(id)<<16 | uint64(v)
				s.undo(clo, id)
				break
			}
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

// holdStarts keeps the values that reads at the start of a transaction see.
func (s *Serial) holdStarts(lo, hi uint32) {
	w := &s.w
	for id := lo; id < hi; id++ {
		if a := &w.acc[id]; a.Kind&kindStart != 0 {
			w.app.kinds[a.Kind&kindIndex].load.hold(w, id)
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
