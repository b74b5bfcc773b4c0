// Package arena keeps per-batch memory: slices that are filled, read, emptied
// and filled again, so that a steady stream allocates nothing.
//
// A slab that holds pointers must be cleared when a batch ends, or what it
// held stays alive until overwritten; one without pointers need not be touched.
package arena

import (
	"reflect"
	"unsafe"
)

// Slab is a growing slice owned by one worker, padded so that neighbours in an
// array do not share a cache line. Not safe for concurrent use.
type Slab[T any] struct {
	Items []T
	_     [104]byte
}

// Reset empties the slab and keeps its memory. When the items hold pointers
// they are zeroed, so that the collector can free what they pointed to.
func (s *Slab[T]) Reset(pointers bool) {
	if pointers {
		clear(s.Items)
	}
	s.Items = s.Items[:0]
}

// Resize returns s with length n, reusing its memory when it is large enough.
// The contents are unspecified. Growth leaves a quarter spare, so that batches
// of slightly different size do not allocate.
func Resize[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	return make([]T, n, n+n/4)
}

// HasPointers reports whether values of type T refer to other memory.
func HasPointers[T any]() bool {
	return holdsPointers(reflect.TypeFor[T]())
}

func holdsPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && holdsPointers(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if holdsPointers(f.Type) {
				return true
			}
		}
		return false
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	default:
		return true
	}
}

// hugePage is the size of a huge page on the machines that matter here.
const hugePage = 2 << 20

// MakeHuge returns a zeroed slice of length 0 with room for n items, on huge
// pages when it is large and the system has them. Tables of many megabytes that
// are read at random need them: with small pages each access also misses the
// translation buffer, which costs more than the data.
func MakeHuge[T any](n int) []T {
	s := make([]T, 0, n)
	if size := uintptr(n) * unsafe.Sizeof(*new(T)); size >= hugePage/8 {
		adviseHuge(unsafe.Pointer(unsafe.SliceData(s)), size)
	}
	return s
}

// AppendHuge appends like append, and grows into huge pages.
func AppendHuge[T any](s []T, item T) []T {
	if len(s) == cap(s) {
		bigger := MakeHuge[T](max(16, 2*cap(s)))
		s = append(bigger, s...)
	}
	return append(s, item)
}
