package trace

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
)

const magic = "heddle\x00\x01"

const (
	blockHeader = 'H'
	blockState  = 'S'
	blockEvents = 'E'
	blockFooter = 'F'

	blockMax   = 1 << 30
	batchMax   = 1 << 20 // events, which is also the engine's limit
	stateBlock = 1 << 20 // bytes of rows collected into a block
)

// Header tells what was recorded.
type Header struct {
	Program string            `json:"program"`
	Params  map[string]string `json:"params"`
	Seed    uint64            `json:"seed"`
	Input   string            `json:"input,omitempty"` // where the events came from, for people
	Events  []string          `json:"event_types"`
	Tables  []string          `json:"tables"`
}

// Footer tells what came out.
type Footer struct {
	Events      int    `json:"events"`
	Batches     int    `json:"batches"`
	StateHash   string `json:"state_hash"`
	ResultsHash string `json:"results_hash"`
}

// CorruptError tells where a trace is not what it should be.
type CorruptError struct {
	File   string
	Offset int64
	What   string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: offset %d: %s", e.File, e.Offset, e.What)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer writes a trace. One goroutine.
type Writer struct {
	w    *bufio.Writer
	zstd *zstd.Encoder
	buf  []byte
	err  error
}

// NewWriter starts a trace.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	t := &Writer{w: bufio.NewWriterSize(w, 1<<16), zstd: enc}
	_, t.err = t.w.WriteString(magic)
	t.json(blockHeader, h)
	return t, t.err
}

func (t *Writer) json(kind byte, v any) {
	if t.err != nil {
		return
	}
	payload, err := json.Marshal(v)
	if err != nil {
		t.err = err
		return
	}
	t.block(kind, payload)
}

func (t *Writer) block(kind byte, payload []byte) {
	if t.err != nil {
		return
	}
	if len(payload) > blockMax {
		t.err = fmt.Errorf("a batch of %d bytes: a trace holds at most %d, use a smaller batch", len(payload), blockMax)
		return
	}
	var head [9]byte
	head[0] = kind
	binary.LittleEndian.PutUint32(head[1:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(head[5:], checksum(kind, payload))
	if _, t.err = t.w.Write(head[:]); t.err == nil {
		_, t.err = t.w.Write(payload)
	}
}

func checksum(kind byte, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, payload)
}

// packed writes a compressed block.
func (t *Writer) packed(kind byte, plain []byte) {
	t.buf = t.zstd.EncodeAll(plain, t.buf[:0])
	t.block(kind, t.buf)
}

// Close ends the trace with its footer and flushes it. The underlying writer
// stays open.
func (t *Writer) Close(f Footer) error {
	t.json(blockFooter, f)
	if t.err == nil {
		t.err = t.w.Flush()
	}
	return t.err
}

// Reader reads a trace. One goroutine.
type Reader struct {
	Header Header
	Footer Footer // after the last batch
	file   string
	r      *bufio.Reader
	zstd   *zstd.Decoder
	offset int64
	buf    []byte
	plain  []byte
	kind   byte
	ahead  bool // buf holds a block that was read and not used
}

// NewReader starts reading; file is for messages.
func NewReader(r io.Reader, file string) (*Reader, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(blockMax))
	if err != nil {
		return nil, err
	}
	t := &Reader{file: file, r: bufio.NewReaderSize(r, 1<<16), zstd: dec}
	var head [len(magic)]byte
	if _, err := io.ReadFull(t.r, head[:]); err != nil || string(head[:6]) != magic[:6] {
		return nil, t.corrupt("not a trace")
	}
	if string(head[:]) != magic {
		return nil, t.corrupt(fmt.Sprintf("version %d of the format, this program reads 1", head[7]))
	}
	t.offset = int64(len(magic))
	if err := t.next(); err != nil {
		return nil, err
	}
	if t.kind != blockHeader {
		return nil, t.corrupt("no header")
	}
	if err := json.Unmarshal(t.buf, &t.Header); err != nil {
		return nil, t.corrupt("header: " + err.Error())
	}
	return t, nil
}

// Close releases the reader's memory. The underlying reader stays open.
func (t *Reader) Close() { t.zstd.Close() }

func (t *Reader) corrupt(what string) error { return &CorruptError{t.file, t.offset, what} }

// next reads a block into buf.
func (t *Reader) next() error {
	if t.ahead {
		t.ahead = false
		return nil
	}
	var head [9]byte
	if _, err := io.ReadFull(t.r, head[:]); err != nil {
		return t.short(err)
	}
	n := binary.LittleEndian.Uint32(head[1:])
	if n > blockMax {
		return t.corrupt(fmt.Sprintf("a block of %d bytes", n))
	}
	var err error
	if t.buf, err = readExactly(t.r, t.buf, int(n)); err != nil {
		return t.short(err)
	}
	if checksum(head[0], t.buf) != binary.LittleEndian.Uint32(head[5:]) {
		return t.corrupt("checksum does not match")
	}
	t.kind = head[0]
	t.offset += int64(len(head)) + int64(n)
	return nil
}

func (t *Reader) short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return t.corrupt("cut off")
	}
	return fmt.Errorf("%s: %w", t.file, err)
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

// unpack decompresses the block in hand.
func (t *Reader) unpack() ([]byte, error) {
	var err error
	if t.plain, err = t.zstd.DecodeAll(t.buf, t.plain[:0]); err != nil {
		return nil, t.corrupt(err.Error())
	}
	return t.plain, nil
}

// count reads a varint that counts or measures something in the rest of src.
func (t *Reader) count(src []byte) (int, []byte, error) {
	u, n := binary.Uvarint(src)
	if n <= 0 || u > math.MaxInt32 {
		return 0, nil, t.corrupt("bad number")
	}
	return int(u), src[n:], nil
}
