package operators

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/heddle-stream/heddle/internal/image"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// Lines ends a stream with a file: line adds what stands for an item to dst, without its end,
// and returns the longer slice. They stand in the order in which items come. A file that is there
// is written anew; a job that is kept goes on behind what its last checkpoint knows of, so
// that each item is there once, whatever happened. Nobody else may have the file open for lines.
func Lines[T any](s Stream[T], name, file string, line func(dst []byte, item *T, time int64) ([]byte, error)) {
	add[T, T](s, name, plan.Sink, plan.Shuffle, &linesOp[T]{file: file, line: line})
}

type linesOp[T any] struct {
	emits[T]
	file string
	line func([]byte, *T, int64) ([]byte, error)
}

// OneKey reports that the operator wants all items in one place.
func (op *linesOp[T]) OneKey() bool { return true }

func (op *linesOp[T]) build(t *task, _ any) []any {
	c, out := t.counters(), &linesFile{fs: t.stage.e.env.FS, name: op.file}
	out.last(t)
	t.stage.e.closing = append(t.stage.e.closing, out.close)
	t.atEnd(func(int64) error { return out.open() }) // also if nothing comes
	return []any{inlet[T](taker[T](func(b *Block[T]) (err error) {
		c.In.Add(int64(len(b.Items)))
		for i := range b.Items {
			if out.buf, err = op.line(out.buf, &b.Items[i], b.Times[i]); err != nil {
				return err
			}
			out.buf = append(out.buf, '\n')
		}
		if len(out.buf) >= linesBuffer {
			return out.flush()
		}
		return nil
	}))}
}

// JSON is a line for [Lines]: the item as a JSON object, as encoding/json makes it.
func JSON[T any](dst []byte, item *T, _ int64) ([]byte, error) {
	text, err := json.Marshal(item)
	return append(dst, text...), err
}

// linesBuffer is about how many bytes are written at once.
const linesBuffer = 256 << 10

// linesFile is a file that gets lines.
type linesFile struct {
	fs   vfs.FS
	name string
	f    vfs.File // nil before it is open
	lock io.Closer
	at   int64 // bytes written
	buf  []byte
}

// open opens the file behind what the last checkpoint knows of, or makes one.
func (o *linesFile) open() (err error) {
	if o.f != nil {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("output %s: %w", o.name, err)
		}
	}()
	size := int64(0)
	if o.at > 0 { // before the lock, which would make the file
		if size, err = o.fs.Size(o.name); err != nil {
			return err
		}
	}
	if size < o.at {
		return fmt.Errorf("it has %d bytes, of which the state directory says that %d were written: it is another file", size, o.at)
	}
	if o.lock, err = o.fs.Lock(o.name); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if o.at > 0 {
		if o.f, err = o.fs.Edit(o.name); err == nil {
			err = o.f.Truncate(o.at)
		}
		return err
	}
	if o.f, err = o.fs.Create(o.name); err == nil {
		err = o.fs.SyncDir(path.Dir(o.name))
	}
	return err
}

// flush writes the lines that are collected.
func (o *linesFile) flush() error {
	if err := o.open(); err != nil {
		return err
	}
	n, err := o.f.WriteAt(o.buf, o.at)
	o.at += int64(n)
	if o.buf = o.buf[:0]; err != nil { // what was not written is made again from the last checkpoint on
		return fmt.Errorf("output %s: %w", o.name, err)
	}
	return nil
}

// last makes last how many bytes are written, which are on disk then.
func (o *linesFile) last(t *task) {
	t.lasts("lines "+o.name, func(w *image.Writer) error {
		if err := o.flush(); err != nil {
			return err
		}
		if err := o.f.Sync(); err != nil {
			return fmt.Errorf("output %s: %w", o.name, err)
		}
		w.Int(o.at)
		w.Item()
		return nil
	}, func(r *image.Reader) error {
		r.Want()
		o.at = r.Int()
		return o.open()
	})
}

// close writes what is collected and gives the file free.
func (o *linesFile) close() error {
	if o.f == nil {
		return nil
	}
	err := errors.Join(o.flush(), o.f.Close())
	if o.lock != nil {
		err = errors.Join(err, o.lock.Close())
	}
	return err
}
