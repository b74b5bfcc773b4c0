package blocks

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// CorruptError tells where a file is not what it should be.
type CorruptError struct {
	File   string
	Offset int64
	What   string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: offset %d: %s", e.File, e.Offset, e.What)
}

// Reader reads blocks. One goroutine.
type Reader struct {
	Kind    byte   // of the block in hand
	Payload []byte // of the block in hand, valid until Next

	Version byte // of the format

	file   string
	r      *bufio.Reader
	zstd   *zstd.Decoder
	offset int64
	plain  []byte
	ahead  bool // the block in hand was read and not used
}

// NewReader starts reading a file that begins with a magic; file and what (such as
// "trace") are for messages. Older versions are read as well.
func NewReader(r io.Reader, file, magic, what string, older ...byte) (*Reader, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(Max))
	if err != nil {
		return nil, err
	}
	b := &Reader{file: file, r: bufio.NewReaderSize(r, 1<<16), zstd: dec}
	head := make([]byte, len(magic))
	last := len(magic) - 1
	if _, err := io.ReadFull(b.r, head); err != nil || string(head[:last-1]) != magic[:last-1] {
		return nil, b.Corrupt("not a " + what)
	}
	if b.Version = head[last]; string(head) != magic && !slices.Contains(older, b.Version) {
		return nil, b.Corrupt(fmt.Sprintf("version %d of the format, this program reads %d", head[last], magic[last]))
	}
	b.offset = int64(len(magic))
	return b, nil
}

// Close releases the reader's memory. The underlying reader stays open.
func (b *Reader) Close() { b.zstd.Close() }

// Corrupt returns the error that something is wrong behind the blocks read so far.
func (b *Reader) Corrupt(what string) error { return &CorruptError{b.file, b.offset, what} }

// Broken returns a function that does as Corrupt does now, for later.
func (b *Reader) Broken() func(what string) error {
	file, offset := b.file, b.offset
	return func(what string) error { return &CorruptError{file, offset, what} }
}

// Next reads a block. The end of the file is an error, too: a file says by itself
// which block is its last.
func (b *Reader) Next() error {
	if b.ahead {
		b.ahead = false
		return nil
	}
	var head [9]byte
	if _, err := io.ReadFull(b.r, head[:]); err != nil {
		return b.short(err)
	}
	n := binary.LittleEndian.Uint32(head[1:])
	if n > Max {
		return b.Corrupt(fmt.Sprintf("a block of %d bytes", n))
	}
	var err error
	if b.Payload, err = readExactly(b.r, b.Payload, int(n)); err != nil {
		return b.short(err)
	}
	if checksum(head[0], b.Payload) != binary.LittleEndian.Uint32(head[5:]) {
		return b.Corrupt("checksum does not match")
	}
	b.Kind = head[0]
	b.offset += int64(len(head)) + int64(n)
	return nil
}

// Offset returns where the next block begins.
func (b *Reader) Offset() int64 { return b.offset }

// Seek makes the block at an offset the next one. The reader has to be an [io.Seeker].
func (b *Reader) Seek(under io.ReadSeeker, offset int64) error {
	if _, err := under.Seek(offset, io.SeekStart); err != nil {
		return fmt.Errorf("%s: %w", b.file, err)
	}
	b.r.Reset(under)
	b.offset, b.ahead = offset, false
	return nil
}

// Trailer reads the last n bytes of the file, behind its last block.
func (b *Reader) Trailer(n int) ([]byte, error) {
	out := make([]byte, n)
	if _, err := io.ReadFull(b.r, out); err != nil {
		return nil, b.short(err)
	}
	return out, nil
}

// Again makes Next return the block in hand once more.
func (b *Reader) Again() { b.ahead = true }

func (b *Reader) short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return b.Corrupt("cut off")
	}
	return fmt.Errorf("%s: %w", b.file, err)
}

// readExactly reads n bytes, growing the buffer as they come: a length alone
// must not make us allocate.
func readExactly(r io.Reader, buf []byte, n int) ([]byte, error) {
	buf = buf[:0]
	for len(buf) < n {
		step := min(n-len(buf), 1<<20)
		at := len(buf)
		buf = append(buf, make([]byte, step)...)
		if _, err := io.ReadFull(r, buf[at:]); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// Unpack decompresses the block in hand, valid until the next call.
func (b *Reader) Unpack() ([]byte, error) {
	var err error
	if b.plain, err = b.UnpackTo(b.plain, b.Payload); err != nil {
		return nil, b.Corrupt(err.Error())
	}
	return b.plain, nil
}

// UnpackTo decompresses a payload into dst from its front. Unlike the other methods
// it may be called by several goroutines at once.
func (b *Reader) UnpackTo(dst, payload []byte) ([]byte, error) {
	return b.zstd.DecodeAll(payload, dst[:0])
}

// JSON decodes the block in hand; what names it in messages.
func (b *Reader) JSON(v any, what string) error {
	if err := json.Unmarshal(b.Payload, v); err != nil {
		return b.Corrupt(what + ": " + err.Error())
	}
	return nil
}

// Count reads a varint that counts or measures something in the rest of src.
func (b *Reader) Count(src []byte) (int, []byte, error) {
	u, n := binary.Uvarint(src)
	if n <= 0 || u > math.MaxInt32 {
		return 0, nil, b.Corrupt("bad number")
	}
	return int(u), src[n:], nil
}
