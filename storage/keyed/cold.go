package keyed

import "slices"

// AddressMax is the largest address of a row in a [Log], and one.
const AddressMax = 1 << addressBits

const (
	addressBits = 36
	addressMask = AddressMax - 1
	coldHash    = 1<<(64-addressBits) - 1 // what of a hash a slot has: the shard gives the rest
	slotsMin    = 64
)

// cold finds the rows of a shard that are in no memory. It is a hash table with open
// addressing whose slots are words, hash<<36 | address, 0 for none: the hash is all that
// is needed to move a slot, and lets hardly any key through that is not there.
type cold struct {
	slots []uint64
	mask  uint32
	used  int
	marks [][]marks // by tracker, of slots
}

// bytes returns how much memory it takes.
func (c *cold) bytes() int64 { return int64(8*len(c.slots) + 16*words(len(c.slots))*len(c.marks)) }

func (c *cold) clear() {
	for i := range c.marks {
		c.marks[i] = nil
	}
	*c = cold{marks: c.marks}
}

// slotOf makes a slot.
func slotOf(hash uint32, address uint64) uint64 {
	return uint64(hash&coldHash)<<addressBits | address
}

// hashOf returns what of its hash a slot has, which gives its home, too.
func hashOf(slot uint64) uint32 { return uint32(slot >> addressBits) }

// next returns the first slot from i on that has the hash, and false when there is none
// before a free one.
func (c *cold) next(i, hash uint32) (at uint32, found bool) {
	if c.used == 0 {
		return 0, false
	}
	for ; c.slots[i&c.mask] != 0; i++ {
		if hashOf(c.slots[i&c.mask]) == hash&coldHash {
			return i & c.mask, true
		}
	}
	return 0, false
}

// at returns the slot with the address, if there is one.
func (c *cold) at(hash uint32, address uint64) (at uint32, found bool) {
	for at, found = c.next(hash, hash); found && c.slots[at]&addressMask != address; {
		at, found = c.next(at+1, hash)
	}
	return at, found
}

// add adds a row that is not there yet and returns its slot.
func (c *cold) add(hash uint32, address uint64) uint32 {
	i := hash & c.mask
	for c.slots[i] != 0 {
		i = (i + 1) & c.mask
	}
	c.slots[i] = slotOf(hash, address)
	c.used++
	return i
}

// full reports whether there have to be more slots before another row comes.
func (c *cold) full() bool { return c.used >= len(c.slots)/8*7 }

// grow doubles the number of slots.
func (c *cold) grow() {
	old, was := c.slots, slices.Clone(c.marks)
	n := max(slotsMin, 2*len(old))
	c.slots, c.mask, c.used = make([]uint64, n), uint32(n-1), 0
	for i := range c.marks {
		c.marks[i] = make([]marks, words(n))
	}
	for i, slot := range old {
		if slot == 0 {
			continue
		}
		j := c.add(hashOf(slot), slot&addressMask)
		for k := range was {
			c.marks[k][j>>6].add(was[k][i>>6].of(uint32(i)), j)
		}
	}
}

// remove frees a slot, and moves those back behind it that would be found earlier then.
func (c *cold) remove(i uint32) {
	c.used--
	for j := i; ; {
		j = (j + 1) & c.mask
		if c.slots[j] == 0 {
			break
		}
		if home := hashOf(c.slots[j]) & c.mask; (j-home)&c.mask < (j-i)&c.mask {
			continue // it would not
		}
		c.slots[i] = c.slots[j]
		for k := range c.marks {
			c.marks[k][i>>6].clear(i)
			c.marks[k][i>>6].add(c.marks[k][j>>6].of(j), i)
		}
		i = j
	}
	c.slots[i] = 0
	for k := range c.marks {
		c.marks[k][i>>6].clear(i)
	}
}
