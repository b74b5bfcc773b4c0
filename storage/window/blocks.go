package window

import (
	"encoding/binary"
	"math/bits"
)

// place is a block of memory: number of a chunk and unit in it, plus one; 0 is none.
type place uint32

// A block has 32 bytes by a power of two:
//
//	the next one of its window uint32 | class uint16 | bytes used uint16 | contents
const (
	blockHead   = 8
	smallest    = 32
	sizeClasses = 8
)

// blocks is memory for contents that grow a little at a time: chains of blocks, each of which
// has twice the size of the one before.
type blocks struct {
	whole  bool // contents are in one block
	chunks chunks
	mem    [][]byte
	unused [sizeClasses]place // lists of unused ones
	used   int64              // bytes of blocks in use
}

// classOf returns the class of a block for so many bytes.
func classOf(n int) int {
	return max(0, bits.Len(uint(n+blockHead-1))-bits.Len(uint(smallest-1)))
}

func (b *blocks) block(p place) []byte {
	ref := uint32(p) - 1
	return b.mem[ref>>unitBits][ref&(1<<unitBits-1)*unit:]
}

func (b *blocks) class(p place) int { return int(binary.LittleEndian.Uint16(b.block(p)[4:])) }

// take returns an empty block of about a class, or 0 when there is none.
func (b *blocks) take(class int) place {
	class = min(class, sizeClasses-1)
	c := class
	for c < sizeClasses && b.unused[c] == 0 {
		c++
	}
	if c == sizeClasses && b.carve() {
		c--
	}
	if c == sizeClasses {
		if b.whole {
			return 0
		}
		for c = class; c > 0 && b.unused[c] == 0; c-- {
		}
		if b.unused[c] == 0 {
			return 0
		}
		class = c
	}
	p := b.unused[c]
	b.unused[c] = b.following(p)
	for ; c > class; c-- { // the upper half is not needed
		b.push(p+place(smallest<<(c-1)/unit), c-1)
	}
	head := b.block(p)
	binary.LittleEndian.PutUint32(head, 0)
	binary.LittleEndian.PutUint32(head[4:], uint32(class))
	b.used += smallest << class
	return p
}

// capacity returns how many bytes all blocks may take.
func (b *blocks) capacity() int64 {
	return int64(len(b.mem))*chunkSize + b.chunks.limit - b.chunks.used + int64(len(b.chunks.free))*chunkSize
}

// carve makes large blocks of a chunk.
func (b *blocks) carve() bool {
	chunk := b.chunks.take()
	if chunk == nil {
		return false
	}
	b.mem = append(b.mem, chunk)
	const size = smallest << (sizeClasses - 1)
	for at := 0; at < chunkSize; at += size {
		b.push(place((len(b.mem)-1)<<unitBits+at/unit+1), sizeClasses-1)
	}
	return true
}

// push makes a block an unused one.
func (b *blocks) push(p place, class int) {
	head := b.block(p)
	binary.LittleEndian.PutUint32(head, uint32(b.unused[class]))
	binary.LittleEndian.PutUint32(head[4:], uint32(class))
	b.unused[class] = p
}

// following returns the block behind one.
func (b *blocks) following(p place) place { return place(binary.LittleEndian.Uint32(b.block(p))) }

// link puts a chain of blocks behind a block.
func (b *blocks) link(p, next place) { binary.LittleEndian.PutUint32(b.block(p), uint32(next)) }

// next returns the class of the block that is to follow one.
func (b *blocks) next(p place) int {
	if p == 0 {
		return 1
	}
	return b.class(p) + 1
}

// bytes returns what a block has.
func (b *blocks) bytes(p place) []byte {
	block := b.block(p)
	return block[blockHead : blockHead+int(binary.LittleEndian.Uint16(block[6:]))]
}

// use makes a block have so many bytes.
func (b *blocks) use(p place, n int) []byte {
	binary.LittleEndian.PutUint16(b.block(p)[6:], uint16(n))
	return b.bytes(p)
}

// fill adds as much of data to a block as there is room for, and returns the rest.
func (b *blocks) fill(p place, data []byte) []byte {
	block := b.block(p)
	n := int(binary.LittleEndian.Uint16(block[6:]))
	added := copy(block[blockHead+n:smallest<<binary.LittleEndian.Uint16(block[4:])], data)
	binary.LittleEndian.PutUint16(block[6:], uint16(n+added))
	return data[added:]
}

// append adds the contents of a chain to dst.
func (b *blocks) append(dst []byte, p place) []byte {
	for ; p != 0; p = b.following(p) {
		dst = append(dst, b.bytes(p)...)
	}
	return dst
}

// size returns the bytes that a chain takes.
func (b *blocks) size(p place) (n int64) {
	for ; p != 0; p = b.following(p) {
		n += smallest << b.class(p)
	}
	return n
}

// free gives back a chain.
func (b *blocks) free(p place) {
	for p != 0 {
		next, class := b.following(p), b.class(p)
		b.used -= smallest << class
		b.push(p, class)
		p = next
	}
}

// empty gives back all memory, when no block is in use. It reports false if there is none.
func (b *blocks) empty() bool {
	if len(b.mem) == 0 {
		return false
	}
	b.chunks.give(b.mem)
	b.mem, b.unused = nil, [sizeClasses]place{}
	return true
}
