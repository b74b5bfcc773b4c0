package blocks

import (
	"encoding/binary"
	"io"
)

// itemsSize is how many bytes of items are collected into a block.
const itemsSize = 1 << 20

// Items collects items, each behind its length, into packed blocks of one kind.
type Items struct {
	Bytes int // of all blocks, before compression

	w     *Writer
	kind  byte
	plain []byte
}

// Items returns a collector of items for blocks of a kind.
func (b *Writer) Items(kind byte) *Items { return &Items{w: b, kind: kind} }

// Add adds an item, which is copied, and reports whether the writer takes more.
func (c *Items) Add(item []byte) bool {
	c.plain = append(binary.AppendUvarint(c.plain, uint64(len(item))), item...)
	if len(c.plain) >= itemsSize {
		c.Flush()
	}
	return c.w.err == nil
}

// Items returns the items of the packed blocks of a kind that come next, one after the other, and
// [io.EOF] behind the last one: then the next block, of another kind, is in hand. An item is valid
// until the next one.
func (b *Reader) Items(kind byte) func() ([]byte, error) {
	var plain []byte
	ended := false
	return func() ([]byte, error) {
		for len(plain) == 0 {
			if ended {
				return nil, io.EOF
			}
			if err := b.Next(); err != nil {
				return nil, err
			}
			if b.Kind != kind {
				ended = true
				return nil, io.EOF
			}
			var err error
			if plain, err = b.Unpack(); err != nil {
				return nil, err
			}
		}
		n, used := binary.Uvarint(plain)
		if used <= 0 || n > uint64(len(plain)-used) {
			return nil, b.Corrupt("an item beyond its block")
		}
		item := plain[used : used+int(n)]
		plain = plain[used+int(n):]
		return item, nil
	}
}

// Flush writes what is collected.
func (c *Items) Flush() {
	if len(c.plain) > 0 {
		c.Bytes += len(c.plain)
		c.w.Packed(c.kind, c.plain)
		c.plain = c.plain[:0]
	}
}
