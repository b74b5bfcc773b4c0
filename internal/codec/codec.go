package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"unsafe"
)

// ErrCorrupt marks bytes that are not the encoding of a value.
var ErrCorrupt = errors.New("corrupt encoding")

// Codec encodes and decodes values of T. Both functions may be called from any
// goroutine.
type Codec[T any] struct {
	// Append adds the encoding of *v to dst and returns the longer slice.
	Append func(dst []byte, v *T) []byte
	// Decode reads a value from the front of src into *v and returns the rest.
	// Strings and slices of the value own their memory.
	Decode func(src []byte, v *T) ([]byte, error)
}

// Derive returns the codec of a plain type, or an error that names the part of
// T which is not plain.
func Derive[T any]() (Codec[T], error) {
	t := reflect.TypeFor[T]()
	node, err := derive(t, t.String())
	if err != nil {
		return Codec[T]{}, err
	}
	return Codec[T]{
		Append: func(dst []byte, v *T) []byte { return node.append(dst, unsafe.Pointer(v)) },
		Decode: func(src []byte, v *T) ([]byte, error) { return node.decode(src, unsafe.Pointer(v)) },
	}, nil
}

// node encodes one part of a value, found at the pointer.
type node struct {
	append func(dst []byte, p unsafe.Pointer) []byte
	decode func(src []byte, p unsafe.Pointer) ([]byte, error)
}

func derive(t reflect.Type, path string) (node, error) {
	switch t.Kind() {
	case reflect.Bool:
		return boolNode, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return signedNode(t.Size()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return unsignedNode(t.Size()), nil
	case reflect.Float32, reflect.Float64:
		return floatNode(t.Size()), nil
	case reflect.String:
		return stringNode, nil
	case reflect.Array:
		return arrayNode(t, path)
	case reflect.Slice:
		return sliceNode(t, path)
	case reflect.Struct:
		return structNode(t, path)
	default:
		return node{}, fmt.Errorf("%s is a %s, which has no derived codec: supply one", path, t.Kind())
	}
}

var boolNode = node{
	append: func(dst []byte, p unsafe.Pointer) []byte {
		if *(*bool)(p) {
			return append(dst, 1)
		}
		return append(dst, 0)
	},
	decode: func(src []byte, p unsafe.Pointer) ([]byte, error) {
		if len(src) == 0 || src[0] > 1 {
			return nil, ErrCorrupt
		}
		*(*bool)(p) = src[0] == 1
		return src[1:], nil
	},
}

func loadSigned(p unsafe.Pointer, size uintptr) int64 {
	switch size {
	case 1:
		return int64(*(*int8)(p))
	case 2:
		return int64(*(*int16)(p))
	case 4:
		return int64(*(*int32)(p))
	default:
		return *(*int64)(p)
	}
}

func storeBits(p unsafe.Pointer, size uintptr, v uint64) {
	switch size {
	case 1:
		*(*uint8)(p) = uint8(v)
	case 2:
		*(*uint16)(p) = uint16(v)
	case 4:
		*(*uint32)(p) = uint32(v)
	default:
		*(*uint64)(p) = v
	}
}

func signedNode(size uintptr) node {
	return node{
		append: func(dst []byte, p unsafe.Pointer) []byte {
			return binary.AppendVarint(dst, loadSigned(p, size))
		},
		decode: func(src []byte, p unsafe.Pointer) ([]byte, error) {
			u, rest, err := uvarint(src)
			if err != nil {
				return nil, err
			}
			v := int64(u>>1) ^ -int64(u&1)
			if limit := int64(1) << (8*size - 1); size < 8 && (v < -limit || v >= limit) {
				return nil, ErrCorrupt
			}
			storeBits(p, size, uint64(v))
			return rest, nil
		},
	}
}

func unsignedNode(size uintptr) node {
	load := func(p unsafe.Pointer) uint64 {
		switch size {
		case 1:
			return uint64(*(*uint8)(p))
		case 2:
			return uint64(*(*uint16)(p))
		case 4:
			return uint64(*(*uint32)(p))
		default:
			return *(*uint64)(p)
		}
	}
	return node{
		append: func(dst []byte, p unsafe.Pointer) []byte { return binary.AppendUvarint(dst, load(p)) },
		decode: func(src []byte, p unsafe.Pointer) ([]byte, error) {
			u, rest, err := uvarint(src)
			if err != nil {
				return nil, err
			}
			if size < 8 && u>>(8*size) != 0 {
				return nil, ErrCorrupt
			}
			storeBits(p, size, u)
			return rest, nil
		},
	}
}

func floatNode(size uintptr) node {
	if size == 4 {
		return node{
			append: func(dst []byte, p unsafe.Pointer) []byte {
				return binary.LittleEndian.AppendUint32(dst, math.Float32bits(*(*float32)(p)))
			},
			decode: func(src []byte, p unsafe.Pointer) ([]byte, error) {
				if len(src) < 4 {
					return nil, ErrCorrupt
				}
				*(*float32)(p) = math.Float32frombits(binary.LittleEndian.Uint32(src))
				return src[4:], nil
			},
		}
	}
	return node{
		append: func(dst []byte, p unsafe.Pointer) []byte {
			return binary.LittleEndian.AppendUint64(dst, math.Float64bits(*(*float64)(p)))
		},
		decode: func(src []byte, p unsafe.Pointer) ([]byte, error) {
			if len(src) < 8 {
				return nil, ErrCorrupt
			}
			*(*float64)(p) = math.Float64frombits(binary.LittleEndian.Uint64(src))
			return src[8:], nil
		},
	}
}

var stringNode = node{
	append: func(dst []byte, p unsafe.Pointer) []byte {
		s := *(*string)(p)
		return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
	},
	decode: func(src []byte, p unsafe.Pointer) ([]byte, error) {
		b, rest, err := counted(src)
		if err == nil {
			*(*string)(p) = string(b)
		}
		return rest, err
	},
}

// counted reads bytes with their length before them.
func counted(src []byte) (b, rest []byte, err error) {
	n, rest, err := uvarint(src)
	if err != nil || n > uint64(len(rest)) {
		return nil, nil, ErrCorrupt
	}
	return rest[:n], rest[n:], nil
}

func arrayNode(t reflect.Type, path string) (node, error) {
	elem, err := derive(t.Elem(), path+"[i]")
	if err != nil {
		return node{}, err
	}
	size, n := t.Elem().Size(), t.Len()
	return node{
		append: func(dst []byte, p unsafe.Pointer) []byte {
			for i := range n {
				dst = elem.append(dst, unsafe.Add(p, uintptr(i)*size))
			}
			return dst
		},
		decode: func(src []byte, p unsafe.Pointer) ([]byte, error) {
			var err error
			for i := range n {
				if src, err = elem.decode(src, unsafe.Add(p, uintptr(i)*size)); err != nil {
					return nil, err
				}
			}
			return src, nil
		},
	}, nil
}

// sliceHeader is the memory of a slice; its first word keeps the array alive.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

func sliceNode(t reflect.Type, path string) (node, error) {
	if t.Elem().Kind() == reflect.Uint8 {
		return bytesNode, nil
	}
	elem, err := derive(t.Elem(), path+"[i]")
	if err != nil {
		return node{}, err
	}
	size := t.Elem().Size()
	if size == 0 {
		return node{}, fmt.Errorf("%s has elements of size zero: supply a codec", path)
	}
	return node{
		append: func(dst []byte, p unsafe.Pointer) []byte {
			h := (*sliceHeader)(p)
			dst = binary.AppendUvarint(dst, uint64(h.len))
			for i := range h.len {
				dst = elem.append(dst, unsafe.Add(h.data, uintptr(i)*size))
			}
			return dst
		},
		decode: func(src []byte, p unsafe.Pointer) ([]byte, error) {
			n, rest, err := uvarint(src)
			// Each element takes at least one byte, which bounds what we allocate.
			if err != nil || n > uint64(len(rest)) {
				return nil, ErrCorrupt
			}
			s := reflect.MakeSlice(t, int(n), int(n))
			for i := range int(n) {
				if rest, err = elem.decode(rest, unsafe.Add(s.UnsafePointer(), uintptr(i)*size)); err != nil {
					return nil, err
				}
			}
			reflect.NewAt(t, p).Elem().Set(s)
			return rest, nil
		},
	}, nil
}

// bytesNode is a slice of bytes, which are stored as they are.
var bytesNode = node{
	append: func(dst []byte, p unsafe.Pointer) []byte {
		b := *(*[]byte)(p)
		return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
	},
	decode: func(src []byte, p unsafe.Pointer) ([]byte, error) {
		b, rest, err := counted(src)
		if err == nil {
			*(*[]byte)(p) = append(make([]byte, 0, len(b)), b...) // also of length 0 it is not nil
		}
		return rest, err
	},
}

func structNode(t reflect.Type, path string) (node, error) {
	type field struct {
		node
		offset uintptr
	}
	var fields []field
	for f := range t.Fields() {
		n, err := derive(f.Type, path+"."+f.Name)
		if err != nil {
			return node{}, err
		}
		fields = append(fields, field{n, f.Offset})
	}
	if len(fields) == 1 && fields[0].offset == 0 {
		return fields[0].node, nil
	}
	return node{
		append: func(dst []byte, p unsafe.Pointer) []byte {
			for i := range fields {
				dst = fields[i].append(dst, unsafe.Add(p, fields[i].offset))
			}
			return dst
		},
		decode: func(src []byte, p unsafe.Pointer) ([]byte, error) {
			var err error
			for i := range fields {
				if src, err = fields[i].decode(src, unsafe.Add(p, fields[i].offset)); err != nil {
					return nil, err
				}
			}
			return src, nil
		},
	}, nil
}

// uvarint reads a varint in its shortest form.
func uvarint(src []byte) (uint64, []byte, error) {
	u, n := binary.Uvarint(src)
	if n <= 0 || (n > 1 && src[n-1] == 0) {
		return 0, nil, ErrCorrupt
	}
	return u, src[n:], nil
}

// Uvarint reads a varint from the front of src and returns the rest.
func Uvarint(src []byte) (uint64, []byte, error) { return uvarint(src) }
