package simulate

import (
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/internal/work"
)

// probe tells how many processors are to be had at the moment: others may use
// the machine, too.
type probe struct {
	workers int
	n       work.Iterations
	alone   float64 // ns of one loop, the shortest time
}

// probeTime is long against waking a goroutine.
const probeTime = 2 * time.Millisecond

func newProbe(workers int) (*probe, error) {
	n, err := work.For(probeTime)
	if err != nil {
		return nil, err
	}
	p := &probe{workers: workers, n: n}
	for range 5 {
		w := newWatch()
		_ = work.Do(n)
		if t := w.lap(); p.alone == 0 || t < p.alone {
			p.alone = t
		}
	}
	return p, nil
}

// cores returns how many processors are to be had. It looks twice: after a batch
// the engine's workers keep theirs for a moment, to see whether another one comes.
func (p *probe) cores() float64 { return max(p.look(), p.look()) }

// look runs as many bare loops as there are workers, and returns how many of
// them went on at a time.
func (p *probe) look() float64 {
	var wg sync.WaitGroup
	began := clock.NowNanos()
	for range p.workers - 1 {
		wg.Go(func() { _ = work.Do(p.n) })
	}
	_ = work.Do(p.n)
	wg.Wait()
	return float64(p.workers) * p.alone / float64(max(1, clock.NowNanos()-began))
}
