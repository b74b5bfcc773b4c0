package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"sync"
)

// Op is an operation that is about to be done.
type Op struct {
	N    int    // operations are counted from 1
	Kind string // "open", "create", "edit", "remove", "rename", "mkdir", "list", "size", "syncdir", "lock", "read", "write", "sync", "truncate", "preallocate", "close"
	Name string // the file, by the name that it has now; of a rename the old one
}

func (o Op) String() string { return fmt.Sprintf("operation %d, %s %s", o.N, o.Kind, o.Name) }

// Faulty is a file system in which things go wrong on demand. Make one with
// NewFaulty. Its methods may be called from any goroutine; the hook runs in the
// one that does the operation, one at a time.
type Faulty struct {
	fs     FS
	mu     sync.Mutex
	n      int
	hook   func(Op) error
	failAt map[int]error
	short  map[int]bool
	space  int64
	full   bool // space is counted
	files  map[string]*health
}

var _ FS = (*Faulty)(nil)

// health is shared by all who have a file open.
type health struct {
	name   string // as it is now
	poison error
}

// NewFaulty returns a layer on top of a file system, without faults.
func NewFaulty(below FS) *Faulty {
	return &Faulty{fs: below, failAt: map[int]error{}, short: map[int]bool{}, files: map[string]*health{}}
}

// SetHook has each operation shown to the hook before it is done. If the hook
// returns an error, the operation is not done and returns it. The hook must not
// use this file system.
func (f *Faulty) SetHook(hook func(Op) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = hook
}

// FailAt makes operation n fail with the error, undone.
func (f *Faulty) FailAt(n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failAt[n] = err
}

// ShortAt makes operation n write half of its bytes and return io.ErrShortWrite,
// if it is a write.
func (f *Faulty) ShortAt(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.short[n] = true
}

// SetSpace makes the disk full after that many more bytes are written, wherever
// they go. The write that meets the end writes what fits. Preallocate needs room
// for what it adds and takes none of it.
func (f *Faulty) SetSpace(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.space, f.full = bytes, true
}

// Heal takes all faults away, those of files whose sync failed too. The hook and
// the count of operations stay.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = false
	clear(f.failAt)
	clear(f.short)
	for _, h := range f.files {
		h.poison = nil
	}
}

// Ops returns how many operations there were.
func (f *Faulty) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// before counts an operation, and returns an error if it must not be done.
func (f *Faulty) before(kind, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.count(kind, name)
	return err
}

// count is before, and returns whether the operation is to be cut short. The mutex
// is held.
func (f *Faulty) count(kind, name string) (short bool, err error) {
	f.n++
	if f.hook != nil {
		if err := f.hook(Op{f.n, kind, name}); err != nil {
			return false, err
		}
	}
	if err := f.failAt[f.n]; err != nil {
		return false, &fs.PathError{Op: kind, Path: name, Err: err}
	}
	return f.short[f.n], nil
}

// health returns the health of a file, of a new one if it was just made.
func (f *Faulty) health(name string, made bool) *health {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.files[name]
	if h == nil || made {
		h = &health{name: name}
		f.files[name] = h
	}
	return h
}

func (f *Faulty) open(kind, name string, open func(string) (File, error)) (File, error) {
	if err := f.before(kind, name); err != nil {
		return nil, err
	}
	file, err := open(name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{f: f, file: file, health: f.health(name, false)}, nil
}

// Open implements FS.
func (f *Faulty) Open(name string) (File, error) { return f.open("open", name, f.fs.Open) }

// Create implements FS.
func (f *Faulty) Create(name string) (File, error) { return f.open("create", name, f.fs.Create) }

// Edit implements FS.
func (f *Faulty) Edit(name string) (File, error) { return f.open("edit", name, f.fs.Edit) }

// Remove implements FS.
func (f *Faulty) Remove(name string) error {
	if err := f.before("remove", name); err != nil {
		return err
	}
	err := f.fs.Remove(name)
	if err == nil {
		f.health(name, true)
	}
	return err
}

// Rename implements FS.
func (f *Faulty) Rename(from, to string) error {
	if err := f.before("rename", from); err != nil {
		return err
	}
	if err := f.fs.Rename(from, to); err != nil {
		return err
	}
	h := f.health(from, false)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.files, from)
	f.files[to] = h
	h.name = to
	return nil
}

// MkdirAll implements FS.
func (f *Faulty) MkdirAll(dir string) error {
	if err := f.before("mkdir", dir); err != nil {
		return err
	}
	return f.fs.MkdirAll(dir)
}

// List implements FS.
func (f *Faulty) List(dir string) ([]string, error) {
	if err := f.before("list", dir); err != nil {
		return nil, err
	}
	return f.fs.List(dir)
}

// Size implements FS.
func (f *Faulty) Size(name string) (int64, error) {
	if err := f.before("size", name); err != nil {
		return 0, err
	}
	return f.fs.Size(name)
}

// SyncDir implements FS.
func (f *Faulty) SyncDir(dir string) error {
	if err := f.before("syncdir", dir); err != nil {
		return err
	}
	return f.fs.SyncDir(dir)
}

// Lock implements FS.
func (f *Faulty) Lock(name string) (io.Closer, error) {
	if err := f.before("lock", name); err != nil {
		return nil, err
	}
	return f.fs.Lock(name)
}

// take returns how many of n bytes may still be written.
func (f *Faulty) take(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.full {
		return n
	}
	n = int(min(int64(n), f.space))
	f.space -= int64(n)
	return n
}

func (f *Faulty) fits(n int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.full || n <= f.space
}
