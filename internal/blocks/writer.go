package blocks

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Max is the largest payload in bytes.
const Max = 1 << 30

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(kind byte, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, payload)
}

// Writer writes blocks. After an error it does nothing more; Err and Flush return
// it. One goroutine.
type Writer struct {
	w      *bufio.Writer
	zstd   *zstd.Encoder
	buf    []byte
	offset int64
	err    error
}

// NewWriter starts a file with its magic of 8 bytes.
func NewWriter(w io.Writer, magic string) (*Writer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	b := &Writer{w: bufio.NewWriterSize(w, 1<<16), zstd: enc, offset: int64(len(magic))}
	_, b.err = b.w.WriteString(magic)
	return b, b.err
}

// JSON writes a block that holds a value.
func (b *Writer) JSON(kind byte, v any) {
	if b.err != nil {
		return
	}
	payload, err := json.Marshal(v)
	if err != nil {
		b.err = err
		return
	}
	b.Block(kind, payload)
}

// Block writes a block.
func (b *Writer) Block(kind byte, payload []byte) {
	if b.err != nil {
		return
	}
	if len(payload) > Max {
		b.err = fmt.Errorf("a block of %d bytes: %d at most, use smaller batches", len(payload), Max)
		return
	}
	var head [9]byte
	head[0] = kind
	binary.LittleEndian.PutUint32(head[1:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(head[5:], checksum(kind, payload))
	if _, b.err = b.w.Write(head[:]); b.err == nil {
		_, b.err = b.w.Write(payload)
	}
	b.offset += int64(len(head) + len(payload))
}

// Offset returns where the next block begins.
func (b *Writer) Offset() int64 { return b.offset }

// Trailer writes bytes behind the last block.
func (b *Writer) Trailer(raw []byte) {
	if b.err == nil {
		_, b.err = b.w.Write(raw)
	}
}

// Packed writes a block compressed.
func (b *Writer) Packed(kind byte, plain []byte) {
	if b.err != nil {
		return
	}
	b.buf = b.zstd.EncodeAll(plain, b.buf[:0])
	b.Block(kind, b.buf)
}

// Packer compresses payloads for Block. Any number of goroutines may use one.
type Packer struct{ zstd *zstd.Encoder }

// NewPacker returns a packer for so many goroutines that prefers speed to size.
func NewPacker(goroutines int) (*Packer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(goroutines), zstd.WithEncoderLevel(zstd.SpeedFastest))
	return &Packer{enc}, err
}

// Pack compresses a payload into dst from its front.
func (p *Packer) Pack(dst, plain []byte) []byte { return p.zstd.EncodeAll(plain, dst[:0]) }

// Err returns the first error.
func (b *Writer) Err() error { return b.err }

// Flush hands everything to the underlying writer, which stays open.
func (b *Writer) Flush() error {
	if b.err == nil {
		b.err = b.w.Flush()
	}
	return b.err
}
