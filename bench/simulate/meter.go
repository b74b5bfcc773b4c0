package simulate

import (
	"runtime"
	"sync/atomic"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/txn"
)

// meter counts the calls that go through it to the true executor.
type meter struct {
	schedule.Executor
	p     *pipeline
	whole [][2]uint32 // transactions: first and behind the last access
	ops   []uint32
}

// Transaction implements [schedule.Executor].
func (m *meter) Transaction(worker int, lo, hi uint32) (txn.Verdict, uint32) {
	m.whole = append(m.whole, [2]uint32{lo, hi})
	return m.Executor.Transaction(worker, lo, hi)
}

// Operation implements [schedule.Executor].
func (m *meter) Operation(worker int, id uint32) txn.Verdict {
	m.ops = append(m.ops, id)
	return m.Executor.Operation(worker, id)
}

// counted returns the number of calls and of the operations in them, by kind.
// The batch has been executed.
func (m *meter) counted() (calls int, kinds []float64) {
	acc := m.p.x.Acc
	count := func(id uint32) {
		k := acc[id].Index()
		for len(kinds) <= k {
			kinds = append(kinds, 0)
		}
		kinds[k]++
	}
	for _, id := range m.ops {
		count(id)
	}
	for _, t := range m.whole {
		for id := t[0]; id < t[1]; id++ {
			if !acc[id].IsRead() {
				count(id)
			}
			if f := m.p.x.Fail[acc[id].Event]; f != committed && uint32(f>>16) == id {
				break
			}
		}
	}
	return len(m.ops) + len(m.whole), kinds
}

// timer measures operations one by one.
type timer struct {
	*meter
	clock float64
	ns    [][]float64 // by kind: of each operation
	names []string
}

// Transaction implements [schedule.Executor].
func (t *timer) Transaction(worker int, lo, hi uint32) (txn.Verdict, uint32) {
	t.whole = append(t.whole, [2]uint32{lo, hi})
	began := clock.NowNanos()
	first := lo // of the reads of the next operation, which are looked at with it
	for id := lo; id < hi; id++ {
		if t.p.x.Acc[id].IsRead() {
			continue
		}
		v, at := t.Executor.Transaction(worker, first, id+1)
		now := clock.NowNanos()
		t.took(id, now-began)
		if v != txn.OK {
			return v, at
		}
		began, first = now, id+1
	}
	return txn.OK, 0
}

// Operation implements [schedule.Executor].
func (t *timer) Operation(worker int, id uint32) txn.Verdict {
	t.ops = append(t.ops, id)
	began := clock.NowNanos()
	v := t.Executor.Operation(worker, id)
	t.took(id, clock.NowNanos()-began)
	return v
}

func (t *timer) took(id uint32, nanos int64) {
	k := t.p.x.Acc[id].Index()
	for len(t.ns) <= k {
		t.ns, t.names = append(t.ns, nil), append(t.names, "")
	}
	if t.names[k] == "" {
		t.names[k] = t.p.x.OperationName(id)
	}
	t.ns[k] = append(t.ns[k], max(0, float64(nanos)-t.clock))
}

// clockCost returns what reading the clock takes.
func clockCost() float64 {
	const reads = 2000
	best := int64(1 << 62)
	for range 5 {
		began := clock.NowNanos()
		for range reads {
			_ = clock.NowNanos()
		}
		best = min(best, clock.NowNanos()-began)
	}
	return float64(best) / reads
}

// wakeCost returns how long it takes until a goroutine on another processor has
// seen a change: half of a round trip, the shortest of several.
func wakeCost() float64 {
	const trips, unknown = 200, 500
	if runtime.GOMAXPROCS(0) < 2 {
		return unknown
	}
	var turn atomic.Int64
	done := make(chan struct{})
	await := func(n int64) {
		for turn.Load() != n {
			runtime.Gosched()
		}
	}
	const rounds = 25
	go func() {
		defer close(done)
		for i := range int64(trips * rounds) {
			await(2*i + 1)
			turn.Add(1)
		}
	}()
	best := int64(1 << 62)
	for r := range int64(rounds) {
		began := clock.NowNanos()
		for i := range int64(trips) {
			turn.Add(1)
			await(2*(r*trips+i) + 2)
		}
		best = min(best, clock.NowNanos()-began)
	}
	<-done
	return float64(best) / (2 * trips)
}
