package engine

import (
	"runtime"
	"sync/atomic"

	"github.com/panjf2000/ants/v2"

	"github.com/heddle-stream/heddle/internal/clock"
)

// team is the workers of a run. Worker 0 is the goroutine that calls do, the
// others live on an ants pool for the length of the run.
//
// Between jobs a worker polls for the next one and only then goes to sleep: a
// batch is a handful of jobs of some ten microseconds each, and waking a
// goroutine on another processor takes longer than such a job. Worker 0 waits
// for those who take part and not for those who come late, so that a processor
// that is busy with something else holds nobody up.
type team struct {
	active  atomic.Int32 // workers that take part
	pool    *ants.Pool
	mates   []mate
	job     func(worker int)
	state   gauge         // number of the job | closed | workers that take part, without 0
	next    gauge         // tasks claimed, see share
	waiting atomic.Uint64 // the job for whose end worker 0 sleeps, or 0
	done    chan struct{}
}

// mate is a worker other than 0.
type mate struct {
	asleep atomic.Bool
	wake   chan struct{}
	_      [104]byte
}

// gauge is a number with a cache line of its own.
type gauge struct {
	_ [64]byte
	atomic.Uint64
	_ [64]byte
}

const (
	jobShift = 32
	closed   = 1 << 31 // nobody may join any more
	inside   = closed - 1

	// pollNs is how long a worker looks for the next job: as long as it takes to
	// fetch the next batch from a fast source.
	pollNs = 200_000
	// waitNs is how long worker 0 looks for the others to finish.
	waitNs = 50_000
)

func newTeam(n int) (*team, error) {
	t := &team{}
	t.active.Store(int32(n))
	if n == 1 {
		return t, nil
	}
	pool, err := ants.NewPool(n-1, ants.WithDisablePurge(true))
	if err != nil {
		return nil, err
	}
	t.pool, t.mates, t.done = pool, make([]mate, n-1), make(chan struct{}, 1)
	for i := range t.mates {
		t.mates[i].wake = make(chan struct{}, 1)
		if err := pool.Submit(func() { t.work(i + 1) }); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// work runs job after job until one is nil.
func (t *team) work(worker int) {
	for seen := uint64(0); ; {
		seen = t.await(worker, seen)
		if !t.join(seen) {
			continue
		}
		job := t.job
		if job == nil {
			return
		}
		job(worker)
		// The last one out wakes worker 0, unless that has gone on already.
		if t.state.Add(^uint64(0)) == seen<<jobShift|closed && t.waiting.CompareAndSwap(seen, 0) {
			t.done <- struct{}{}
		}
	}
}

// resize makes the first n workers those who take part. Between jobs.
func (t *team) resize(n int) { t.active.Store(int32(n)) }

// await returns the number of the next job that a worker is to take part in, which is not the one seen before.
func (t *team) await(worker int, seen uint64) uint64 {
	m := &t.mates[worker-1]
	news := func() bool { return t.state.Load()>>jobShift != seen && worker < int(t.active.Load()) }
	for !poll(pollNs, news) {
		m.asleep.Store(true)
		// Whoever starts a job after that wakes us; before that, nobody does.
		if !news() || !m.asleep.CompareAndSwap(true, false) {
			<-m.wake
		}
	}
	return t.state.Load() >> jobShift
}

// join makes the caller take part in a job, if it is still to be had.
func (t *team) join(job uint64) bool {
	for {
		s := t.state.Load()
		if s>>jobShift != job || s&closed != 0 {
			return false
		}
		if t.state.CompareAndSwap(s, s+1) {
			return true
		}
	}
}

// poll looks for something until it is there or the time is over.
func poll(nanos int64, there func() bool) bool {
	for end := int64(0); ; {
		for range 32 {
			if there() {
				return true
			}
		}
		switch now := clock.NowNanos(); {
		case end == 0:
			end = now + nanos
		case now > end:
			return false
		}
		runtime.Gosched()
	}
}

// start offers the job to every other worker.
func (t *team) start(job func(worker int)) (number uint64) {
	t.job = job
	number = t.state.Load()>>jobShift + 1
	t.state.Store(number << jobShift)
	woken := false
	for i := range t.mates[:min(len(t.mates), int(t.active.Load())-1)] {
		if m := &t.mates[i]; m.asleep.CompareAndSwap(true, false) {
			m.wake <- struct{}{}
			woken = true
		}
	}
	if woken {
		// A goroutine that another one wakes is left to that one's processor for
		// some fifty microseconds. So it gets this processor, and we the next.
		runtime.Gosched()
	}
	return number
}

// do runs the job on worker 0 and on every worker that comes in time, and
// returns when these are done. The job must get done by any one of them.
func (t *team) do(job func(worker int)) {
	if t.active.Load() == 1 {
		job(0)
		return
	}
	number := t.start(job)
	job(0)
	t.state.Or(closed)
	left := func() bool { return t.state.Load()&inside == 0 }
	if poll(waitNs, left) {
		return
	}
	t.waiting.Store(number)
	if !left() || !t.waiting.CompareAndSwap(number, 0) {
		<-t.done
	}
}

// share runs task 0..tasks-1, each once, on whichever worker is free.
func (t *team) share(tasks int, task func(worker, i int)) {
	if t.active.Load() == 1 || tasks == 1 {
		for i := range tasks {
			task(0, i)
		}
		return
	}
	t.next.Store(0)
	t.do(func(worker int) {
		for {
			i := int(t.next.Add(1) - 1)
			if i >= tasks {
				return
			}
			task(worker, i)
		}
	})
}

// failing shares tasks that may fail and returns an error of one that did.
func (t *team) failing(tasks int, task func(worker, i int) error) error {
	var failed atomic.Pointer[error]
	t.share(tasks, func(worker, i int) {
		if err := task(worker, i); err != nil {
			failed.Store(&err)
		}
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (t *team) close() {
	t.resize(len(t.mates) + 1)
	t.start(nil)
	if t.pool != nil {
		t.pool.Release()
	}
}
