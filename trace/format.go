package trace

import (
	"io"

	"github.com/heddle-stream/heddle/internal/blocks"
)

const magic = "heddle\x00\x01"

const (
	blockHeader = 'H'
	blockState  = 'S'
	blockEvents = 'E'
	blockFooter = 'F'

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
type CorruptError = blocks.CorruptError

// Writer writes a trace. One goroutine.
type Writer struct{ b *blocks.Writer }

// NewWriter starts a trace.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	b, err := blocks.NewWriter(w, magic)
	if err != nil {
		return nil, err
	}
	b.JSON(blockHeader, h)
	return &Writer{b}, b.Err()
}

// Close ends the trace with its footer and flushes it. The underlying writer
// stays open.
func (t *Writer) Close(f Footer) error {
	t.b.JSON(blockFooter, f)
	return t.b.Flush()
}

// Reader reads a trace. One goroutine.
type Reader struct {
	Header Header
	Footer Footer // after the last batch
	file   string
	b      *blocks.Reader
}

// NewReader starts reading; file is for messages.
func NewReader(r io.Reader, file string) (*Reader, error) {
	b, err := blocks.NewReader(r, file, magic, "trace")
	if err != nil {
		return nil, err
	}
	t := &Reader{file: file, b: b}
	if err := b.Next(); err != nil {
		return nil, err
	}
	if b.Kind != blockHeader {
		return nil, b.Corrupt("no header")
	}
	return t, b.JSON(&t.Header, "header")
}

// Close releases the reader's memory. The underlying reader stays open.
func (t *Reader) Close() { t.b.Close() }
