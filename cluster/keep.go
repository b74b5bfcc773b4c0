package cluster

import (
	"slices"
	"sync"

	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
)

// Archive is the address of who keeps the pieces of checkpoints.
const Archive reconfig.Node = -2

// Keep is where a job keeps what it goes on from when a node, or the job itself, dies: a log of what it routed, and
// checkpoints, which are pieces that nodes send to [Archive] and an account of the job. One goroutine, but for Store.
type Keep interface {
	// Begin makes what others who used the same place still want to keep come to nothing, and returns a number that
	// is larger than any before, and the newest checkpoint, if there is one.
	Begin() (term uint64, c *Checkpoint, err error)
	// Log adds a record, which is safe once Sync has returned.
	Log(index uint64, record []byte) error
	Sync() error
	// Records hands out the records from an index on, in their order.
	Records(from uint64, yield func(record []byte) error) error
	// Store keeps a piece, and calls stored when it is safe or why it never will be. Any goroutine.
	Store(p *Piece, stored func(error))
	// Pieces hands out those of a part of the newest checkpoint.
	Pieces(part uint64, yield func(p *Piece) error) error
	// Commit makes a checkpoint the newest, whose pieces are safe. What nobody needs for it may go.
	Commit(c *Checkpoint) error
}

// Checkpoint is what a job was at a punctuation, but for its rows.
type Checkpoint struct {
	Parts     []uint64 // whose pieces make the rows: all of them, and then what changed
	Index     uint64   // of the first record of the log behind it
	Seq       uint64   // of the first event behind it
	Committed int      // events before it
	Results   storage.Hash
	Settings  reconfig.Settings
	Nodes     []reconfig.Node
	Version   uint64 // of the owners
	Owners    []reconfig.Node
	Free      reconfig.Node // the first number that no node had
}

// Piece is rows of a checkpoint that a node sends.
type Piece struct {
	From reconfig.Node
	Part uint64
	// Whole has groups of which the part has all rows: those of parts before it are nothing any more.
	Whole []reconfig.Group
	Rows  []Row
}

func (*Piece) message() {}

// Size returns the bytes of the rows, for which who stores them gives credit.
func (p *Piece) Size() (sum int64) {
	for i := range p.Rows {
		sum += p.Rows[i].bytes()
	}
	return sum
}

// Memory keeps in memory, for nodes that may fail in a process that does not.
type Memory struct {
	mu      sync.Mutex
	term    uint64
	newest  *Checkpoint
	first   uint64 // index of the first record
	records [][]byte
	pieces  map[uint64][]*Piece
}

// Begin implements [Keep].
func (k *Memory) Begin() (uint64, *Checkpoint, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.term++
	k.tidy()
	return k.term, k.newest, nil
}

// tidy drops the pieces of what is no part of the newest checkpoint.
func (k *Memory) tidy() {
	for part := range k.pieces {
		if k.newest == nil || !slices.Contains(k.newest.Parts, part) {
			delete(k.pieces, part)
		}
	}
}

// Log implements [Keep].
func (k *Memory) Log(index uint64, record []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.records) == 0 {
		k.first = index
	}
	k.records = append(k.records, record)
	return nil
}

// Sync implements [Keep].
func (k *Memory) Sync() error { return nil }

// Records implements [Keep].
func (k *Memory) Records(from uint64, yield func(record []byte) error) error {
	for i, r := range k.records {
		if k.first+uint64(i) < from {
			continue
		}
		if err := yield(r); err != nil {
			return err
		}
	}
	return nil
}

// Store implements [Keep].
func (k *Memory) Store(p *Piece, stored func(error)) {
	k.mu.Lock()
	if k.pieces == nil {
		k.pieces = map[uint64][]*Piece{}
	}
	k.pieces[p.Part] = append(k.pieces[p.Part], p)
	k.mu.Unlock()
	stored(nil)
}

// Pieces implements [Keep].
func (k *Memory) Pieces(part uint64, yield func(p *Piece) error) error {
	k.mu.Lock()
	pieces := k.pieces[part]
	k.mu.Unlock()
	for _, p := range pieces {
		if err := yield(p); err != nil {
			return err
		}
	}
	return nil
}

// Commit implements [Keep].
func (k *Memory) Commit(c *Checkpoint) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.newest = c
	k.tidy()
	if gone := min(c.Index-min(c.Index, k.first), uint64(len(k.records))); gone > 0 {
		k.first, k.records = k.first+gone, slices.Delete(k.records, 0, int(gone))
	}
	return nil
}
