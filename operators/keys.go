package operators

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/heddle-stream/heddle/internal/codec"
	"github.com/heddle-stream/heddle/internal/rng"
)

// keyCodec hashes and encodes keys. Hashes are the same in every process, since results
// are in their order.
type keyCodec[K comparable] struct {
	kind  keyKind
	codec codec.Codec[K]
}

type keyKind uint8

const (
	keyPlain keyKind = iota
	keyWord
	keyString
)

func newKeyCodec[K comparable]() (keyCodec[K], error) {
	var k keyCodec[K]
	t := reflect.TypeFor[K]()
	switch {
	case t.Kind() == reflect.String:
		k.kind = keyString
	case t.Size() == 8 && (t.Kind() == reflect.Int64 || t.Kind() == reflect.Uint64 || t.Kind() == reflect.Int || t.Kind() == reflect.Uint):
		k.kind = keyWord
	}
	var err error
	if k.codec, err = codec.Derive[K](); err == nil && hasFloats(t) {
		err = fmt.Errorf("%v has numbers with a fraction, of which not all are equal to themselves: use their bits", t)
	}
	if err != nil {
		return k, fmt.Errorf("key: %w", err)
	}
	return k, nil
}

func hasFloats(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Float32, reflect.Float64:
		return true
	case reflect.Array:
		return hasFloats(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if hasFloats(f.Type) {
				return true
			}
		}
	}
	return false
}

// hash returns 64 mixed bits. The casts are safe because kind was set from K.
func (c *keyCodec[K]) hash(k K) uint64 {
	switch c.kind {
	case keyWord:
		return rng.Mix(*(*uint64)(unsafe.Pointer(&k)) + 0x9e3779b97f4a7c15)
	case keyString:
		return xxh3.HashString(*(*string)(unsafe.Pointer(&k)))
	}
	var buf [64]byte
	return xxh3.Hash(c.codec.Append(buf[:0], &k))
}

// append adds the encoding of a key.
func (c *keyCodec[K]) append(dst []byte, k *K) []byte {
	switch c.kind {
	case keyWord:
		return binary.LittleEndian.AppendUint64(dst, *(*uint64)(unsafe.Pointer(k)))
	case keyString:
		return append(dst, *(*string)(unsafe.Pointer(k))...)
	}
	return c.codec.Append(dst, k)
}

// decode reads what append wrote.
func (c *keyCodec[K]) decode(src []byte) (k K, err error) {
	switch c.kind {
	case keyWord:
		if len(src) != 8 {
			return k, codec.ErrCorrupt
		}
		*(*uint64)(unsafe.Pointer(&k)) = binary.LittleEndian.Uint64(src)
	case keyString:
		*(*string)(unsafe.Pointer(&k)) = string(src)
	default:
		_, err = c.codec.Decode(src, &k)
	}
	return k, err
}

// same reports whether two functions are one value: the same code with the same variables.
func same[F any](a, b F) bool {
	return *(*unsafe.Pointer)(unsafe.Pointer(&a)) == *(*unsafe.Pointer)(unsafe.Pointer(&b))
}

// HashOf returns the hash of a key by which partitions are chosen: of windows that end at the
// same time, that with the lower one fires first.
func HashOf[K comparable](key K) uint64 {
	c, err := newKeyCodec[K]()
	if err != nil {
		panic(err)
	}
	return c.hash(key)
}
