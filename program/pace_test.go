package program

import (
	"math"
	"testing"
)

// A pace is the sum of its rate: it never falls, and over whole periods it is that of the middle.
func TestPace(t *testing.T) {
	rate := func(s float64) float64 {
		if s < 6 {
			return 100 * (1 + 0.5*math.Sin(2*math.Pi*s/2))
		}
		return 300 * (1 + math.Sin(2*math.Pi*(s-6)/3))
	}
	pace := Pace(Phase{Seconds: 6, Rate: 100, Swing: 0.5, Period: 2}, Phase{Rate: 300, Swing: 1, Period: 3})
	const step = 1e-4
	sum := 0.0
	for i := range int(12 / step) {
		s := float64(i) * step
		if got := pace(s); math.Abs(got-sum) > 0.2 {
			t.Fatalf("after %.4f s %.2f events, want %.2f", s, got, sum)
		}
		sum += rate(s+step/2) * step
	}
	for s, want := range map[float64]float64{0: 0, 2: 200, 6: 600, 9: 1500, 12: 2400} {
		if got := pace(s); math.Abs(got-want) > 1e-6 {
			t.Errorf("after %g s %g events, want %g", s, got, want)
		}
	}
	if got := Pace(Phase{Rate: 5})(2); got != 10 {
		t.Errorf("a steady pace has %g events after 2 s", got)
	}
}
