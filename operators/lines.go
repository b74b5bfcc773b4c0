package operators

import (
	"encoding/json"
	"errors"
	"fmt"

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
	t.atEnd(func(int64) error { return out.open(0) }) // also if nothing comes
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

// linesFile is a file that gets lines. It is opened when it is known where it begins.
type linesFile struct {
	fs   vfs.FS
	name string
	out  *vfs.Output
	buf  []byte
}

// open opens the file behind what the last checkpoint knows of, or makes one.
func (o *linesFile) open(length int64) (err error) {
	if o.out == nil {
		o.out, err = vfs.OpenOutput(o.fs, o.name, length)
	}
	return o.told(err)
}

func (o *linesFile) told(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("output %s: %w", o.name, err)
}

// flush writes the lines that are collected. What could not be written is made again from the last
// checkpoint on.
func (o *linesFile) flush() error {
	if err := o.open(0); err != nil {
		return err
	}
	_, err := o.out.Write(o.buf)
	o.buf = o.buf[:0]
	return o.told(err)
}

// last makes last how many bytes are written, which are on disk then.
func (o *linesFile) last(t *task) {
	t.lasts("lines "+o.name, func(w *image.Writer) error {
		if err := o.flush(); err != nil {
			return err
		}
		w.Int(o.out.Length())
		w.Item()
		return o.told(o.out.Sync())
	}, func(r *image.Reader) error {
		if r.Want() {
			return o.open(r.Int())
		}
		return nil
	})
}

// close writes what is collected and gives the file free.
func (o *linesFile) close() error {
	if o.out == nil {
		return nil
	}
	return errors.Join(o.flush(), o.told(o.out.Close()))
}
