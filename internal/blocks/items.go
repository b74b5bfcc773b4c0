package blocks

import "encoding/binary"

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

// Flush writes what is collected.
func (c *Items) Flush() {
	if len(c.plain) > 0 {
		c.Bytes += len(c.plain)
		c.w.Packed(c.kind, c.plain)
		c.plain = c.plain[:0]
	}
}
