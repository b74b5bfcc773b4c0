package cluster

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
)

// Completion is an event that came to its end. Its result is valid during the call that gets it.
type Completion struct {
	Seq       uint64
	Committed bool
	Arrival   int64 // ns by the process' clock; with a Pace when it should have been there
	Nanos     int64 // from then on
	Affected  bool  // it names a key of a group of the last request
	Result    []byte
}

// Outcome is the account of a job.
type Outcome struct {
	Events    int
	Committed int
	Batches   int
	Seconds   float64
	Latency   *hdrhistogram.Histogram // ns
	Results   storage.Hash            // of all results, with their numbers
	State     storage.Hash
	Reports   []Report // of all requests, in the order in which they came
	HeldMax   int      // transactions that waited for rows at one time, at most
	Changes   []SettingsChange
	// Checkpoints that were written, and how often the job went on from one, or from the beginning, after a node died.
	Checkpoints, Recoveries int
	// Resumed is how many of the events a job before this one took.
	Resumed int
}

// SettingsChange is what holds from an event on.
type SettingsChange struct {
	Seq uint64
	reconfig.Settings
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
	Request reconfig.Request `json:"request"`
	State   State            `json:"state"`
	Error   string           `json:"error,omitempty"`
	Diff    reconfig.Diff    `json:"diff"`
	// Migration is the request's with what was left open filled in.
	Migration    reconfig.Migration `json:"migration"`
	Restarts     int                `json:"restarts,omitempty"` // because nodes died
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

// Text is the report in a line, for people.
func (r Report) Text() string {
	text := string(r.State)
	if r.Error != "" {
		return text + ": " + r.Error
	}
	if len(r.Diff.Moves) > 0 {
		text += fmt.Sprintf(": %d of %d groups moved in %d of %d chunks, %.1f of %.1f MiB on links, %.0f ms",
			r.GroupsMoved, len(r.Diff.Moves), r.ChunksDone, r.Chunks, float64(r.BytesMoved)/(1<<20), float64(r.BytesToMove)/(1<<20), r.CompletionMs)
	}
	if s := r.Diff.Settings; !s.IsZero() {
		text += ": " + s.Text()
	}
	if r.PauseMaxMs > 0 {
		text += fmt.Sprintf(", none nowhere for longer than %.1f ms", r.PauseMaxMs)
	}
	if r.PredictedMs > 0 {
		text += fmt.Sprintf(", would be nowhere for %.1f ms", r.PredictedMs)
	}
	return text
}
