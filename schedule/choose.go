package schedule

import (
	"math"
	"slices"

	"github.com/heddle-stream/heddle/tpg"
)

// Load is what is known of a batch before it runs: what the batches before it
// were like.
type Load struct {
	Events   int
	Accesses float64   // per event, operations and reads
	Ops      float64   // per event
	Aborted  float64   // share of the transactions
	Stalls   float64   // units that had to wait for another one, per event
	MoveNs   float64   // of moving rows to disk and back, per event, summed over the workers
	Shape    tpg.Shape // of a batch looked at lately; zero before there was one
	Workers  int
}

// Choice is what a chooser decided for a batch and why.
type Choice struct {
	Strategy  Strategy
	Predicted float64 // ns per event
	Runner    Strategy
	Other     float64 // ns per event predicted for Runner, the next best
	WorkNs    float64 // per operation, in user functions, as far as known
	Trial     bool    // to learn, not because it is thought to be the fastest
}

// Chooser picks a strategy for each batch. A model foretells what each strategy
// takes, from what the batches are like; what a strategy then takes corrects the
// model for it, older measurements counting less and less. So what was learned
// under one load carries over to the next.
//
// What has not been measured for long is tried again when it may well be faster,
// rarely and within a budget; what is clearly slower is left alone.
//
// The zero value is ready. Not safe for concurrent use.
type Chooser struct {
	arms     []arm
	foretold []float64 // ns per event, by arm, for the batch in hand
	current  int
	work     float64 // ns per operation in user functions; below 0 until known
	sampled  bool    // work was measured at least once, not guessed
	batches  int
	total    float64 // ns spent
	spent    float64 // ns lost on trials
	again    int     // arm whose trial goes on, plus 1
	off      int     // batches in a row that took other than predicted
	choice   Choice
}

// arm is a strategy with what is known of it.
type arm struct {
	s     Strategy
	own   float64 // measured over model of what the engine takes, smoothed; 0 until known
	work  float64 // the same of what user functions take
	tried int
	last  int // batch at which it was tried last
}

const (
	// A batch of fewer events is over before a second worker has woken up.
	graphEventsMin = 256
	// Switching needs this advantage, so that noise does not make it flap.
	advantage = 0.95
	smoothing = 0.3
	// serial and ns-op-eager, which differ most, are tried while they seem at most so
	// many times slower; another one when the model holds it for that much faster.
	mayWin, mayWinFirst, mayWinKin, clearWin = 1.6, 1.3, 0.9, 0.75
	// Nothing is tried when the work alone takes so much of the time.
	nearBound = 0.93
	// The first batch of a kind grows its memory: the second one counts.
	trials = 2
	// After so many batches under others the next one counts as a first one.
	coldAfter = 3
	// Before an arm was tried that often, a batch that took less than thought is
	// believed, and one that took more than doubt times as long is not.
	young, doubt = 6, 2
	// What was tried is looked at again after so many batches, times the square of
	// how many times slower it was. What ran in nothing but the first batches of a run,
	// which are slow, is looked at soon if it was less than doubt times slower
	// and one core could do the work in the time that all take.
	lookAgain, lookSoon = 64, 6
	// Trials may cost this share of all time, and a little at the start.
	budget, allowance = 0.02, 3.0
	// Looking for components pays when so many units per event meet on a row.
	componentStalls = 0.05
	// A batch that takes so many times more or less than predicted is a sign that
	// the load has changed; one alone corrects the prediction by no more than that.
	surprise = 1.35
)

const (
	armSerial = iota
	armGraph  // ns-op-eager, which the others are judged by until they are tried
)

func (c *Chooser) init() {
	c.work = -1
	c.arms = []arm{armSerial: {s: MustParse("serial")}, armGraph: {s: MustParse("ns-op-eager")}}
	for _, s := range strategies {
		if s.kind == Graph && s.name != "ns-op-eager" {
			c.arms = append(c.arms, arm{s: s})
		}
	}
	c.foretold = make([]float64, len(c.arms))
}

// Choose returns what to run a batch under.
func (c *Chooser) Choose(l Load) Choice {
	if c.arms == nil {
		c.init()
	}
	for i := range c.arms {
		c.foretold[i] = c.predict(i, &l)
	}
	at := c.pick(&l)
	c.choice = Choice{Strategy: c.arms[at].s, Predicted: c.foretold[at], WorkNs: max(0, c.work), Trial: at != c.current}
	if other := c.fastest(func(i int) bool { return i != at }); other >= 0 {
		c.choice.Runner, c.choice.Other = c.arms[other].s, c.foretold[other]
	}
	return c.choice
}

func (c *Chooser) pick(l *Load) int {
	if l.Workers == 1 || l.Events < graphEventsMin || c.batches == 0 {
		return armSerial
	}
	if again := c.again - 1; again >= 0 {
		c.again = 0
		return again
	}
	best := c.fastest(func(i int) bool { return c.arms[i].tried >= trials || i == c.current })
	if c.foretold[best] < advantage*c.foretold[c.current] {
		c.current = best
	}
	now := c.foretold[c.current]
	if c.spent > budget*c.total && c.spent > allowance*now*float64(l.Events) {
		return c.current
	}
	trial := c.fastest(func(i int) bool { return i != c.current && c.worthTrying(l, &c.arms[i], c.foretold[i]/now) })
	if trial >= 0 {
		return trial
	}
	return c.current
}

// fastest returns the strategy predicted to be the fastest of some, or -1.
func (c *Chooser) fastest(of func(i int) bool) int {
	best := -1
	for i := range c.arms {
		if of(i) && (best < 0 || c.foretold[i] < c.foretold[best]) {
			best = i
		}
	}
	return best
}

// worthTrying reports whether to run under a strategy that seems so many times
// slower than the one in use, to learn whether it is.
func (c *Chooser) worthTrying(l *Load, a *arm, ratio float64) bool {
	age := float64(c.batches - a.last)
	rival := a == &c.arms[armSerial] || a == &c.arms[armGraph]
	switch {
	case a.s.nested && l.Stalls < componentStalls || c.atBound(l):
		return false
	case !rival:
		return a.tried < trials && ratio < mayWinKin && (a.tried > 0 || c.arms[armGraph].tried >= trials)
	case a.tried < trials:
		// The first batch of all ran on cold caches: it takes a second one to tell,
		// unless the difference is large.
		return ratio < clearWin || ratio < mayWinFirst && c.arms[armSerial].tried >= trials
	case c.off >= 1:
		return ratio < mayWin && age > coldAfter
	case a.last < trials && ratio < doubt && l.Ops*max(0, c.work) < c.foretold[c.current]:
		return age > lookSoon
	}
	return age > lookAgain*ratio*ratio
}

// atBound reports whether the strategy in use takes hardly more than the work
// itself, shared by the workers: then none can be faster.
func (c *Chooser) atBound(l *Load) bool {
	return c.sampled && l.Ops*c.work/float64(l.Workers) > nearBound*c.foretold[c.current]
}

// predict returns the ns per event that a strategy will take.
func (c *Chooser) predict(i int, l *Load) float64 { return c.foretell(i, l).total() }

// forecast is what a strategy takes by the model, in ns per event, and how far that is
// off for the engine's own part and for the work in user functions. Apart, because a
// strategy that costs twice what was thought does not double the work.
// What moving rows takes is no matter of the strategy, except that more workers share it.
type forecast struct{ own, work, ownOff, workOff, moves float64 }

func (f forecast) total() float64 { return f.own*f.ownOff + f.work*f.workOff + f.moves }

// mainlyOwn reports whether most of it is the engine's part.
func (f forecast) mainlyOwn() bool { return f.own*f.ownOff >= f.work*f.workOff }

// off returns how far off the larger part must be, if the whole takes so long.
func (f forecast) off(ns float64) float64 {
	const least = 0.05
	if f.mainlyOwn() {
		return max(least, (ns-f.moves-f.work*f.workOff)/f.own)
	}
	return max(least, (ns-f.moves-f.own*f.ownOff)/f.work)
}

func (c *Chooser) foretell(i int, l *Load) forecast {
	a, like := &c.arms[i], &c.arms[i]
	if i != armSerial && a.own == 0 {
		like = &c.arms[armGraph]
	}
	known := func(off float64) float64 {
		if off == 0 {
			return 1
		}
		return off
	}
	own := model(&a.s, l, 0)
	return forecast{own, model(&a.s, l, max(0, c.work)) - own, known(like.own), known(like.work), a.s.moves(l)}
}

// moves returns what moving rows takes, per event.
func (s *Strategy) moves(l *Load) float64 {
	if s.kind == Serial {
		return l.MoveNs
	}
	return l.MoveNs / float64(max(1, l.Workers))
}

// correct notes how far off the larger part of a forecast is.
func (a *arm) correct(f forecast, off float64) {
	a.own, a.work = f.ownOff, f.workOff
	if f.mainlyOwn() {
		a.own = off
	} else {
		a.work = off
	}
}

// Took tells how long the batch that was chosen for took. useful is the sampled
// time of an operation in it in ns, the engine's own share included, or 0.
func (c *Chooser) Took(l Load, nanos int64, useful float64) {
	i := slices.IndexFunc(c.arms, func(a arm) bool { return a.s.name == c.choice.Strategy.name })
	if l.Events < graphEventsMin && c.batches > 0 || l.Events == 0 || i < 0 {
		return
	}
	per := float64(nanos) / float64(l.Events)
	a := &c.arms[i]
	// Memory grows and caches are cold in the first batch of a strategy, or the first
	// one after others.
	cold := a.tried == 0 || c.batches-a.last > coldAfter
	if a.s.kind == Graph && cold {
		useful = 0
	}
	c.learnWork(i, &l, per, useful)
	f := c.foretell(i, &l)
	predicted, off := f.total(), f.off(per)
	held := f.workOff // for how far off
	if f.mainlyOwn() {
		held = f.ownOff
	}
	switch {
	case cold: // what was foretold is nearer the truth, unless it took less
		off = min(off, held)
		if i != c.current && a.tried > 0 && per < mayWin*c.predict(c.current, &l) {
			c.again = i + 1
		}
	case a.tried < trials:
		off = min(off, doubt*held)
	case a.tried < young && off < held: // what disturbs a batch makes it longer, never shorter
	default:
		// One batch that something else disturbed must not decide.
		if off > surprise*held && c.off == 0 {
			off = surprise * held
		}
		off = math.Exp((1-smoothing)*math.Log(held) + smoothing*math.Log(off))
	}
	a.correct(f, off)
	a.tried++
	a.last = c.batches
	c.batches++
	c.total += float64(nanos)
	if now := c.predict(c.current, &l); i != c.current && a.tried > trials {
		c.spent += max(0, per-now) * float64(l.Events)
	}
	if i == c.current {
		if c.off++; per < surprise*predicted && per*surprise > predicted {
			c.off = 0
		}
	}
}

// learnWork learns what an operation costs. A graph run samples it. A serial one
// does not: there only a change is taken for one of the work.
func (c *Chooser) learnWork(i int, l *Load, per, useful float64) {
	const (
		ownNs   = 40  // of the engine, around a function that does nothing
		guessNs = 120 // how far off a guess from serial batches can be
	)
	ops := max(l.Ops, 0.01)
	if useful > 0 {
		work := max(0, useful-ownNs)
		switch apart := math.Abs(work - c.work); {
		case apart > c.work/2 && (c.sampled && apart > ownNs || apart > guessNs):
			c.work, c.sampled = work, true // the load is another one
		case !c.sampled:
			c.reckon(l, work)
		default: // as far as one can tell the same
			c.reckon(l, c.work+smoothing*(work-c.work))
		}
		return
	}
	if i != armSerial {
		return
	}
	if c.work < 0 {
		c.work = max(0, per-l.MoveNs-1.5*model(&c.arms[i].s, l, 0)) / ops
		return
	}
	if predicted := c.predict(i, l); c.arms[i].tried > 0 && (per > surprise*predicted || per*surprise < predicted) {
		c.work = max(0, c.work+(per-predicted)/ops)
	}
}

// reckon replaces what the work was held for by a better figure. What is foretold
// for this load stays the same: it was measured, and only split up wrongly.
func (c *Chooser) reckon(l *Load, work float64) {
	foretold := make([]float64, len(c.arms))
	for i := range c.arms {
		foretold[i] = c.predict(i, l)
	}
	c.work, c.sampled = work, true
	for i := range c.arms {
		if c.arms[i].tried >= trials { // else it was hardly measured yet
			f := c.foretell(i, l)
			c.arms[i].correct(f, f.off(foretold[i]))
		}
	}
}
