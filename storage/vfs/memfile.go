package vfs

import (
	"errors"
	"io"
	"io/fs"
)

// memFile is an open file of a Memory.
type memFile struct {
	m      *Memory
	node   *node
	name   string
	lock   string // what closing gives back
	pos    int64
	life   int
	write  bool
	closed bool
}

var errNegative = errors.New("negative offset or size")

// usable returns nil if the file is open, its process lives and the operation
// is allowed.
func (f *memFile) usable(op string, writes bool, at int64) error {
	var err error
	switch {
	case f.closed || f.life != f.m.life:
		err = fs.ErrClosed
	case writes && !f.write:
		err = fs.ErrPermission
	case at < 0:
		err = errNegative
	default:
		return nil
	}
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

// Read implements File.
func (f *memFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.pos)
	f.pos += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// ReadAt implements File.
func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("read", false, off); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Write implements File.
func (f *memFile) Write(p []byte) (int, error) {
	n, err := f.WriteAt(p, f.pos)
	f.pos += int64(n)
	return n, err
}

// WriteAt implements File.
func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("write", true, off); err != nil {
		return 0, err
	}
	if len(p) > 0 {
		f.m.edit(f.node, edit{off: off, data: p})
	}
	return len(p), nil
}

// Size implements File.
func (f *memFile) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("size", false, 0); err != nil {
		return 0, err
	}
	return int64(len(f.node.data)), nil
}

// Sync implements File.
func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("sync", false, 0); err != nil {
		return err
	}
	for _, e := range f.node.pending {
		f.node.durable = e.apply(f.node.durable)
	}
	f.node.pending = nil
	return nil
}

// Truncate implements File.
func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("truncate", true, size); err != nil {
		return err
	}
	f.m.edit(f.node, edit{resize: true, off: size})
	return nil
}

// Preallocate implements File.
func (f *memFile) Preallocate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("preallocate", true, size); err != nil {
		return err
	}
	if size > int64(len(f.node.data)) {
		f.m.edit(f.node, edit{resize: true, off: size})
	}
	return nil
}

// Close implements File.
func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("close", false, 0); err != nil {
		return err
	}
	f.closed = true
	if f.lock != "" {
		delete(f.m.locks, f.lock)
	}
	return nil
}
