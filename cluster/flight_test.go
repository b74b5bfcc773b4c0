package cluster

import "testing"

// Events that waited because nobody took them count from when they arrived, not from when they were taken.
func TestArrivalsOfEventsThatWaited(t *testing.T) {
	j := &Job{start: 1e9, last: 1e9}
	j.o.Pace = func(seconds float64) float64 { return 1000 * seconds }
	const now = 3e9 // nothing was taken for two seconds
	for taken := 0; taken < 2000; taken += 500 {
		from, to := j.last, j.arrival(float64(taken)+500, now)
		j.last = to
		j.flight.add(uint64(taken), 500, from, to)
	}
	for seq := range uint64(2000) {
		want := int64(1e9) + int64(seq+1)*1e6
		if at, _, ok := j.flight.done(seq); !ok || at < want-10_000 || at > want+10_000 {
			t.Fatalf("event %d arrived at %d, should have at %d", seq, at, want)
		}
	}
	if j.flight.len() != 0 {
		t.Errorf("%d events are left", j.flight.len())
	}
}

// Events end in any order, each once.
func TestFlight(t *testing.T) {
	var f flight
	f.affected = make([]bool, 1)
	for first := uint64(0); first < 50_000; first += 1000 {
		f.add(first, 1000, 0, 1000)
		f.touch(first + 7)
		for i := range uint64(1000) {
			seq := first + (i*7)%1000
			if _, affected, ok := f.done(seq); !ok || affected != (seq == first+7) {
				t.Fatalf("event %d: affected %v, under way %v", seq, affected, ok)
			}
			if _, _, again := f.done(seq); again {
				t.Fatalf("event %d ended twice", seq)
			}
		}
	}
	if f.len() != 0 || len(f.events) > 2*flightTrim {
		t.Errorf("%d events under way, %d kept", f.len(), len(f.events))
	}
}
