package window

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// An entry of a table is, at a multiple of unit:
//
//	hash uint64 | length of the key uint32, 4 bytes unused | accumulator | key
//
// so that the accumulator is aligned.
const entryHead = 16

// table maps keys to accumulators. Its index is sorted by hash: an entry stands at the place
// that the upper bits of its hash say or behind it, and none stands before one with a
// smaller tag. So entries can be had in order of their hashes without sorting.
type table struct {
	width  int  // of accumulators
	shared uint // bits that all hashes share
	shift  uint
	index  []uint64 // tag<<32 | number of the entry's unit + 1; 0 where nothing is
	homes  int      // places that a hash can say; a few more follow
	count  int
	chunks [][]byte
	next   int // byte in the last chunk
}

const (
	homesMin = 64
	overhang = 64 // places behind those that a hash can say
)

// indexBytes is what an index with so many homes takes.
func indexBytes(homes int) int64 { return int64(homes+overhang) * 8 }

// lay makes an empty index.
func (t *table) lay(homes int) {
	t.homes, t.shift = homes, 64-uint(bits.Len(uint(homes))-1)
	t.index = make([]uint64, homes+overhang)
}

// full reports whether one entry more needs a larger index.
func (t *table) full() bool { return t.count >= t.homes/4*3 }

func (t *table) tag(hash uint64) uint64 { return hash << t.shared >> 32 << 32 }

// find returns the accumulator of a key, or nil and the place where it belongs.
func (t *table) find(hash uint64, key []byte) (acc []byte, at int) {
	tag := t.tag(hash)
	at = int(hash << t.shared >> t.shift)
	for {
		slot := t.index[at]
		if slot>>32<<32 > tag || slot == 0 {
			return nil, at
		}
		if slot>>32<<32 == tag {
			if h, k, acc := t.entry(slot); h == hash && bytes.Equal(k, key) {
				return acc, at
			}
		}
		at++
	}
}

// entry returns the parts of the entry in a place of the index.
func (t *table) entry(slot uint64) (hash uint64, key, acc []byte) {
	ref := uint32(slot) - 1
	e := t.chunks[ref>>unitBits][ref&(1<<unitBits-1)*unit:]
	n := int(binary.LittleEndian.Uint32(e[8:]))
	return binary.LittleEndian.Uint64(e), e[entryHead+t.width : entryHead+t.width+n], e[entryHead : entryHead+t.width : entryHead+t.width]
}

// size is how many bytes an entry takes.
func (t *table) size(key []byte) int {
	return (entryHead + t.width + len(key) + unit - 1) &^ (unit - 1)
}

// fits reports whether the last chunk has room for the key.
func (t *table) fits(key []byte) bool { return len(t.chunks) > 0 && t.next+t.size(key) <= chunkSize }

// add puts a key where find says that it belongs, and returns its accumulator, all zero, or
// nil when hashes crowd at the end of the index, which has to be longer first. There is room in the
// last chunk.
func (t *table) add(hash uint64, key []byte, at int) []byte {
	end := at
	for t.index[end] != 0 {
		if end++; end == len(t.index) {
			return nil
		}
	}
	if end == len(t.index)-1 { // a search ends at an empty place
		return nil
	}
	copy(t.index[at+1:end+1], t.index[at:end])
	t.index[at] = t.tag(hash) | uint64((len(t.chunks)-1)<<unitBits+t.next/unit+1)
	t.count++

	e := t.chunks[len(t.chunks)-1][t.next:]
	t.next += t.size(key)
	binary.LittleEndian.PutUint64(e, hash)
	binary.LittleEndian.PutUint64(e[8:], uint64(len(key)))
	acc := e[entryHead : entryHead+t.width : entryHead+t.width]
	clear(acc)
	copy(e[entryHead+t.width:], key)
	return acc
}

// grow doubles the index.
func (t *table) grow() {
	old := t.index
	t.lay(2 * t.homes)
	t.refill(old)
}

// bytes returns what the index takes.
func (t *table) bytes() int64 { return int64(len(t.index)) * 8 }

// refill puts the places of another index, which are sorted, into this one.
func (t *table) refill(old []uint64) {
	next := 0
	for _, slot := range old {
		if slot == 0 {
			continue
		}
		at := max(next, int(slot>>32<<32>>t.shift))
		for at >= len(t.index)-1 {
			t.lengthen()
		}
		t.index[at] = slot
		next = at + 1
	}
}

// lengthen makes places behind those that a hash can say.
func (t *table) lengthen() { t.index = append(t.index, make([]uint64, overhang)...) }

// sort brings entries with equal tags in the order of their hashes and keys.
func (t *table) sort() {
	for i := 1; i < len(t.index); i++ {
		slot := t.index[i]
		if slot == 0 {
			continue
		}
		j := i
		for ; j > 0 && t.index[j-1] != 0 && t.index[j-1]>>32 == slot>>32 && t.less(slot, t.index[j-1]); j-- {
			t.index[j] = t.index[j-1]
		}
		t.index[j] = slot
	}
}

func (t *table) less(a, b uint64) bool {
	ha, ka, _ := t.entry(a)
	hb, kb, _ := t.entry(b)
	return ha < hb || ha == hb && bytes.Compare(ka, kb) < 0
}
