package engine

import (
	"fmt"

	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// linesFile gets lines of JSON, those of a batch in one piece. A nil one takes nothing.
type linesFile struct {
	what, name string
	out        *vfs.Output
	buf        []byte
	parts      [][]byte // made by different workers
}

// openLines opens the file behind what it has up to a point of the run, or makes one.
// What comes after that is written again. No name is no file.
func openLines(fs vfs.FS, what, name string, length int64) (*linesFile, error) {
	if name == "" {
		return nil, nil
	}
	o := &linesFile{what: what, name: name}
	var err error
	o.out, err = vfs.OpenOutput(fs, name, length)
	if err != nil {
		return nil, o.told(err)
	}
	return o, nil
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
	return o.out.Length()
}

// write appends lines.
func (o *linesFile) write(lines []byte) error {
	if o == nil || len(lines) == 0 {
		return nil
	}
	_, err := o.out.Write(lines)
	return o.told(err)
}

func (o *linesFile) sync() error {
	if o == nil {
		return nil
	}
	return o.told(o.out.Sync())
}

func (o *linesFile) close() error {
	if o == nil {
		return nil
	}
	return o.told(o.out.Close())
}

func (o *linesFile) told(err error) error {
	if err != nil {
		return fmt.Errorf("%s %s: %w", o.what, o.name, err)
	}
	return nil
}
