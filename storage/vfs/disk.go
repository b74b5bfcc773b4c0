package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Disk is the file system of the machine.
type Disk struct{}

var _ FS = Disk{}

type diskFile struct{ *os.File }

func opened(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

// Open implements FS.
func (Disk) Open(name string) (File, error) { return opened(os.Open(name)) }

// Create implements FS.
func (Disk) Create(name string) (File, error) {
	return opened(os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644))
}

// Edit implements FS.
func (Disk) Edit(name string) (File, error) { return opened(os.OpenFile(name, os.O_RDWR, 0)) }

// Remove implements FS.
func (Disk) Remove(name string) error { return os.Remove(name) }

// Rename implements FS.
func (Disk) Rename(from, to string) error {
	if err := sameDir(filepath.ToSlash(from), filepath.ToSlash(to)); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// MkdirAll implements FS.
func (d Disk) MkdirAll(dir string) error {
	info, err := os.Stat(dir)
	if err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("a file has this name")}
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	up := filepath.Dir(dir)
	if up != dir {
		if err := d.MkdirAll(up); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.SyncDir(up)
}

// List implements FS.
func (Disk) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Size implements FS.
func (Disk) Size(name string) (int64, error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// SyncDir implements FS.
func (Disk) SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	return errors.Join(err, f.Close())
}

// Lock implements FS. The lock is the system's lock on an open file: it needs no
// cleaning up after a process that was killed.
func (Disk) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
		return f, nil // a device or a pipe is anybody's
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// Size implements File.
func (f diskFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Sync implements File. It leaves out what reading the bytes back does not need,
// such as times, where the system can.
func (f diskFile) Sync() error { return datasync(f.File) }

// Preallocate implements File.
func (f diskFile) Preallocate(size int64) error {
	have, err := f.Size()
	if err != nil || have >= size {
		return err
	}
	return allocate(f.File, have, size)
}
