package schedule

// Chooser picks a strategy for each batch from what batches have taken so far:
// serial when the graph does not pay, else ns-op-eager. What one choice costs
// per event foretells the other well enough to leave out a trial when there is
// nothing to win; after that both are measured, and the one not in use is looked
// at again now and then, the more rarely the clearer the difference.
//
// The zero value is ready. Not safe for concurrent use.
type Chooser struct {
	took  [2]float64 // ns per event, smoothed; foretold while not tried
	tried [2]int
	best  int
	since int // batches since the other was looked at
}

const (
	chooseSerial = iota
	chooseGraph

	// A batch of fewer events is over before a second worker has woken up.
	graphEventsMin = 256
	// What planning, linking and publishing take per event, about, on the machine
	// where this was written: only the first guess depends on it.
	graphOverheadNs = 250
	// A choice is tried while it seems at most so many times slower.
	worthTrying = 1.6
	// The first batch of a kind grows its memory: the second one counts.
	trials = 2
	// The other is looked at again after so many batches, times the square of how
	// many times slower it was.
	lookAgain = 32
	// Switching needs this advantage, so that noise does not make it flap.
	advantage = 0.95
	smoothing = 0.3
)

var choices = [2]Strategy{chooseSerial: MustParse("serial"), chooseGraph: MustParse("ns-op-eager")}

// Choose returns the strategy for a batch of the given size.
func (c *Chooser) Choose(events, workers int) Strategy {
	if workers == 1 || events < graphEventsMin || c.tried[chooseSerial] == 0 {
		return choices[chooseSerial]
	}
	if c.tried[chooseGraph] == 0 {
		c.took[chooseGraph] = c.took[chooseSerial]/float64(workers) + graphOverheadNs
		c.pick()
	}
	other := 1 - c.best
	ratio := c.took[other] / c.took[c.best]
	if c.tried[other] < trials && ratio < worthTrying {
		return choices[other]
	}
	if c.since++; float64(c.since) > lookAgain*ratio*ratio {
		c.since = 0
		return choices[other]
	}
	return choices[c.best]
}

// Took tells how long a batch took under a strategy that was chosen.
func (c *Chooser) Took(s Strategy, events int, nanos int64) {
	if events < graphEventsMin {
		return
	}
	i := chooseGraph
	if s.Kind() == Serial {
		i = chooseSerial
	}
	per := float64(nanos) / float64(events)
	c.tried[i]++
	switch {
	case c.tried[i] == 1 && c.took[i] > 0:
		// Its memory grew meanwhile: what was foretold is nearer the truth.
		c.took[i] = min(c.took[i], per)
	case c.tried[i] <= trials:
		c.took[i] = per
	default:
		c.took[i] += smoothing * (per - c.took[i])
	}
	if c.tried[chooseGraph] > 0 {
		c.pick()
	}
}

// pick makes the faster choice the best one, if it is faster by enough.
func (c *Chooser) pick() {
	if other := 1 - c.best; c.took[other] < advantage*c.took[c.best] {
		c.best = other
	}
}
