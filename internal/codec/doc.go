// Package codec turns plain Go values into bytes and back.
//
// A codec is derived once per type by reflection and then runs as a tree of
// closures over memory offsets: no reflection and no boxing per value. Plain
// types are booleans, integers, floats, strings, and arrays, structs and slices
// of plain types. Anything else needs a codec of the user's.
//
// # Format
//
// Unsigned integers are LEB128 varints, signed ones zigzag varints, floats
// eight little-endian bytes (four for float32), booleans one byte, strings and
// slices a varint length and then the contents, those of bytes as they are, arrays and structs their
// elements in order, unexported fields included. One value has one encoding,
// so equal bytes mean equal values and hashes of bytes are hashes of values;
// the two zeros and the NaNs of a float are kept apart by their bits.
//
// Decoding never trusts its input: a length beyond the remaining bytes, an
// integer out of its type's range or an overlong varint is [ErrCorrupt].
package codec
