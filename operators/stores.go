package operators

import (
	"fmt"
	"math/bits"
	"net/url"
	"os"
	"path"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/heddle-stream/heddle/internal/image"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/storage/window"
)

// makeDir makes the directory for contents of windows, if there are any.
func (e *Exec) makeDir() (err error) {
	for _, v := range e.g.Vertices() {
		if _, ok := v.Op.(interface{ HoldsWindows() }); ok {
			e.windowed++
		}
		if _, ok := v.Op.(interface{ partial() }); ok {
			e.scratch += int64(plan.Parallelism.Of(e.g, v.ID)) * window.LimitMin
		}
	}
	if e.windowed == 0 {
		return nil
	}
	e.dir = e.env.Dir
	if _, onDisk := e.env.FS.(vfs.Disk); e.dir == "" && !onDisk {
		e.dir, e.env.Dir = "windows", "windows"
	}
	if e.dir != "" {
		return e.env.FS.MkdirAll(e.dir)
	}
	if e.dir, err = os.MkdirTemp("", "heddle-windows-"); err != nil {
		return fmt.Errorf("directory for windows that memory has no room for: %w: TMPDIR says where", err)
	}
	return nil
}

// fileName returns how files of a vertex begin: any name may be one.
func fileName(id plan.ID) string {
	name := url.PathEscape(string(id))
	if most := 80; len(name) > most {
		name = fmt.Sprintf("%s-%016x", name[:most], xxh3.HashString(name))
	}
	return name
}

// storeOptions returns the options of the stores of a task.
func (t *task) storeOptions() window.Options {
	e := t.stage.e
	share := plan.MemoryShare.Of(e.g, t.vertex)
	if share == 0 {
		share = 1 / float64(max(1, e.windowed))
	}
	return window.Options{
		Limit: int64(share * float64(e.env.MemoryLimit-e.scratch) / float64(t.partitions)),
		FS:    e.env.FS, Keep: e.env.Keep, Name: path.Join(e.dir, fmt.Sprint(fileName(t.vertex), "-", t.partition)), Shared: t.bits(),
	}
}

// bits is how many upper bits of a hash all keys of the task have in common.
func (t *task) bits() uint { return uint(bits.Len(uint(t.partitions)) - 1) }

// lists makes a store of the vertex that is built. Shape tells of what form its contents are.
func (t *task) lists(shape string) window.ListStore {
	o := t.storeOptions()
	s, err := t.stage.e.env.Stores.Lists(o)
	t.keeps(s, err, &o, shape)
	return s
}

// accumulators makes a store for values of so many bytes.
func (t *task) accumulators(width int, merge func(into, from []byte), shape string) window.AccumulatorStore {
	o := t.storeOptions()
	s, err := t.stage.e.env.Stores.Accumulators(o, width, merge)
	t.keeps(s, err, &o, shape)
	return s
}

// unaligned makes a store for windows of which each key has its own.
func (t *task) unaligned(width int, merge func(into, from []byte), shape string) window.UnalignedStore {
	o := t.storeOptions()
	s, err := t.stage.e.env.Stores.Unaligned(o, width, merge)
	t.keeps(s, err, &o, shape)
	return s
}

// keeps registers a store, whose contents last, or why there is none.
func (t *task) keeps(s window.Store, err error, o *window.Options, shape string) {
	e := t.stage.e
	if err != nil {
		e.failed = append(e.failed, fmt.Errorf("%s: a store for windows: %w", t.vertex, err))
		return
	}
	t.uses(s, o)
	e.arbiter.adds(s, o, t)
	if e.env.Keep {
		e.kept = append(e.kept, s)
		t.lasts("windows "+shape, func(w *image.Writer) error { return s.Save(w.Add) }, func(r *image.Reader) error { return s.Load(r.Next) })
	}
}

// uses registers a store that is empty between two batches.
func (t *task) uses(s window.Store, o *window.Options) {
	e := t.stage.e
	e.windowLimit += max(o.Limit, window.LimitMin)
	e.stores[t.vertex] = append(e.stores[t.vertex], s)
}

// Stores returns what the stores of each vertex that keeps windows did.
func (e *Exec) Stores() map[plan.ID]window.Stats {
	all := map[plan.ID]window.Stats{}
	for id, stores := range e.stores {
		var sum window.Stats
		for _, s := range stores {
			sum.Add(s.Stats())
		}
		all[id] = sum
	}
	return all
}

// WindowLimit returns how many bytes of memory all stores together may take: what the job has for that, or more if
// its stores need more to work.
func (e *Exec) WindowLimit() int64 { return e.windowLimit }

// Sweep removes files of windows that belong to nobody, which a process left that was killed: before
// the first batch, and after Load if there is something to load.
func (e *Exec) Sweep() error {
	if e.dir == "" {
		return nil
	}
	names, err := e.env.FS.List(e.dir)
	if err != nil {
		return err
	}
	var wanted []string
	for _, s := range e.kept {
		for _, file := range s.Files() {
			wanted = append(wanted, path.Base(file))
		}
	}
	for _, name := range names {
		if !slices.Contains(wanted, name) {
			if err := e.env.FS.Remove(path.Join(e.dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Release gives back what only the state before the last one that was saved needed: that one counts
// now.
func (e *Exec) Release() error {
	for _, s := range e.kept {
		if err := s.Release(); err != nil {
			return err
		}
	}
	return nil
}
