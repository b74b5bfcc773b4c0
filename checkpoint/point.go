package checkpoint

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/heddle-stream/heddle/internal/blocks"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// Point is where a run stands between two batches.
type Point struct {
	Events    int          `json:"events"` // done since the beginning
	Committed int          `json:"committed"`
	Aborted   int          `json:"aborted"`
	Ops       int          `json:"ops"`
	Batches   int          `json:"batches"`
	LastTime  int64        `json:"last_event_time"` // where windows go by time
	Results   storage.Hash `json:"results"`         // sum over all results so far
	Output    int64        `json:"output_bytes"`    // length of the output file
}

const (
	magic = "heddlck\x01"

	blockPoint = 'P'
	blockEnd   = 'E' // the blocks in between have the kinds of their items

	blockSize = 1 << 20 // bytes of rows collected into a block
)

// write writes the application's state at a point.
func write(w io.Writer, app *txn.App, p Point) error {
	b, err := blocks.NewWriter(w, magic)
	if err != nil {
		return err
	}
	b.JSON(blockPoint, p)
	pack := &packer{b: b, kind: itemRow}
	for _, row := range storage.Snapshot(app) {
		pack.add(row)
	}
	pack.flush()
	pack.kind = itemVersion
	var buf []byte
	for i, table := range app.Tables() {
		table.Versions(func(version []byte) bool {
			buf = append(binary.AppendUvarint(buf[:0], uint64(i)), version...)
			pack.add(buf)
			return b.Err() == nil
		})
	}
	pack.flush()
	b.Block(blockEnd, nil)
	return b.Flush()
}

// packer collects items with their lengths into blocks.
type packer struct {
	b     *blocks.Writer
	kind  byte
	plain []byte
}

func (p *packer) add(item []byte) {
	p.plain = binary.AppendUvarint(p.plain, uint64(len(item)))
	if p.plain = append(p.plain, item...); len(p.plain) >= blockSize {
		p.flush()
	}
}

func (p *packer) flush() {
	if len(p.plain) > 0 {
		p.b.Packed(p.kind, p.plain)
		p.plain = p.plain[:0]
	}
}

// read replaces the application's state by that of a file.
func read(r io.Reader, file string, app *txn.App) (Point, error) {
	var p Point
	b, err := blocks.NewReader(r, file, magic, "checkpoint")
	if err != nil {
		return p, err
	}
	defer b.Close()
	if err := b.Next(); err != nil {
		return p, err
	}
	if b.Kind != blockPoint {
		return p, b.Corrupt("no point")
	}
	if err := b.JSON(&p, "point"); err != nil {
		return p, err
	}
	tables := app.Tables()
	for _, t := range tables {
		t.Reset()
	}
	for {
		if err := b.Next(); err != nil {
			return p, err
		}
		switch b.Kind {
		case blockEnd:
			return p, nil
		case itemRow, itemVersion:
		default:
			return p, b.Corrupt(fmt.Sprintf("unexpected block %q", b.Kind))
		}
		if err := unpack(b, tables); err != nil {
			return p, err
		}
	}
}

// unpack loads the items of the block in hand.
func unpack(b *blocks.Reader, tables []txn.TableView) error {
	plain, err := b.Unpack()
	for err == nil && len(plain) > 0 {
		var n, table int
		if n, plain, err = b.Count(plain); err != nil {
			break
		}
		if n > len(plain) {
			return b.Corrupt("an item beyond its block")
		}
		item := plain[:n]
		plain = plain[n:]
		if table, item, err = b.Count(item); err != nil {
			break
		}
		if table >= len(tables) {
			return b.Corrupt(fmt.Sprintf("an item of table %d of %d", table, len(tables)))
		}
		if bad := load(tables[table], b.Kind, item); bad != nil {
			return b.Corrupt(bad.Error())
		}
	}
	return err
}
