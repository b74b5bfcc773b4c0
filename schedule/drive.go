package schedule

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/heddle-stream/heddle/internal/clock"
)

// spinSteps is how many fruitless steps a worker takes before it sleeps: a few
// microseconds, which is what waking it costs.
const spinSteps = 64

// Drive loops the steps of a worker until the run has finished. Each worker
// needs a goroutine of its own.
func (r *Run) Drive(worker int) {
	w := r.workers[worker]
	fruitless := 0
	var began int64
	for {
		seq := r.idle.look()
		switch w.Step() {
		case Finished:
			w.endWait(began)
			return
		case Ran:
			w.endWait(began)
			began, fruitless = 0, 0
			continue
		case Idle:
		}
		if r.Meanwhile != nil && r.Meanwhile(worker) {
			fruitless = 0
			continue
		}
		if began == 0 {
			began = clock.NowNanos()
		}
		// A held unit is put aside after a few steps more: nobody would wake us for it.
		if fruitless++; fruitless < spinSteps || w.held != noUnit {
			runtime.Gosched()
			continue
		}
		// Announce the sleep, then look once more: whoever made work after that
		// look sees the announcement.
		r.idle.sleepers.Add(1)
		if status := w.Step(); status == Idle {
			r.idle.sleep(seq)
		}
		r.idle.sleepers.Add(-1)
	}
}

func (w *Worker) endWait(began int64) {
	if began != 0 {
		w.waitNs += clock.NowNanos() - began
	}
}

// parking is where workers without work sleep. Each wake changes the sequence
// number, so that a sleeper which looked before it does not fall asleep after it.
type parking struct {
	sleepers atomic.Int32
	seq      atomic.Uint32
	mu       sync.Mutex
	cond     *sync.Cond
}

func (p *parking) init() { p.cond = sync.NewCond(&p.mu) }

func (p *parking) look() uint32 { return p.seq.Load() }

func (p *parking) wake() {
	if p.sleepers.Load() == 0 {
		return
	}
	p.mu.Lock()
	p.seq.Add(1)
	p.mu.Unlock()
	p.cond.Broadcast()
}

func (p *parking) sleep(seq uint32) {
	p.mu.Lock()
	for p.seq.Load() == seq {
		p.cond.Wait()
	}
	p.mu.Unlock()
}
