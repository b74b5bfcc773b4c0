package arena

import (
	"reflect"
	"unsafe"
)

// Outside returns a function that tells about how many bytes a value refers to, beside its
// own: those of strings, slices, maps and what pointers point to, one pointer deep. It is
// nil where there never are any.
func Outside[T any]() func(v *T) int {
	of := sizes{}.of(reflect.TypeFor[T]())
	if of == nil {
		return nil
	}
	return func(v *T) int { return of(unsafe.Pointer(v)) }
}

// allocated is what the allocator takes for so many bytes, about.
func allocated(n int) int { return (n + 15) &^ 15 }

// sizes are the functions for types, nil while one is made: then the type holds itself.
type sizes map[reflect.Type]func(p unsafe.Pointer) int

func (s sizes) of(t reflect.Type) func(p unsafe.Pointer) int {
	if _, begun := s[t]; begun {
		return func(p unsafe.Pointer) int { return s[t](p) }
	}
	s[t] = nil
	of := s.outside(t)
	s[t] = of
	if of == nil {
		delete(s, t)
	}
	return of
}

func (s sizes) outside(t reflect.Type) func(p unsafe.Pointer) int {
	switch t.Kind() {
	case reflect.String:
		return func(p unsafe.Pointer) int { return allocated(len(*(*string)(p))) }
	case reflect.Slice:
		return s.slice(t)
	case reflect.Array:
		return s.array(t)
	case reflect.Struct:
		return s.fields(t)
	case reflect.Map:
		const load = 2 // places for each entry, about
		size := load * int(t.Key().Size()+t.Elem().Size())
		return func(p unsafe.Pointer) int { return size * reflect.NewAt(t, p).Elem().Len() }
	case reflect.Pointer:
		size := allocated(int(t.Elem().Size()))
		return func(p unsafe.Pointer) int {
			if *(*unsafe.Pointer)(p) == nil {
				return 0
			}
			return size
		}
	default:
		return nil
	}
}

func (s sizes) slice(t reflect.Type) func(p unsafe.Pointer) int {
	elem, size := s.of(t.Elem()), t.Elem().Size()
	type header struct {
		data     unsafe.Pointer
		len, cap int
	}
	return func(p unsafe.Pointer) int {
		h := (*header)(p)
		n := allocated(h.cap * int(size))
		if elem != nil {
			for i := range h.len {
				n += elem(unsafe.Add(h.data, uintptr(i)*size))
			}
		}
		return n
	}
}

func (s sizes) array(t reflect.Type) func(p unsafe.Pointer) int {
	elem, size := s.of(t.Elem()), t.Elem().Size()
	if elem == nil {
		return nil
	}
	return func(p unsafe.Pointer) int {
		n := 0
		for i := range t.Len() {
			n += elem(unsafe.Add(p, uintptr(i)*size))
		}
		return n
	}
}

func (s sizes) fields(t reflect.Type) func(p unsafe.Pointer) int {
	type field struct {
		of     func(p unsafe.Pointer) int
		offset uintptr
	}
	var fields []field
	for f := range t.Fields() {
		if of := s.of(f.Type); of != nil {
			fields = append(fields, field{of, f.Offset})
		}
	}
	if fields == nil {
		return nil
	}
	return func(p unsafe.Pointer) int {
		n := 0
		for i := range fields {
			n += fields[i].of(unsafe.Add(p, fields[i].offset))
		}
		return n
	}
}
