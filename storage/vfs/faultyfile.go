package vfs

import (
	"io"
	"io/fs"
)

// faultyFile is an open file of a Faulty.
type faultyFile struct {
	f      *Faulty
	file   File
	health *health
}

// before is count of the file system. A file may have been renamed since it was
// opened.
func (f *faultyFile) before(kind string) (short bool, err error) {
	f.f.mu.Lock()
	defer f.f.mu.Unlock()
	return f.f.count(kind, f.health.name)
}

// full is the error of a file for which there is no room.
func (f *faultyFile) full(kind string) error {
	f.f.mu.Lock()
	defer f.f.mu.Unlock()
	return &fs.PathError{Op: kind, Path: f.health.name, Err: ErrNoSpace}
}

// Read implements File.
func (f *faultyFile) Read(p []byte) (int, error) {
	if _, err := f.before("read"); err != nil {
		return 0, err
	}
	return f.file.Read(p)
}

// ReadAt implements File.
func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	if _, err := f.before("read"); err != nil {
		return 0, err
	}
	return f.file.ReadAt(p, off)
}

// Write implements File.
func (f *faultyFile) Write(p []byte) (int, error) { return f.write(p, f.file.Write) }

// WriteAt implements File.
func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	return f.write(p, func(p []byte) (int, error) { return f.file.WriteAt(p, off) })
}

func (f *faultyFile) write(p []byte, write func([]byte) (int, error)) (int, error) {
	short, err := f.before("write")
	if err != nil {
		return 0, err
	}
	fits := p
	if short {
		fits, err = p[:len(p)/2], io.ErrShortWrite
	}
	if n := f.f.take(len(fits)); n < len(fits) {
		fits, err = fits[:n], f.full("write")
	}
	n, failed := write(fits)
	if failed != nil {
		err = failed
	}
	return n, err
}

// Size implements File.
func (f *faultyFile) Size() (int64, error) {
	if _, err := f.before("size"); err != nil {
		return 0, err
	}
	return f.file.Size()
}

// Sync implements File. Once it has failed it fails for ever, for everybody who
// opens the file.
func (f *faultyFile) Sync() error {
	_, err := f.before("sync")
	f.f.mu.Lock()
	defer f.f.mu.Unlock()
	if f.health.poison != nil {
		return f.health.poison
	}
	if err == nil {
		err = f.file.Sync()
	}
	f.health.poison = err
	return err
}

// Truncate implements File.
func (f *faultyFile) Truncate(size int64) error {
	if _, err := f.before("truncate"); err != nil {
		return err
	}
	return f.file.Truncate(size)
}

// Preallocate implements File.
func (f *faultyFile) Preallocate(size int64) error {
	if _, err := f.before("preallocate"); err != nil {
		return err
	}
	have, err := f.file.Size()
	if err != nil {
		return err
	}
	if size > have && !f.f.fits(size-have) {
		return f.full("preallocate")
	}
	return f.file.Preallocate(size)
}

// Close implements File.
func (f *faultyFile) Close() error {
	if _, err := f.before("close"); err != nil {
		return err
	}
	return f.file.Close()
}
