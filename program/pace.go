package program

import "math"

// Phase is a part of a [Pace]: a rate that swings like a sine.
type Phase struct {
	Seconds float64 // how long it lasts; the last one goes on
	Rate    float64 // events per second, in the middle
	Swing   float64 // how far the rate goes from there, in parts of it, 0 to 1
	Period  float64 // seconds from peak to peak; 0: it does not swing
}

// arrived returns how many events arrive in the first seconds of the phase: the integral of its rate.
func (p *Phase) arrived(seconds float64) float64 {
	n := p.Rate * seconds
	if p.Period > 0 {
		w := 2 * math.Pi / p.Period
		n += p.Rate * p.Swing * (1 - math.Cos(w*seconds)) / w
	}
	return n
}

// Pace returns how many events have arrived so many seconds after the start, one phase after the other.
func Pace(phases ...Phase) func(seconds float64) float64 {
	return func(seconds float64) (events float64) {
		for i := range phases {
			p := &phases[i]
			if last := i == len(phases)-1; last || seconds < p.Seconds {
				return events + p.arrived(seconds)
			}
			events += p.arrived(p.Seconds)
			seconds -= p.Seconds
		}
		return 0
	}
}
