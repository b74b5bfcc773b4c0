package engine

import "time"

// target chooses the size of batches so that the latency of nearly all events
// stays below a goal: large enough to be worth the effort, small enough to be done
// in time. It starts from what an event takes and backs off when batches come late.
type target struct {
	goal   int64   // ns
	open   bool    // events arrive by themselves: they also wait for the batch before
	factor float64 // of the size that the costs alone would allow
	perNs  float64 // ns per event, smoothed
	behind bool    // more arrives than is done: only throughput helps
}

const (
	// Closed loop: an event's latency is the time of its batch. Open loop: it waits
	// for half of the batch before, or all of it, and then for its own.
	closedShare, openShare = 0.8, 0.35

	targetMin   = 64  // events: below, the cost of a batch as such counts most
	targetFirst = 256 // before anything is known
	backOff     = 0.8
	regain      = 1.02
)

func newTarget(goal time.Duration, open bool) *target {
	return &target{goal: int64(goal), open: open, factor: 1}
}

// size returns the largest number of events for the next batch.
func (t *target) size(most int) int {
	if t.perNs == 0 {
		return min(targetFirst, most)
	}
	if t.behind {
		return most
	}
	share := closedShare
	if t.open {
		share = openShare
	}
	n := int(t.factor * share * float64(t.goal) / t.perNs)
	return max(min(targetMin, most), min(n, most))
}

// took learns from a batch: how many events, for how long, and the longest latency
// of any of them.
func (t *target) took(events int, nanos, latency int64) {
	if events == 0 {
		return
	}
	per := float64(nanos) / float64(events)
	if t.perNs == 0 || per > t.perNs {
		t.perNs = per // at once: what is too slow must not wait for an average
	} else {
		t.perNs += 0.1 * (per - t.perNs)
	}
	if t.behind = t.open && latency-nanos > t.goal; t.behind {
		return // smaller batches would only make the queue longer
	}
	if latency > t.goal {
		t.factor = max(0.05, t.factor*backOff)
	} else {
		t.factor = min(1, t.factor*regain)
	}
}
