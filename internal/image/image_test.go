package image

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
)

func items(all [][]byte) func() ([]byte, error) {
	return func() ([]byte, error) {
		if len(all) == 0 {
			return nil, io.EOF
		}
		item := all[0]
		all = all[1:]
		return item, nil
	}
}

func TestWhatWasWrittenIsRead(t *testing.T) {
	var all [][]byte
	w := Writer{Add: func(item []byte) { all = append(all, slices.Clone(item)) }}
	w.Int(-5)
	w.Bool(true)
	w.Bool(false)
	w.Bytes([]byte("abc"))
	w.Item()
	w.Int(2)
	w.Append(func(dst []byte) []byte { return append(dst, 7, 8) })
	w.Item()
	r := Reader{Next: items(all)}
	if !r.Item() || r.Int() != -5 || !r.Bool() || r.Bool() || string(r.Bytes()) != "abc" || len(r.Rest) > 0 {
		t.Fatal(r.Err())
	}
	if !r.Want() || r.Count() != 2 || !bytes.Equal(r.Rest, []byte{7, 8}) || r.Item() || r.Err() != nil {
		t.Fatal(r.Err())
	}
	if r.Want() || !errors.Is(r.Err(), ErrOther) {
		t.Error("an item behind the last one")
	}
}

// Whatever the bytes are, nothing beyond them is read, and a failure stays.
func FuzzRead(f *testing.F) {
	f.Add([]byte{2, 3, 'a', 'b'})
	f.Fuzz(func(t *testing.T, src []byte) {
		r := Reader{Next: items([][]byte{src})}
		for r.Item() && len(r.Rest) > 0 {
			before := len(r.Rest)
			if n := r.Count(); n > before {
				t.Fatalf("%d things in %d bytes", n, before)
			}
			if b := r.Bytes(); len(b) > before {
				t.Fatalf("%d bytes of %d", len(b), before)
			}
			if r.Err() != nil && (len(r.Rest) > 0 || r.Item()) {
				t.Fatal("it goes on after a failure")
			}
		}
	})
}
