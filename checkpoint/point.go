package checkpoint

import (
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// Point is where a run stands between two batches.
type Point struct {
	Events    int          `json:"events"` // done since the beginning
	Committed int          `json:"committed"`
	Aborted   int          `json:"aborted"`
	Ops       int          `json:"ops"`
	Batches   int          `json:"batches"`
	LastTime  int64        `json:"last_event_time"` // where windows go by time
	Results   storage.Hash `json:"results"`         // sum over all results so far
	Output    int64        `json:"output_bytes"`    // length of the output file
	Letters   int64        `json:"letters_bytes"`   // length of the file of dead letters
	Discarded int          `json:"discarded"`       // letters in it
	OutputTo  string       `json:"output_to"`       // name of the output file, "" for none

	// Rows is how many rows each table has, about, so that room is made for them.
	Rows []int `json:"rows,omitempty"`

	Input *txn.Position `json:"input,omitempty"` // where the source stands, if it told
}

// CheckOutput returns an error if a run that goes on from the point has another output
// than the one before: there would be a gap in either.
func (p *Point) CheckOutput(to string) error {
	switch {
	case p.Events == 0 || p.OutputTo == to || p.OutputTo == anyOutput:
		return nil
	case p.OutputTo == "":
		return refuse("the run before had no output, %s would lack the results of %d events", to, p.Events)
	case to == "":
		return refuse("the run before wrote %d bytes of results to %s, which would lack what comes now: give the same output", p.Output, p.OutputTo)
	}
	return refuse("the run before wrote %d bytes of results to %s, not to %s", p.Output, p.OutputTo, to)
}

const (
	magic = "heddlck\x01"

	blockPoint = 'P'
	blockEnd   = 'E' // the blocks in between have the kinds of their items

	blockSize = 256 << 10 // bytes of items collected into a block: a run may wait for one to be compressed
)
