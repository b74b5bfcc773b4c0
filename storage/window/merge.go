package window

import (
	"bytes"
	"encoding/binary"
)

// cursor goes through entries in order of their hashes and keys: those of a table, or those
// of a run on disk.
type cursor struct {
	hash     uint64
	key, acc []byte
	rank     int // among cursors; the earlier part of a window has the lower one

	t    *table // or nil
	next int    // place in its index

	width int
	d     *disk
	run   []piece // not read yet
	block []byte  // the rest of the one that is read
	buf   []byte
}

// advance goes to the next entry. It reports false at the end.
func (c *cursor) advance() (bool, error) {
	if c.t != nil {
		for c.next < len(c.t.index) {
			slot := c.t.index[c.next]
			if c.next++; slot != 0 {
				c.hash, c.key, c.acc = c.t.entry(slot)
				return true, nil
			}
		}
		return false, nil
	}
	for len(c.block) == 0 {
		if len(c.run) == 0 {
			return false, nil
		}
		var err error
		if c.block, err = c.d.read(c.run[0], &c.buf); err != nil {
			return false, err
		}
		c.run = c.run[1:]
	}
	b := c.block
	n, behind := int(binary.LittleEndian.Uint64(b[8:])), entryHead+c.width
	c.hash, c.acc, c.key, c.block = binary.LittleEndian.Uint64(b), b[entryHead:behind], b[behind:behind+n], b[behind+padded(n):]
	return true, nil
}

// appendEntry adds an entry as a run has it: as in a table, so that accumulators are aligned
// there, too.
func appendEntry(dst []byte, hash uint64, key, acc []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, hash)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(key)))
	dst = append(append(dst, acc...), key...)
	return append(dst, make([]byte, padded(len(key))-len(key))...)
}

// padded is what so many bytes take.
func padded(n int) int { return (n + unit - 1) &^ (unit - 1) }

// before reports whether the entry of c comes before that of o. Equal keys go by rank.
func (c *cursor) before(o *cursor) bool {
	if c.hash != o.hash {
		return c.hash < o.hash
	}
	if d := bytes.Compare(c.key, o.key); d != 0 {
		return d < 0
	}
	return c.rank < o.rank
}

// merger goes through several cursors at once: a heap of them by their entries.
type merger struct{ heap []*cursor }

// newMerger takes the cursors that have an entry at all.
func newMerger(all []*cursor) (*merger, error) {
	m := &merger{}
	for i, c := range all {
		c.rank = i
		ok, err := c.advance()
		if err != nil {
			return nil, err
		}
		if ok {
			m.heap = append(m.heap, c)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
	return m, nil
}

func (m *merger) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(m.heap) {
			return
		}
		if child+1 < len(m.heap) && m.heap[child+1].before(m.heap[child]) {
			child++
		}
		if !m.heap[child].before(m.heap[i]) {
			return
		}
		m.heap[i], m.heap[child] = m.heap[child], m.heap[i]
		i = child
	}
}

// each yields each key with its accumulators merged into one, which the callee may change.
func (m *merger) each(width int, merge func(into, from []byte), yield func(hash uint64, key, acc []byte) error) error {
	acc, key := make([]byte, width), []byte(nil)
	for len(m.heap) > 0 {
		top := m.heap[0]
		hash := top.hash
		copy(acc, top.acc)
		key = append(key[:0], top.key...)
		if err := m.step(); err != nil {
			return err
		}
		for len(m.heap) > 0 && m.heap[0].hash == hash && bytes.Equal(m.heap[0].key, key) {
			merge(acc, m.heap[0].acc)
			if err := m.step(); err != nil {
				return err
			}
		}
		if err := yield(hash, key, acc); err != nil {
			return err
		}
	}
	return nil
}

// step takes the first cursor to its next entry.
func (m *merger) step() error {
	ok, err := m.heap[0].advance()
	if err != nil {
		return err
	}
	if !ok {
		last := len(m.heap) - 1
		m.heap[0] = m.heap[last]
		m.heap = m.heap[:last]
	}
	m.sink(0)
	return nil
}
