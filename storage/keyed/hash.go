package keyed

import (
	"hash/maphash"
	"math/bits"
	"reflect"
	"unsafe"
)

type hashKind uint8

const (
	hashGeneral hashKind = iota
	hashWord8
	hashWord4
	hashString
)

// hasher maps keys to 32 well-mixed bits, the upper ones choosing the shard and
// the lower ones the place in its index. It is seeded anew in each process, so
// that nobody can send keys which collide; nothing that outlives the process or
// reaches a result may depend on it.
type hasher[K comparable] struct {
	kind hashKind
	seed maphash.Seed
	salt uint64
}

func newHasher[K comparable]() hasher[K] {
	h := hasher[K]{seed: maphash.MakeSeed()}
	h.salt = maphash.Comparable(h.seed, 0)
	switch t := reflect.TypeFor[K](); t.Kind() {
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		h.kind = hashWord8
	case reflect.Int32, reflect.Uint32:
		h.kind = hashWord4
	case reflect.String:
		h.kind = hashString
	}
	return h
}

// sum hashes the key. The casts are safe because kind was set from K.
func (h *hasher[K]) sum(k K) uint32 {
	switch h.kind {
	case hashWord4:
		return h.word(uint64(*(*uint32)(unsafe.Pointer(&k))))
	case hashWord8:
		return h.word(*(*uint64)(unsafe.Pointer(&k)))
	case hashString:
		return uint32(maphash.String(h.seed, *(*string)(unsafe.Pointer(&k))))
	default:
		return uint32(maphash.Comparable(h.seed, k))
	}
}

// word hashes a word by one folded 64x64 multiplication: each input bit reaches
// each output bit.
func (h *hasher[K]) word(x uint64) uint32 {
	hi, lo := bits.Mul64(x^h.salt, 0x9e3779b97f4a7c15)
	return uint32(hi ^ lo)
}
