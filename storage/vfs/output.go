package vfs

import (
	"errors"
	"fmt"
	"io"
	"path"
)

// Output is a file to which one process adds, and of which another one that goes on after a crash knows how much
// counts. One goroutine uses it.
type Output struct {
	f    File
	lock io.Closer // nil where there are no locks
	at   int64
}

// OpenOutput opens a file behind its first length bytes, and cuts off what follows: that is written again.
// Without a length it is made, or emptied. Nobody else may have it open so: two would write over
// each other.
func OpenOutput(fs FS, name string, length int64) (*Output, error) {
	o := &Output{at: length}
	if err := o.open(fs, name); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

func (o *Output) open(fs FS, name string) (err error) {
	size := int64(0)
	if o.at > 0 { // the lock would make the file
		if size, err = fs.Size(name); err != nil {
			return err
		}
	}
	if size < o.at {
		return fmt.Errorf("it has %d bytes, of which the state directory says that %d were written: it is another file", size, o.at)
	}
	if o.lock, err = fs.Lock(name); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if o.at == 0 {
		if o.f, err = fs.Create(name); err != nil {
			return err
		}
		return fs.SyncDir(path.Dir(name))
	}
	if o.f, err = fs.Edit(name); err != nil {
		return err
	}
	return o.f.Truncate(o.at)
}

// Write adds bytes at the end.
func (o *Output) Write(b []byte) (n int, err error) {
	n, err = o.f.WriteAt(b, o.at)
	o.at += int64(n)
	return n, err
}

// Length returns how many bytes the file has.
func (o *Output) Length() int64 { return o.at }

// Sync makes the bytes survive a crash.
func (o *Output) Sync() error { return o.f.Sync() }

// Close gives the file free.
func (o *Output) Close() (err error) {
	if o.f != nil {
		err = o.f.Close()
	}
	if o.lock != nil {
		err = errors.Join(err, o.lock.Close())
	}
	return err
}
