// Package trace records the input of a run and plays it again: the state at the
// start, the events in their byte form with the punctuations between batches,
// and at the end the hashes of what came out.
//
// # Format
//
// A trace is a magic number and then blocks:
//
//	"heddle" 0x00 0x01                      8 bytes, the last is the version
//	kind  length  crc32c  payload           1 + 4 + 4 + length bytes, repeated
//
// Length and checksum (Castagnoli, of kind and payload) are little-endian.
// Kinds, in the order in which they come:
//
//	H  one header: JSON, see [Header]
//	S  rows of the state at the start: repeated varint length, then a row as
//	   storage.Snapshot gives it; zstd
//	E  one batch: varint number of events, then each as varint type and the
//	   event's byte form; zstd. Its end is the punctuation.
//	F  one footer: JSON, see [Footer]. A trace without one was cut off.
//
// Blocks are at most 1 GiB long, before and after decompression.
package trace
