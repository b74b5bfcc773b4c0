package reconfig

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	// Settings hold on all nodes from a punctuation on, that with which the first groups move if there are any.
	Settings
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
	if r.Workers < 0 {
		errs = append(errs, fmt.Errorf("workers %d: must not be negative", r.Workers))
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
	// Settings are those that become other ones.
	Settings Settings `json:"settings,omitzero"`
}

// Settings are what nodes do alike. The zero value of one stands for what it is.
type Settings struct {
	// Logic has by the name of a txn.Logic the variant of it that holds.
	Logic map[string]string `json:"logic,omitempty"`
	// Strategy is how transactions are executed, see schedule.Strategies.
	Strategy string `json:"strategy,omitempty"`
	// Workers is how many execute at each node, or as many as its machine has processors for.
	Workers int `json:"workers,omitempty"`
}

// IsZero reports whether everything stays as it is.
func (s Settings) IsZero() bool { return len(s.Logic) == 0 && s.Strategy == "" && s.Workers == 0 }

// Text is the settings in a line, for people.
func (s Settings) Text() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.Logic)) {
		all = append(all, name+" "+s.Logic[name])
	}
	if s.Strategy != "" {
		all = append(all, "strategy "+s.Strategy)
	}
	if s.Workers > 0 {
		all = append(all, fmt.Sprintf("%d workers", s.Workers))
	}
	return strings.Join(all, ", ")
}

// Than returns what of s is other than what holds.
func (s Settings) Than(now Settings) (other Settings) {
	for name, variant := range s.Logic {
		if now.Logic[name] != variant {
			other.set(name, variant)
		}
	}
	if s.Strategy != now.Strategy {
		other.Strategy = s.Strategy
	}
	if s.Workers != now.Workers {
		other.Workers = s.Workers
	}
	return other
}

// Then returns what holds after a change.
func (s Settings) Then(change Settings) Settings {
	next := Settings{Strategy: cmp.Or(change.Strategy, s.Strategy), Workers: cmp.Or(change.Workers, s.Workers)}
	for _, logic := range []map[string]string{s.Logic, change.Logic} {
		for name, variant := range logic {
			next.set(name, variant)
		}
	}
	return next
}

func (s *Settings) set(name, variant string) {
	if s.Logic == nil {
		s.Logic = map[string]string{}
	}
	s.Logic[name] = variant
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
