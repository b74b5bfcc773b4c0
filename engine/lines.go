package engine

import (
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// linesFile gets lines of JSON, those of a batch in one piece. A nil one takes nothing.
type linesFile struct {
	what, name string
	f          vfs.File
	lock       io.Closer // nil where there are no locks
	at         int64
	buf        []byte
	parts      [][]byte // made by different workers
}

// openLines opens the file behind what it has up to a point of the run, or makes one.
// What comes after that is written again. No name is no file. Nobody else may have it
// open for lines: two runs would write over each other.
func openLines(fs vfs.FS, what, name string, length int64) (*linesFile, error) {
	if name == "" {
		return nil, nil
	}
	o := &linesFile{what: what, name: name, at: length}
	err := o.open(fs)
	if err != nil {
		return nil, errors.Join(o.told(err), o.closeAll())
	}
	return o, nil
}

func (o *linesFile) open(fs vfs.FS) (err error) {
	if o.at > 0 {
		if _, err = fs.Size(o.name); err != nil { // the lock would make the file
			return err
		}
	}
	if o.lock, err = fs.Lock(o.name); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if o.at == 0 {
		if o.f, err = fs.Create(o.name); err != nil {
			return err
		}
		return fs.SyncDir(path.Dir(o.name))
	}
	if o.f, err = fs.Edit(o.name); err != nil {
		return err
	}
	size, err := o.f.Size()
	if err == nil && size < o.at {
		err = fmt.Errorf("it has %d bytes, of which the state directory says that %d were written: it is another file", size, o.at)
	}
	if err != nil {
		return err
	}
	return o.f.Truncate(o.at)
}

// results makes lines of the results of the first done events of a batch.
func (o *linesFile) results(x *txn.Batch, done int, t *team) error {
	if o == nil {
		return nil
	}
	const chunk = 512
	n := (done + chunk - 1) / chunk
	for len(o.parts) < n {
		o.parts = append(o.parts, nil)
	}
	err := t.failing(n, func(_, i int) (err error) {
		part := o.parts[i][:0]
		for e := i * chunk; e < min((i+1)*chunk, done) && err == nil; e++ {
			part, err = x.AppendResult(part, e)
		}
		o.parts[i] = part
		return err
	})
	o.buf = o.buf[:0]
	for _, part := range o.parts[:n] {
		o.buf = append(o.buf, part...)
	}
	return err
}

// discards makes lines of what became no event, and counts them.
func (o *linesFile) discards(x *txn.Batch, info *BatchInfo) {
	if o == nil {
		info.Discarded = x.Feed().Discards()
		return
	}
	o.buf, info.Discarded = x.Letters(o.buf[:0], info.Events)
}

// lines returns the lines of the batch in hand.
func (o *linesFile) lines() []byte {
	if o == nil {
		return nil
	}
	return o.buf
}

// length returns how many bytes the file has.
func (o *linesFile) length() int64 {
	if o == nil {
		return 0
	}
	return o.at
}

// write appends lines.
func (o *linesFile) write(lines []byte) error {
	if o == nil || len(lines) == 0 {
		return nil
	}
	n, err := o.f.WriteAt(lines, o.at)
	o.at += int64(n)
	return o.told(err)
}

func (o *linesFile) sync() error {
	if o == nil {
		return nil
	}
	return o.told(o.f.Sync())
}

func (o *linesFile) close() error {
	if o == nil {
		return nil
	}
	return o.told(o.closeAll())
}

func (o *linesFile) closeAll() (err error) {
	if o.f != nil {
		err = o.f.Close()
	}
	if o.lock != nil {
		err = errors.Join(err, o.lock.Close())
	}
	return err
}

func (o *linesFile) told(err error) error {
	if err != nil {
		return fmt.Errorf("%s %s: %w", o.what, o.name, err)
	}
	return nil
}
