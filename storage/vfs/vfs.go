package vfs

import (
	"errors"
	"fmt"
	"io"
	"path"
	"syscall"
)

var (
	// ErrLocked marks the error of Lock when somebody else holds the lock.
	ErrLocked = errors.New("locked: another process or another part of this one uses it")
	// ErrNoSpace marks the error of an operation for which the disk has no room.
	ErrNoSpace error = syscall.ENOSPC
)

// FS is a file system. Its methods may be called from any goroutine. Errors of
// absent and present names match fs.ErrNotExist and fs.ErrExist, those of a full
// disk ErrNoSpace.
type FS interface {
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Create makes a file, or empties the one that is there, and opens it for
	// reading and writing.
	Create(name string) (File, error)
	// Edit opens a file that exists for reading and writing, at its first byte.
	Edit(name string) (File, error)
	// Remove removes a file. Those who have it open keep it.
	Remove(name string) error
	// Rename gives a file another name in the same directory, in place of whatever
	// has that name.
	Rename(from, to string) error
	// MkdirAll makes a directory and those above it, as far as they are absent. When
	// it returns, they survive a crash.
	MkdirAll(dir string) error
	// List returns the names in a directory without their path, sorted. The slice
	// is the caller's.
	List(dir string) ([]string, error)
	// Size returns the length of a file in bytes.
	Size(name string) (int64, error)
	// SyncDir makes the names in a directory survive a crash.
	SyncDir(dir string) error
	// Lock takes the lock with this name, and makes the file that stands for it. It
	// does not wait: if it is held, the error matches ErrLocked. Closing gives it
	// back, and so does the end of the process.
	Lock(name string) (io.Closer, error)
}

// File is an open file. ReadAt and Size may be called from any goroutine, the
// rest from one at a time. Buffers passed in stay the caller's.
type File interface {
	io.ReadWriteCloser // from and to a position of its own, which begins at 0
	io.ReaderAt
	io.WriterAt
	// Size returns the length in bytes.
	Size() (int64, error)
	// Sync makes the bytes and the length survive a crash. After an error the file
	// must not be used any more.
	Sync() error
	// Truncate sets the length; what is added is zero.
	Truncate(size int64) error
	// Preallocate makes the file at least size bytes long and, where the system can,
	// takes the room for them, so that writes below size do not find the disk full.
	// What is added is zero.
	Preallocate(size int64) error
}

// sameDir refuses a rename from one directory to another: no order of syncs
// makes both names survive together.
func sameDir(from, to string) error {
	if path.Dir(from) != path.Dir(to) {
		return fmt.Errorf("rename %s to %s: not in one directory", from, to)
	}
	return nil
}
