package peers

import (
	"encoding/binary"
	"iter"
	"maps"

	"github.com/heddle-stream/heddle/storage"
)

// State is a final state: the balances by key, in any order.
type State struct {
	Accounts, Books iter.Seq2[uint32, int64]
}

func mapState(accounts, books map[uint32]int64) State {
	return State{maps.All(accounts), maps.All(books)}
}

// Hash is a sum over all rows of the hash of table, key and value, computed in
// the same way whoever holds the rows. Equal states have equal hashes; a row
// that is missing, twice there or different gives another one.
func (s State) Hash() storage.Hash {
	var sum storage.Hash
	for table, rows := range []iter.Seq2[uint32, int64]{s.Accounts, s.Books} {
		var row [13]byte
		row[0] = byte(table)
		for key, value := range rows {
			binary.LittleEndian.PutUint32(row[1:], key)
			binary.LittleEndian.PutUint64(row[5:], uint64(value))
			sum.Add(row[:])
		}
	}
	return sum
}
