package cluster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-stream/heddle/reconfig"
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
	Moves []reconfig.Move `json:"moves,omitempty"`
	// Migration says how groups move. Default: see reconfig.Migration.
	Migration reconfig.Migration `json:"migration"`
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
	Moves  []reconfig.Move `json:"moves"`
	Starts []reconfig.Node `json:"starts,omitempty"` // nodes
	Stops  []reconfig.Node `json:"stops,omitempty"`
}

// Prepare finds out what a request changes. It is a function of its arguments.
func (r *Request) Prepare(o *reconfig.Owners, nodes []reconfig.Node, loads []reconfig.Load) (Diff, error) {
	var d Diff
	if err := r.Validate(); err != nil {
		return d, err
	}
	after := slices.Clone(nodes)
	if r.Nodes > 0 {
		if r.Nodes > o.Groups() {
			return d, fmt.Errorf("%d nodes for %d key groups", r.Nodes, o.Groups())
		}
		for n := reconfig.Node(0); len(after) < r.Nodes; n++ {
			if !slices.Contains(after, n) {
				after = append(after, n)
				d.Starts = append(d.Starts, n)
			}
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
		d.Moves = reconfig.Rebalance(o, after, loads)
	case r.Nodes > 0:
		d.Moves = reconfig.Spread(o, after)
	}
	return d, nil
}

// State is how far a request is.
type State string

// The states of a request, in their order.
const (
	Queued    State = "queued"
	Starting  State = "starting"  // nodes that are to join
	Surveying State = "surveying" // owners look for the rows of groups that will go
	Moving    State = "moving"
	Done      State = "done"
	Aborted   State = "aborted" // what moved before stays
	Refused   State = "refused"
)

// Report tells how far a request is, and what it took.
type Report struct {
	Request Request `json:"request"`
	State   State   `json:"state"`
	Error   string  `json:"error,omitempty"`
	Diff    Diff    `json:"diff"`
	// Migration is the request's with what was left open filled in.
	Migration    reconfig.Migration `json:"migration"`
	Chunks       int                `json:"chunks"`
	ChunksDone   int                `json:"chunks_done"`
	GroupsMoved  int                `json:"groups_moved"`
	BytesToMove  int64              `json:"bytes_to_move"` // of the groups, as the survey found them
	BytesMoved   int64              `json:"bytes_moved"`   // over links meanwhile, copies included
	CompletionMs float64            `json:"completion_ms"`
	SurveyMs     float64            `json:"survey_ms"`
	StartMs      float64            `json:"start_ms"`      // of nodes
	PauseMaxMs   float64            `json:"pause_max_ms"`  // the longest that a group was nowhere
	PauseMeanMs  float64            `json:"pause_mean_ms"` // and the mean of all groups
	PredictedMs  float64            `json:"predicted_pause_ms,omitempty"`
}

func (s State) ended() bool { return s == Done || s == Aborted || s == Refused }
