package window

import (
	"errors"

	"github.com/heddle-stream/heddle/internal/invariants"
)

const (
	chunkSize = 16 << 10 // bytes
	unit      = 8        // bytes; what chunks hold begins at a multiple of it
	unitBits  = 11       // of the units of a chunk
)

// chunks is the memory of a store: pieces of equal size, each of which holds bytes of one
// window.
type chunks struct {
	limit int64
	used  int64 // bytes, chunks that are free included
	free  [][]byte
	stats *Stats
}

// charge takes bytes within the limit, or gives them back if negative. It reports false
// and takes nothing when there is no room. Chunks that are free make way.
func (c *chunks) charge(bytes int64) bool {
	for bytes >= 0 && c.used+bytes > c.limit {
		n := len(c.free)
		if n == 0 {
			return false
		}
		c.free[n-1] = nil
		c.free = c.free[:n-1]
		c.used -= chunkSize
	}
	c.force(bytes)
	return true
}

// force takes a few bytes even if there is no room.
func (c *chunks) force(bytes int64) {
	c.used += bytes
	c.stats.MemoryBytes = c.used
	c.stats.MemoryBytesMax = max(c.stats.MemoryBytesMax, c.used)
	if invariants.Enabled {
		invariants.Check(c.used >= 0, "%d bytes of memory", c.used)
	}
}

// resize sets the limit, and gives up what is free. Spill takes windows to disk, as long as there are some.
func (c *chunks) resize(limit int64, spill func() error) (int64, error) {
	c.limit = max(limit, LimitMin)
	c.force(-int64(len(c.free)) * chunkSize)
	c.free = nil
	for !c.charge(0) {
		if err := spill(); errors.Is(err, ErrTooMany) {
			c.limit = c.used
		} else if err != nil {
			return c.limit, err
		}
	}
	return c.limit, nil
}

// take returns a chunk with arbitrary contents, or nil when there is no room for one.
func (c *chunks) take() []byte {
	if n := len(c.free); n > 0 {
		chunk := c.free[n-1]
		c.free[n-1] = nil
		c.free = c.free[:n-1]
		return chunk
	}
	if !c.charge(chunkSize) {
		return nil
	}
	return make([]byte, chunkSize)
}

// give takes chunks back.
func (c *chunks) give(chunks [][]byte) { c.free = append(c.free, chunks...) }
