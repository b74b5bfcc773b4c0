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

	// Rows is how many rows each table has, about, so that room is made for them.
	Rows []int `json:"rows,omitempty"`

	Input *txn.Position `json:"input,omitempty"` // where the source stands, if it told
}

const (
	magic = "heddlck\x01"

	blockPoint = 'P'
	blockEnd   = 'E' // the blocks in between have the kinds of their items

	blockSize = 1 << 20 // bytes of items collected into a block
)
