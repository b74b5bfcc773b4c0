package vfs

import (
	"errors"
	"io"
	"path"
)

// Unfinished is how names of files end that are being written, until [Place] gives them their own. Who
// finds one that nobody writes may remove it.
const Unfinished = ".new"

// Replace writes a file under another name and puts it in place when it is safe: a crash leaves the one that
// was there or the new one.
func Replace(fs FS, name string, write func(w io.Writer) error) error {
	f, err := fs.Create(name + Unfinished)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return Place(fs, name)
}

// Place gives a file that is written and synced its name.
func Place(fs FS, name string) error {
	if err := fs.Rename(name+Unfinished, name); err != nil {
		return err
	}
	return fs.SyncDir(path.Dir(name))
}
