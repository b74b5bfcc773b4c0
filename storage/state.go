package storage

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/heddle-stream/heddle/txn"
)

// Hash is a 128-bit sum of the hashes of items. A sum does not depend on the
// order of its items, so that tables need not be sorted and workers can add up
// their shares.
type Hash struct{ Hi, Lo uint64 }

// Add adds the hash of one item. The same item added twice counts twice.
func (h *Hash) Add(item []byte) {
	x := xxh3.Hash128(item)
	h.Sum(Hash{x.Hi, x.Lo})
}

// Sum adds another sum.
func (h *Hash) Sum(other Hash) {
	var carry uint64
	h.Lo, carry = bits.Add64(h.Lo, other.Lo, 0)
	h.Hi, _ = bits.Add64(h.Hi, other.Hi, carry)
}

// MarshalText returns 32 hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (h *Hash) UnmarshalText(text []byte) error {
	if _, err := fmt.Sscanf(string(text), "%16x%16x", &h.Hi, &h.Lo); err != nil || len(text) != 32 {
		return fmt.Errorf("hash %q: 32 hexadecimal digits are expected", text)
	}
	return nil
}

// String returns 32 hexadecimal digits.
func (h Hash) String() string { return fmt.Sprintf("%016x%016x", h.Hi, h.Lo) }

// StateHash returns the hash of all tables: equal states, whatever produced
// them and wherever, have equal hashes. Takes time proportional to the rows.
func StateHash(app *txn.App) Hash {
	var sum Hash
	for _, row := range Snapshot(app) {
		sum.Add(row)
	}
	return sum
}

// Snapshot yields each row of the application as its table's number and its
// byte form: the number as a varint, then key and value. The bytes are valid
// until the next step. Only between batches.
func Snapshot(app *txn.App) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		var buf []byte
		for i, table := range app.Tables() {
			more := true
			table.Rows(func(row []byte) bool {
				buf = append(binary.AppendUvarint(buf[:0], uint64(i)), row...)
				more = yield(i, buf)
				return more
			})
			if !more {
				return
			}
		}
	}
}
