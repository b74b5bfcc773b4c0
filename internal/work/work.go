// Package work spends processor time on purpose: the `--complexity` of workloads.
//
// Work is a number of loop iterations, never a wait on the clock, so that it
// competes for cores as real work does. How many iterations make a nanosecond
// is measured once per process.
package work

import (
	"fmt"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/clock"
)

// Iterations is an amount of work.
type Iterations int

// Do works. The result depends on each iteration, so that none is left out.
//
//go:noinline
func Do(n Iterations) uint64 {
	x := uint64(n) | 1
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

var nanosPerIteration = sync.OnceValue(func() float64 {
	// The fastest of several runs: the others were disturbed.
	const n = 200_000
	best := int64(1 << 62)
	for range 15 {
		began := clock.NowNanos()
		_ = Do(n)
		best = min(best, clock.NowNanos()-began)
	}
	return float64(best) / n
})

// For returns the work that takes d on this machine when undisturbed.
func For(d time.Duration) (Iterations, error) {
	if d < 0 || d > time.Second {
		return 0, fmt.Errorf("%v: 0 to 1s are allowed", d)
	}
	if d == 0 {
		return 0, nil
	}
	return Iterations(float64(d) / nanosPerIteration()), nil
}
