package cluster

import (
	"bytes"
	"fmt"

	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/txn"
)

// Router tells nodes what they have to do for the events of a batch, or of a part of one if
// several share it. One goroutine uses it.
type Router struct {
	number    int
	nodes     []reconfig.Node
	footprint *txn.Footprint
	owners    *reconfig.Owners
	sections  []Section // by place in nodes
	names     []named   // of the event in hand
	votes     []int     // keys of the event in hand, by place in nodes
	guests    []guest
	event     []byte

	// Touched is told of each event the group of each key, if it is there.
	Touched func(seq uint64, g reconfig.Group)
}

// named is a key of the event in hand, with its owner's place in nodes.
type named struct {
	table int
	key   []byte
	owner int
}

// NewRouter returns router number i of a job on the nodes.
func NewRouter(i int, app *txn.App, owners *reconfig.Owners, nodes []reconfig.Node) *Router {
	r := &Router{number: i, footprint: app.NewFootprint(), owners: owners}
	r.SetNodes(nodes)
	return r
}

// SetNodes makes others the nodes from the next batch on. Those that own groups are among them.
func (r *Router) SetNodes(nodes []reconfig.Node) {
	r.nodes, r.sections, r.votes = nodes, make([]Section, len(nodes)), make([]int, len(nodes))
}

// Route sends every node its section of a batch: what the events [lo, hi) of the feed need of it, which have the numbers
// from first on. The change comes before the batch.
func (r *Router) Route(batch uint64, feed *txn.Feed, lo, hi int, first uint64, c Change, t Transport) error {
	if len(c.Moves) > 0 {
		next, err := r.owners.Moved(c.Moves)
		if err != nil {
			return err
		}
		r.owners = next
	}
	for i := range r.sections {
		r.sections[i] = Section{Batch: batch, Router: r.number, Version: r.owners.Version(), Change: c, Actions: r.sections[i].Actions[:0]}
	}
	for i := lo; i < hi; i++ {
		if err := r.route(feed, i, first+uint64(i-lo)); err != nil {
			return fmt.Errorf("event %d: %w", first+uint64(i-lo), err)
		}
	}
	for i, n := range r.nodes {
		s := r.sections[i]
		s.Actions = bytes.Clone(s.Actions)
		if err := t.Send(n, &s); err != nil {
			return err
		}
	}
	return nil
}

// route adds one event to the sections.
func (r *Router) route(feed *txn.Feed, i int, seq uint64) error {
	keys, err := r.footprint.Of(feed, i)
	if err != nil {
		return err
	}
	r.names = r.names[:0]
	clear(r.votes)
	runs := 0 // the place in nodes of who executes it
	for _, k := range keys {
		if r.has(k) {
			continue
		}
		g := r.owners.GroupOf(reconfig.KeyHash(k.Key))
		owner := r.place(r.owners.Of(g))
		if r.Touched != nil {
			r.Touched(seq, g)
		}
		r.names = append(r.names, named{k.Table, k.Key, owner})
		if r.votes[owner]++; len(r.names) == 1 || r.votes[owner] > r.votes[runs] {
			runs = owner
		}
	}
	if len(keys) == 0 { // it is anybody's
		runs = int(seq % uint64(len(r.nodes)))
	}
	r.guests = r.guests[:0]
	for _, n := range r.names {
		if n.owner == runs {
			continue
		}
		home := &r.sections[n.owner]
		home.Actions = appendLend(home.Actions, seq, n.table, n.key, r.nodes[runs])
		home.Count++
		r.guests = append(r.guests, guest{r.nodes[n.owner], n.table, n.key})
	}
	r.event = feed.AppendEvent(r.event[:0], i)
	s := &r.sections[runs]
	s.Actions = appendRun(s.Actions, seq, feed.EventType(i), r.event, r.guests)
	s.Count++
	return nil
}

// has reports whether the event in hand has named a key before.
func (r *Router) has(k txn.NamedKey) bool {
	for _, n := range r.names {
		if n.table == k.Table && bytes.Equal(n.key, k.Key) {
			return true
		}
	}
	return false
}

func (r *Router) place(n reconfig.Node) int {
	for i, node := range r.nodes {
		if node == n {
			return i
		}
	}
	panic(fmt.Sprintf("node %d owns key groups and is none of %v", n, r.nodes))
}
