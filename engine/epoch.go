package engine

// epoch chooses how many events share a commit, when the user does not say: a batch is
// logged as one, with one sync of the disk. While the run has to wait for the disk it tries
// twice as many, and keeps to that if an event takes less time then; while there is nothing
// to wait for it goes back to half as many, for the sake of latency. What was no use is tried
// again later and later.
//
// Only batches that are full tell anything: when less arrives than could be done, a batch is
// what has arrived, however many that is.
type epoch struct {
	size    int
	most    int
	batches int // full ones of this size
	events  int64
	nanos   int64
	waited  int64

	trial  bool
	before float64 // ns per event under half the size, if this is a trial
	hold   spells  // before a larger size is tried
	calm   spells  // without waiting, before a smaller one is
}

// spells are how many there have to be until something is done, and how many the next time.
type spells struct{ left, next int }

// over counts one, and reports whether there were enough.
func (s *spells) over() bool {
	if s.left > 0 {
		s.left--
	}
	return s.left == 0
}

// again makes it take so many from now on, and the next time twice as many.
func (s *spells) again() {
	const most = 512
	s.left, s.next = s.next, min(2*s.next, most)
}

const (
	epochMost = 16 * BatchDefault
	// So many full batches make a spell, without the first one, in which memory grows.
	epochSpell = 8
	// A larger size is tried when waiting is so much of the time, and has to take so much less.
	epochWait, epochGain = 0.03, 0.97
	// Looking whether the log is done takes some time, too.
	epochCalm = 0.004
)

// newEpoch returns one for a run with a memory limit, or 0 for none: events in flight must
// not take what is for rows.
func newEpoch(memory int64) *epoch {
	const perEvent = 8 << 10 // a tenth of it, about, is what an event takes
	most := epochMost
	if memory > 0 {
		most = int(max(BatchDefault, min(epochMost, memory/perEvent)))
	}
	return &epoch{size: BatchDefault, most: most, hold: spells{next: 8}, calm: spells{left: 4, next: 8}}
}

// took learns from a batch: how many events, for how long, and how long of that was spent
// waiting for the log.
func (e *epoch) took(events int, nanos, waited int64) {
	if events < e.size {
		return
	}
	if e.batches++; e.batches > 1 {
		e.events += int64(events)
		e.nanos += nanos
		e.waited += waited
	}
	if e.batches <= epochSpell {
		return
	}
	per, share := float64(e.nanos)/float64(e.events), float64(e.waited)/float64(e.nanos)
	e.batches, e.events, e.nanos, e.waited = 1, 0, 0, 0
	switch {
	case e.trial:
		if e.trial = false; per > epochGain*e.before {
			e.resize(e.size / 2)
			e.hold.again()
		}
	case share > epochWait:
		e.calm.left = max(e.calm.left, 1)
		if e.hold.over() && 2*e.size <= e.most {
			e.before, e.trial = per, true
			e.resize(2 * e.size)
		}
	case share < epochCalm && e.size > BatchDefault && e.calm.over():
		e.resize(e.size / 2)
		e.calm.again()
	}
}

func (e *epoch) resize(size int) { e.size, e.batches = size, 0 }
