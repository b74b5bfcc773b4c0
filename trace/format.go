package trace

import (
	"encoding/binary"
	"io"

	"github.com/heddle-stream/heddle/internal/blocks"
	"github.com/heddle-stream/heddle/storage"
)

const (
	magic   = "heddle\x00\x02"
	version = 1 // the older one, which is read

	blockHeader   = 'H'
	blockState    = 'S'
	blockVersions = 'V'
	blockEvents   = 'E'
	blockDigests  = 'D'
	blockPoint    = 'C'
	blockFooter   = 'F'

	batchMax = 1 << 20 // events, which is also the engine's limit

	trailerMagic = "heddleix"
	trailerSize  = 8 + len(trailerMagic) // after the offset of the footer
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

	// Points are where a replay can begin besides the first event.
	Points []PointAt `json:"points,omitempty"`
}

// Point is where a recorded run stood after a batch.
type Point struct {
	Events   int          `json:"events"`
	LastTime int64        `json:"last_event_time"`
	Results  storage.Hash `json:"results"` // sum over all results so far
}

// PointAt is the place of a point, whose state follows, in the file.
type PointAt struct {
	Events int   `json:"events"`
	Offset int64 `json:"offset"`
}

// CorruptError tells where a trace is not what it should be.
type CorruptError = blocks.CorruptError

// Writer writes a trace. One goroutine.
type Writer struct {
	b          *blocks.Writer
	points     []PointAt
	stateBytes int // of the state that was written last
}

// NewWriter starts a trace.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	b, err := blocks.NewWriter(w, magic)
	if err != nil {
		return nil, err
	}
	b.JSON(blockHeader, h)
	return &Writer{b: b}, b.Err()
}

// Close ends the trace with its footer and flushes it. The underlying writer
// stays open.
func (t *Writer) Close(f Footer) error {
	f.Points = t.points
	at := t.b.Offset()
	t.b.JSON(blockFooter, f)
	t.b.Trailer(append(binary.LittleEndian.AppendUint64(nil, uint64(at)), trailerMagic...))
	return t.b.Flush()
}

// Reader reads a trace. One goroutine.
type Reader struct {
	Header  Header
	Footer  Footer   // after the last batch
	Digests []uint32 // of the results of the last batch, by event; nil where none are recorded
	file    string
	under   io.ReadSeeker // of a trace that can be searched, else nil
	b       *blocks.Reader
}

// NewReader starts reading; file is for messages.
func NewReader(r io.Reader, file string) (*Reader, error) {
	b, err := blocks.NewReader(r, file, magic, "trace", version)
	if err != nil {
		return nil, err
	}
	t := &Reader{file: file, b: b}
	t.under, _ = r.(io.ReadSeeker)
	if err := b.Next(); err != nil {
		return nil, err
	}
	if b.Kind != blockHeader {
		return nil, b.Corrupt("no header")
	}
	return t, b.JSON(&t.Header, "header")
}

// footer reads the footer, whose block is in hand, and what is behind it.
func (t *Reader) footer() error {
	if err := t.b.JSON(&t.Footer, "footer"); err != nil || t.b.Version == version {
		return err
	}
	begin := t.b.Offset() - int64(9+len(t.b.Payload))
	trailer, err := t.b.Trailer(trailerSize)
	if err != nil {
		return err
	}
	if string(trailer[8:]) != trailerMagic || binary.LittleEndian.Uint64(trailer) != uint64(begin) {
		return t.b.Corrupt("the end is damaged")
	}
	return nil
}

// Close releases the reader's memory. The underlying reader stays open.
func (t *Reader) Close() { t.b.Close() }
