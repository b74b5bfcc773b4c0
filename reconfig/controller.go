package reconfig

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/internal/rng"
)

// Sample is what a controller sees of a running job, about every second.
type Sample struct {
	Elapsed time.Duration // since the start of the job
	Nodes   []Node
	Owners  *Owners
	Loads   []Load // by group
	// Events came to an end per second since the last sample, and 99 in 100 of them within P99.
	Events float64
	P99    time.Duration
	// Busy tells that a request is under way or waits.
	Busy bool
}

// Imbalance returns the load of the busiest node over the mean of all, 1 if nobody has any.
func (s *Sample) Imbalance() float64 {
	has, total := map[Node]float64{}, 0.0
	for g, l := range s.Loads {
		has[s.Owners.Of(Group(g))] += l.Writes
		total += l.Writes
	}
	most := 0.0
	for _, w := range has {
		most = max(most, w)
	}
	if total == 0 {
		return 1
	}
	return most * float64(len(s.Nodes)) / total
}

// Controller changes a job by what it sees. Next is called by the job's goroutine for each sample, and returns what
// is to change, or nil. It has to be quick: the job waits.
type Controller interface {
	Next(s Sample) *Request
}

// LoadBalancer moves groups when the busiest node has had too much to do for a while.
type LoadBalancer struct {
	// Slack is how much more than the mean is not too much. Default: 0.25
	Slack float64
	// Patience is for how many samples in a row. Default: 3
	Patience int

	seen int
}

// Next implements [Controller].
func (b *LoadBalancer) Next(s Sample) *Request {
	if s.Busy || s.Imbalance() <= 1+cmp.Or(b.Slack, 0.25) {
		b.seen = 0
		return nil
	}
	if b.seen++; b.seen < cmp.Or(b.Patience, 3) {
		return nil
	}
	b.seen = 0
	return &Request{Rebalance: true}
}

// Autoscaler keeps 99 in 100 latencies below a target with as few nodes as that takes. One node is added after
// they were above it for a while; one goes after they were far below it for longer. In between nothing
// happens, so that it does not go to and fro; and a node that went and had to come back stays longer the next time.
type Autoscaler struct {
	Target time.Duration
	// Min and Max bound the nodes. Defaults: 1 and 4
	Min, Max int
	// Low is the part of the target below which a node may be spared. Default: 0.25
	Low float64
	// Patience is for how many samples in a row latency is above the target before a node is added. Default: 2
	Patience int
	// Calm is for how many it is below Low before one goes. Default: 15
	Calm int

	above, below int
	calm         int // Calm, or more after it was too short
	spared       bool
}

// Next implements [Controller].
func (a *Autoscaler) Next(s Sample) *Request {
	if a.calm == 0 {
		a.calm = cmp.Or(a.Calm, 15)
	}
	nodes := len(s.Nodes)
	switch {
	case s.Busy:
		a.above, a.below = 0, 0 // what is seen now is of the change
	case s.P99 > a.Target:
		a.above, a.below = a.above+1, 0
	case float64(s.P99) < cmp.Or(a.Low, 0.25)*float64(a.Target):
		a.above, a.below = 0, a.below+1
	default:
		a.above, a.below = 0, 0
	}
	switch {
	case a.above >= cmp.Or(a.Patience, 2) && nodes < cmp.Or(a.Max, 4):
		if a.spared {
			a.calm, a.spared = 2*a.calm, false
		}
		a.above = 0
		return &Request{Nodes: nodes + 1}
	case a.below >= a.calm && nodes > cmp.Or(a.Min, 1):
		a.below, a.spared = 0, true
		return &Request{Nodes: nodes - 1}
	}
	return nil
}

// Periodic moves some groups, drawn at random, to random nodes again and again: to see what that costs.
type Periodic struct {
	// Every is the time between two requests. Default: 10 s
	Every time.Duration
	// Groups is how many move; 0 makes requests that change nothing.
	Groups    int
	Migration Migration
	Seed      uint64

	done int
}

// Next implements [Controller].
func (p *Periodic) Next(s Sample) *Request {
	if s.Busy || s.Elapsed < time.Duration(p.done+1)*cmp.Or(p.Every, 10*time.Second) {
		return nil
	}
	r := &Request{Name: fmt.Sprintf("period %d", p.done+1), Migration: p.Migration}
	draw := rng.New(p.Seed, uint64(p.done))
	p.done++
	if len(s.Nodes) < 2 {
		return r
	}
	all := make([]Group, s.Owners.Groups())
	for g := range all {
		all[g] = Group(g)
	}
	draw.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, g := range all[:min(p.Groups, len(all))] {
		from := s.Owners.Of(g)
		at := slices.Index(s.Nodes, from)
		r.Moves = append(r.Moves, Move{g, from, s.Nodes[(at+1+draw.IntN(len(s.Nodes)-1))%len(s.Nodes)]})
	}
	return r
}

// Script makes requests at given times since the start, in their order.
type Script []Step

// Step is one of a script.
type Step struct {
	At time.Duration
	Request
}

// Next implements [Controller].
func (c *Script) Next(s Sample) *Request {
	if len(*c) == 0 || s.Elapsed < (*c)[0].At {
		return nil
	}
	r := (*c)[0].Request
	*c = (*c)[1:]
	return &r
}
