package schedule

// Chooser picks a strategy for each batch from what batches have taken so far:
// serial when the graph does not pay, else ns-op-eager. It tries both at the
// start, keeps to the faster one, and looks at the other again now and then, the
// more rarely the clearer the difference.
//
// The zero value is ready. Not safe for concurrent use.
type Chooser struct {
	took   [2]float64 // ns per event, smoothed; 0 is unknown
	tried  [2]int
	best   int
	sinceN int // batches since the other was looked at
}

const (
	chooseSerial = iota
	chooseGraph

	// A batch of fewer events is over before a second worker has woken up.
	graphEventsMin = 256
	// Batches before a first judgement: the first of each kind grows its memory.
	trials = 3
	// The other is looked at again after so many batches, times how many times
	// slower it was.
	lookAgain = 32
	// Switching needs this advantage, so that noise does not make it flap.
	advantage = 0.95
	smoothing = 0.3
)

var choices = [2]Strategy{chooseSerial: MustParse("serial"), chooseGraph: MustParse("ns-op-eager")}

// Choose returns the strategy for a batch of the given size.
func (c *Chooser) Choose(events, workers int) Strategy {
	if workers == 1 || events < graphEventsMin {
		return choices[chooseSerial]
	}
	other := 1 - c.best
	switch {
	case c.tried[c.best] < trials:
		return choices[c.best]
	case c.tried[other] < trials:
		return choices[other]
	}
	c.sinceN++
	if ratio := c.took[other] / c.took[c.best]; float64(c.sinceN) > lookAgain*ratio*ratio {
		c.sinceN = 0
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
	case c.tried[i] <= 2: // growing memory
		c.took[i] = per
	default:
		c.took[i] += smoothing * (per - c.took[i])
	}
	if other := 1 - c.best; c.tried[other] >= trials && c.tried[c.best] >= trials && c.took[other] < advantage*c.took[c.best] {
		c.best = other
	}
}
