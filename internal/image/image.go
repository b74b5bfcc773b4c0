// Package image writes and reads a state as items: byte strings of numbers and bytes, one
// behind the other. Where items go, a checkpoint or memory, is for others to say.
//
// Numbers are zigzag varints, bytes stand behind their length. Reading never trusts: what is not
// there as it should be makes the reader fail, and all that it returns then is zero, so that a
// caller asks once at the end.
package image

import (
	"encoding/binary"
	"errors"
	"io"
)

// ErrOther tells of items that are not what a state was saved as.
var ErrOther = errors.New("not what was saved")

// Writer collects items.
type Writer struct {
	Add func(item []byte) // gets each, which is valid during the call
	buf []byte
}

// Int adds a number to the item.
func (w *Writer) Int(v int64) { w.buf = binary.AppendVarint(w.buf, v) }

// Bool adds whether something is so.
func (w *Writer) Bool(b bool) {
	if b {
		w.Int(1)
	} else {
		w.Int(0)
	}
}

// Bytes adds bytes with their length.
func (w *Writer) Bytes(b []byte) { w.buf = append(binary.AppendUvarint(w.buf, uint64(len(b))), b...) }

// Append lets a function add what the reader knows the end of.
func (w *Writer) Append(add func(dst []byte) []byte) { w.buf = add(w.buf) }

// Item ends the item.
func (w *Writer) Item() {
	w.Add(w.buf)
	w.buf = w.buf[:0]
}

// Reader reads items. The zero value with Next set is ready.
type Reader struct {
	Next func() ([]byte, error) // returns io.EOF behind the last one
	Rest []byte                 // of the item in hand
	err  error
}

// Item goes to the next item. It reports false behind the last one and after a failure.
func (r *Reader) Item() bool {
	if r.err != nil {
		return false
	}
	item, err := r.Next()
	if err != nil {
		if !errors.Is(err, io.EOF) {
			r.err = err
		}
		r.Rest = nil
		return false
	}
	r.Rest = item
	return true
}

// Want goes to the next item, which has to be there.
func (r *Reader) Want() bool {
	if r.Item() {
		return true
	}
	r.Fail()
	return false
}

// Int reads a number.
func (r *Reader) Int() int64 {
	v, n := binary.Varint(r.Rest)
	if n <= 0 {
		r.Fail()
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Bool reads whether something is so.
func (r *Reader) Bool() bool {
	n := r.Int()
	if n != 0 && n != 1 {
		r.Fail()
	}
	return n == 1
}

// Count reads how many things follow in the item, each of at least a byte.
func (r *Reader) Count() int {
	n := r.Int()
	if n < 0 || n > int64(len(r.Rest)) {
		r.Fail()
		return 0
	}
	return int(n)
}

// Bytes reads bytes with their length, which are valid until the next item.
func (r *Reader) Bytes() []byte {
	n, used := binary.Uvarint(r.Rest)
	if used <= 0 || n > uint64(len(r.Rest)-used) {
		r.Fail()
		return nil
	}
	b := r.Rest[used : used+int(n)]
	r.Rest = r.Rest[used+int(n):]
	return b
}

// Decode lets a function read from the front of the item; it returns the rest.
func (r *Reader) Decode(read func(src []byte) ([]byte, error)) {
	if r.err != nil {
		return
	}
	rest, err := read(r.Rest)
	if err != nil {
		r.err = err
	}
	r.Rest = rest
}

// Fail tells that the items are not what was saved.
func (r *Reader) Fail() {
	if r.err == nil {
		r.err = ErrOther
	}
	r.Rest = nil
}

// Err returns the first failure.
func (r *Reader) Err() error { return r.err }
