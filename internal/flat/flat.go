// Package flat is the plainest open-addressing map from integers to integers:
// what a programmer would write by hand for a serial loop, as a yardstick.
package flat

// Map has a fixed capacity and no deletes. Not safe for concurrent use.
type Map struct {
	slots []slot
	mask  uint32
}

type slot struct {
	key uint32 // plus one; 0 is empty
	val int64
}

// New returns a map with room for n keys.
func New(n int) *Map {
	size := 16
	for size < 2*n {
		size *= 2
	}
	return &Map{make([]slot, size), uint32(size - 1)}
}

// At returns the place of the key's value, made when there is none. It is
// valid as long as the map. The key is not the largest uint32.
func (m *Map) At(key uint32) *int64 {
	for i := uint32(uint64(key)*0x9e3779b97f4a7c15>>32) & m.mask; ; i = (i + 1) & m.mask {
		s := &m.slots[i]
		if s.key == key+1 {
			return &s.val
		}
		if s.key == 0 {
			s.key = key + 1
			return &s.val
		}
	}
}
