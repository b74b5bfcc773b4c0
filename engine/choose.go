package engine

import (
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/tpg"
	"github.com/heddle-stream/heddle/txn"
)

// shapeEvery is how many batches under the graph share one whose shape is taken:
// that costs about half of what linking does.
const shapeEvery = 64

// chooser gathers what a batch was like, asks schedule.Chooser for the next one,
// and tells the listener of each change.
type chooser struct {
	schedule.Chooser
	load     schedule.Load
	shaper   tpg.Shaper
	stats    tpg.Stats
	graphs   int // batches under the graph
	chosen   string
	serially int // batches to come that are held for ones that can only run serially
	spell    Decision
	nanos    int64 // spent on it for the last batch
	moving   int64 // ns that rows took on their way to disk and back, so far
	listener func(Decision)
}

func (c *chooser) choose(events, workers, batch int, exec *txn.Executor) schedule.Strategy {
	began := clock.NowNanos()
	c.load.Events, c.load.Workers = events, workers
	if c.serially > 0 { // planning them for a graph would be for nothing
		c.serially--
		c.load.Workers = 1
	}
	choice := c.Choose(c.load)
	if c.listener != nil && choice.Strategy.String() != c.spell.Choice.Strategy.String() {
		c.end(exec)
		c.spell = Decision{Batch: batch, Choice: choice, Load: c.load, Graph: c.stats}
	}
	c.chosen = choice.Strategy.String()
	c.nanos = clock.NowNanos() - began
	return choice.Strategy
}

// took learns from a batch that was chosen for.
func (c *chooser) took(x *txn.Batch, info *BatchInfo, g *graphPath) {
	began := clock.NowNanos()
	events := float64(max(1, x.Events))
	c.load.Ops, c.load.Accesses = float64(x.Ops)/events, float64(x.Accesses)/events
	c.load.Aborted = float64(info.Aborted) / events
	if info.Strategy != "nested" { // in which units hardly ever wait
		c.load.Stalls = float64(info.Stalls) / events
	}
	if g.r.app.Limited() {
		moving := g.r.app.Traffic().Nanos
		c.load.MoveNs, c.moving = float64(moving-c.moving)/events, moving
	}
	useful := 0.0
	if info.Strategy != "serial" {
		useful = g.perOp
		if c.graphs%shapeEvery == 0 {
			c.load.Shape = c.shaper.Shape(&g.graph)
			if c.listener != nil { // for people: the choice does without
				c.stats = g.graph.Stats()
			}
		}
		c.graphs++
	}
	if info.Strategy == c.chosen {
		c.Took(c.load, info.Nanos, useful)
	} else {
		c.serially = shapeEvery
	}
	if c.listener != nil {
		s := &c.spell
		s.TookNs = (s.TookNs*float64(s.Events) + float64(info.Nanos)) / float64(max(1, s.Events+x.Events))
		s.Batches++
		s.Events += x.Events
		s.Redone += info.Redone
		s.Stalls += info.Stalls
		s.Steals += info.Steals
	}
	c.nanos += clock.NowNanos() - began
}

// end tells of the choice that ends.
func (c *chooser) end(exec *txn.Executor) {
	if c.listener != nil && c.spell.Batches > 0 {
		c.spell.Costs = exec.Costs()
		c.listener(c.spell)
		c.spell = Decision{}
	}
}
