package engine

import "testing"

// disk is what batches take: work per event and a sync, whichever is longer, and for large
// batches more per event.
type disk struct{ work, sync, large float64 }

// batch returns the time of a batch and how much of it is waiting.
func (d disk) batch(events int) (nanos, waited int64) {
	work := d.work * float64(events) * (1 + d.large*float64(events)/epochMost)
	return int64(max(work, d.sync)), int64(max(0, d.sync-work))
}

func (d disk) run(e *epoch, batches int) (sizes int) {
	for range batches {
		nanos, waited := d.batch(e.size)
		e.took(e.size, nanos, waited)
		sizes += e.size
	}
	return sizes / batches
}

// The size follows the disk: large while it is waited for, small when not, and small when
// large batches are slower by themselves.
func TestEpochFollowsTheDisk(t *testing.T) {
	e := newEpoch(0)
	fast, slow, costly := disk{1000, 1e6, 0}, disk{100, 2e6, 0}, disk{1000, 16e6, 40}
	if n := fast.run(e, 1000); n != BatchDefault {
		t.Errorf("%d events in a batch on average with nothing to wait for", n)
	}
	if slow.run(e, 200); e.size < 16384 || e.size > 32768 {
		t.Errorf("%d events in a batch when a sync takes as long as 20,000 events", e.size)
	}
	if n := slow.run(e, 3000); n < 15_000 {
		t.Errorf("%d events in a batch on average while that lasts", n)
	}
	if fast.run(e, 12_000); e.size != BatchDefault {
		t.Errorf("%d events in a batch long after there was something to wait for", e.size)
	}
	e = newEpoch(0)
	if n := costly.run(e, 3000); n > BatchDefault*3/2 {
		t.Errorf("%d events in a batch on average though larger ones are slower", n)
	}
}

// Commits are fitted to the disk where there is a log, nobody says how large batches are, and
// events do not arrive at a pace of their own.
func TestWhenCommitsAreFitted(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want bool
	}{
		{Options{State: "state"}, true},
		{Options{State: "state", Durability: NoLog}, false},
		{Options{State: "state", Batch: BatchDefault}, false},
		{Options{State: "state", Rate: 1000}, false},
		{Options{State: "state", Linger: 1}, false},
		{Options{}, false},
	} {
		if c.o.setDefaults(); c.o.epochs != c.want || c.o.Batch != BatchDefault {
			t.Errorf("%+v: %v", c.o, c.o.epochs)
		}
	}
}

// With little memory, batches stay small.
func TestEpochWithLittleMemory(t *testing.T) {
	e := newEpoch(64 << 20)
	if (disk{100, 2e6, 0}).run(e, 1000); e.size != 8192 {
		t.Errorf("%d events in a batch with 64 MiB", e.size)
	}
}

// A batch that is not full says nothing.
func TestEpochOfFewEvents(t *testing.T) {
	e := newEpoch(0)
	for range 1000 {
		e.took(e.size-1, 1000, 900)
	}
	if e.size != BatchDefault {
		t.Errorf("%d events in a batch", e.size)
	}
}
