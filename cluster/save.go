package cluster

import (
	"maps"
	"slices"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/txn"
)

// saving is what a node does for the checkpoints of its job: with the punctuation of one, when nothing of the batches
// before is under way here, it makes a cut of its rows, and sends what changed since the last one slice by slice while
// transactions go on to change them.
type saving struct {
	changed *txn.Changes // since the last cut; nil: the job keeps nothing
	part    uint64       // what is being sent, 0 for nothing
	owners  *reconfig.Owners
	gone    []Row                   // keys that are no more
	limit   int                     // rows in a piece
	bytes   int64                   // sent
	came    map[reconfig.Group]bool // since the last cut
	whole   []reconfig.Group        // of those before it
	taken   bool                    // all is sent
}

const (
	pieceMin = 128 << 10 // bytes, about
	pieceMax = 512 << 10
)

// cut begins to save what changed since the last cut, or everything.
func (n *Node) cut(part uint64, all bool) {
	s := &n.saving
	s.part, s.owners, s.taken, s.bytes, s.limit = part, n.owners, false, 0, max(s.limit, 64)
	if all {
		s.changed.All()
	}
	s.changed.Cut()
	s.gone, s.whole = nil, nil
	for _, g := range slices.Sorted(maps.Keys(s.came)) {
		if s.owners.Of(g) == n.id {
			s.whole = append(s.whole, g)
		}
	}
	clear(s.came)
	s.changed.TakeGone(func(table int, key []byte) {
		if n.ours(key) {
			s.gone = append(s.gone, Row{Table: table, Key: append([]byte(nil), key...)})
		}
	})
}

// adopt has a group that has come be saved as a whole by the next checkpoint: what others have saved of it may have rows
// that are gone since, and what came of a copy before the last cut here was not ours then.
func (n *Node) adopt(g reconfig.Group, copied *stage) error {
	if n.saving.changed == nil {
		return nil
	}
	n.saving.came[g] = true
	if copied == nil { // its rows come now
		return nil
	}
	for k := range copied.keys {
		table, key := splitKey(k)
		if err := n.tables[table].MarkChanged(key); err != nil {
			return err
		}
	}
	return nil
}

// ours reports whether a key was of this node at the cut: others may be in the tables as copies, or were.
func (n *Node) ours(key []byte) bool {
	o := n.saving.owners
	return o.Of(o.GroupOf(reconfig.KeyHash(key))) == n.id
}

// saveOn sends some more rows of a checkpoint.
func (n *Node) saveOn() (more bool, err error) {
	s := &n.saving
	if s.part == 0 || n.copies.flying[Archive] > flyingMax {
		return false, nil
	}
	if s.taken {
		if n.copies.flying[Archive] == 0 {
			n.news.Saved, n.news.Bytes, s.part = s.part, s.bytes, 0
		}
		return false, nil
	}
	p := &Piece{From: n.id, Part: s.part, Whole: s.whole, Rows: s.gone}
	s.gone, s.whole = nil, nil
	s.taken = !s.changed.Take(s.limit, func(table int, row []byte) {
		size, kerr := n.tables[table].KeyLen(row)
		if err = kerr; err == nil && n.ours(row[:size]) {
			row = append([]byte(nil), row...)
			p.Rows = append(p.Rows, Row{table, row[:size:size], row})
		}
	})
	if err != nil {
		return false, err
	}
	if err := s.changed.Err(); err != nil {
		return false, err
	}
	bytes := p.Size()
	switch {
	case bytes > pieceMax:
		s.limit = max(1, s.limit/2)
	case bytes < pieceMin && len(p.Rows) >= s.limit/2:
		s.limit *= 2
	}
	if len(p.Rows)+len(p.Whole) == 0 {
		return true, nil
	}
	s.bytes += bytes
	n.copies.flying[Archive] += bytes
	return true, n.out.Send(Archive, p)
}

// restore makes the node wait for the rows of all of its groups, which control has.
func (n *Node) restore() error {
	for _, t := range n.tables {
		var keys [][]byte
		var failed error
		t.Rows(func(row []byte) bool {
			size, err := t.KeyLen(row)
			failed = err
			keys = append(keys, append([]byte(nil), row[:size]...))
			return err == nil
		})
		if failed != nil {
			return failed
		}
		for _, key := range keys {
			if err := t.DropRow(key); err != nil {
				return err
			}
		}
	}
	for g := range n.owners.Groups() {
		if n.owners.Of(reconfig.Group(g)) == n.id {
			n.arriving[g] = true
			n.arrivals[reconfig.Group(g)] = clock.NowNanos()
		}
	}
	return nil
}
