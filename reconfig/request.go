package reconfig

import (
	"errors"
	"fmt"
	"slices"
)

// Request is a change of a running job, all of it at one punctuation but for groups, which move as the migration
// says. The zero value changes nothing: it costs a punctuation.
type Request struct {
	// Name of the request. Of two with one name the second does nothing. Default: a number.
	Name string `json:"name,omitempty"`
	// Nodes is how many nodes the job is to have; 0: as many as it has.
	Nodes int `json:"nodes,omitempty"`
	// Rebalance moves groups so that the nodes have about the same load.
	Rebalance bool `json:"rebalance,omitempty"`
	// Moves are groups that move, whatever else.
	Moves []Move `json:"moves,omitempty"`
	// Migration says how groups move. Default: see Migration.
	Migration Migration `json:"migration"`
	// Replicas makes this part of the groups of each node have a copy on the next node, from now on, so that
	// these may go there at once; less than 0: none. 0: as it is.
	Replicas float64 `json:"replicas,omitempty"`
	// DryRun tells what would be done, and does not do it.
	DryRun bool `json:"dry_run,omitempty"`
}

// Validate reports what is wrong with a request whatever the job, or nil.
func (r *Request) Validate() error {
	errs := []error{r.Migration.Validate()}
	if r.Nodes < 0 || r.Nodes > NodesMax {
		errs = append(errs, fmt.Errorf("%d nodes: 1 to %d are allowed", r.Nodes, NodesMax))
	}
	if len(r.Moves) > 0 && (r.Nodes > 0 || r.Rebalance) {
		errs = append(errs, errors.New("moves of single groups and a number of nodes, or to rebalance, exclude each other"))
	}
	if r.Replicas > 1 {
		errs = append(errs, fmt.Errorf("replicas %g: at most 1 is allowed, for all groups", r.Replicas))
	}
	return errors.Join(errs...)
}

// NodesMax is the most nodes of a job.
const NodesMax = 64

// Diff is what a request comes to.
type Diff struct {
	Moves  []Move `json:"moves"`
	Starts []Node `json:"starts,omitempty"` // nodes
	Stops  []Node `json:"stops,omitempty"`
}

// Prepare finds out what a request changes. It is a function of its arguments. Nodes that start get numbers from free on:
// one that is gone does not come back, or what it sent would be taken for what the new one sends.
func (r *Request) Prepare(o *Owners, nodes []Node, loads []Load, free Node) (Diff, error) {
	var d Diff
	if err := r.Validate(); err != nil {
		return d, err
	}
	after := slices.Clone(nodes)
	if r.Nodes > 0 {
		if r.Nodes > o.Groups() {
			return d, fmt.Errorf("%d nodes for %d key groups", r.Nodes, o.Groups())
		}
		for ; len(after) < r.Nodes; free++ {
			after = append(after, free)
			d.Starts = append(d.Starts, free)
		}
		slices.Sort(after)
		d.Stops = slices.Clone(after[r.Nodes:])
		after = after[:r.Nodes]
	}
	switch {
	case len(r.Moves) > 0:
		d.Moves = r.Moves
		for _, m := range r.Moves {
			if !slices.Contains(nodes, m.To) {
				return d, fmt.Errorf("key group %d is to go to node %d: there are %v", m.Group, m.To, nodes)
			}
		}
		_, err := o.Moved(r.Moves)
		return d, err
	case r.Rebalance:
		d.Moves = Rebalance(o, after, loads)
	case r.Nodes > 0:
		d.Moves = Spread(o, after)
	}
	return d, nil
}
