package vfs

import (
	"maps"
	"slices"

	"github.com/heddle-stream/heddle/internal/rng"
)

// Crashable is a Memory that can lose its power. Make one with NewCrashable.
type Crashable struct{ Memory }

// NewCrashable returns an empty file system.
func NewCrashable() *Crashable { return &Crashable{Memory{track: true}} }

// edit is a change of a file: bytes written at off, or a new length off.
type edit struct {
	off    int64
	data   []byte
	resize bool
}

func (e edit) apply(to []byte) []byte {
	size := e.off + int64(len(e.data))
	if e.resize && size < int64(len(to)) {
		clear(to[size:]) // what grows again is zero
		return to[:size]
	}
	if grow := size - int64(len(to)); grow > 0 {
		to = append(to, make([]byte, grow)...)
	}
	copy(to[e.off:], e.data)
	return to
}

// nameEdit is a change of a directory: the file gets the name, instead of the one
// it had, or loses it.
type nameEdit struct {
	name   string
	node   *node
	remove bool
}

func (e nameEdit) apply(to map[string]*node) {
	if e.remove {
		if to[e.name] == e.node {
			delete(to, e.name)
		}
		return
	}
	// A file has one name whatever other changes were forgotten.
	maps.DeleteFunc(to, func(_ string, n *node) bool { return n == e.node })
	to[e.name] = e.node
}

// Kill ends the process that uses the file system, and not the machine: open
// files are dead and locks are free, bytes and names are as last seen, and what
// was not synced may still be lost in a crash.
func (c *Crashable) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kill()
}

func (c *Crashable) kill() {
	c.life++
	clear(c.locks)
}

// Crash ends the machine: like Kill, and of the bytes and names that were not
// synced only some are left, drawn from r. Equal draws of equal histories leave
// equal files.
func (c *Crashable) Crash(r *rng.RNG) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kill()
	for _, name := range slices.Sorted(maps.Keys(c.dirs)) {
		d := c.dirs[name]
		for _, e := range survivors(r, d.pending) {
			e.apply(d.durable)
		}
		d.pending = nil
		d.names = maps.Clone(d.durable)
		for _, base := range slices.Sorted(maps.Keys(d.names)) {
			d.names[base].crash(r)
		}
	}
}

// survivors draws which of some changes have happened: none, all, the first few
// or any. In the last case a change may have overtaken one that came before it.
func survivors[E any](r *rng.RNG, pending []E) []E {
	switch r.IntN(4) {
	case 0:
		return nil
	case 1:
		return pending
	case 2:
		return pending[:r.IntN(len(pending)+1)]
	default:
		var some []E
		for _, e := range pending {
			if r.IntN(2) == 0 {
				some = append(some, e)
			}
		}
		return some
	}
}

func (n *node) crash(r *rng.RNG) {
	for _, e := range survivors(r, n.pending) {
		for _, part := range e.torn(r) {
			n.durable = part.apply(n.durable)
		}
	}
	n.pending = nil
	n.data = slices.Clone(n.durable)
}

// torn draws what is left of a change: all of it, the front, some bytes in the
// middle, or everything except these.
func (e edit) torn(r *rng.RNG) []edit {
	if e.resize || len(e.data) == 0 {
		return []edit{e}
	}
	from := r.IntN(len(e.data) + 1)
	to := from + r.IntN(len(e.data)+1-from)
	part := func(i, j int) edit { return edit{off: e.off + int64(i), data: e.data[i:j]} }
	switch r.IntN(4) {
	case 0:
		return []edit{e}
	case 1:
		return []edit{part(0, from)}
	case 2:
		return []edit{part(from, to)}
	default:
		return []edit{part(0, from), part(to, len(e.data))}
	}
}

// DropDirty does what a failed sync does to a file: the bytes that were not
// synced are still seen, and no later sync makes them survive unless they are
// written again.
func (c *Crashable) DropDirty(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _, n, err := c.existing("dropdirty", name)
	if err == nil {
		n.pending = nil
	}
	return err
}
