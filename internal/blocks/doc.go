// Package blocks is the container of traces and checkpoints: a magic string, then
// blocks, each with its kind, its length and a checksum, compressed or not.
//
//	file   magic (8 bytes, the last of them the version of the format) block...
//	block  kind (1 byte) | length (4, little endian) | CRC-32C of kind and payload (4) | payload
//
// A file that is cut off or damaged anywhere gives an error with file and offset,
// never a wrong block. Integers inside payloads are varints.
package blocks
