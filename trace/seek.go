package trace

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/heddle-stream/heddle/txn"
)

// Point writes the application's state after a batch, so that a replay can begin there.
func (t *Writer) Point(app *txn.App, p Point) error {
	t.points = append(t.points, PointAt{p.Events, t.b.Offset()})
	t.b.JSON(blockPoint, p)
	if err := t.State(app); err != nil {
		return err
	}
	versions := t.b.Items(blockVersions)
	var item []byte
	for i, table := range app.Tables() {
		table.Versions(func(version []byte) bool {
			item = append(binary.AppendUvarint(item[:0], uint64(i)), version...)
			return versions.Add(item)
		})
	}
	versions.Flush()
	return t.b.Err()
}

// Seek makes the reader begin at the last point that is not behind event n, with the
// state that the application has there. Without such a point it begins at the first
// event. The trace has to be complete and a file. Before the first batch is read.
func (t *Reader) Seek(app *txn.App, n int) (Point, error) {
	if t.under == nil || t.b.Version == version {
		return Point{}, t.LoadState(app)
	}
	begin := t.b.Offset()
	points, err := t.index()
	if err != nil {
		return Point{}, err
	}
	best := PointAt{}
	for _, p := range points {
		if p.Events <= n && p.Events > best.Events {
			best = p
		}
	}
	if best.Events == 0 {
		if err := t.b.Seek(t.under, begin); err != nil {
			return Point{}, err
		}
		return Point{}, t.LoadState(app)
	}
	if err := t.b.Seek(t.under, best.Offset); err != nil {
		return Point{}, err
	}
	if err := t.b.Next(); err != nil {
		return Point{}, err
	}
	var p Point
	if t.b.Kind != blockPoint {
		return p, t.b.Corrupt("no point")
	}
	if err := t.b.JSON(&p, "point"); err != nil {
		return p, err
	}
	if p.Events != best.Events {
		return p, t.b.Corrupt(fmt.Sprintf("the point of event %d, expected that of event %d", p.Events, best.Events))
	}
	return p, t.LoadState(app)
}

// index reads the points from the end of the file.
func (t *Reader) index() ([]PointAt, error) {
	size, err := t.under.Seek(0, io.SeekEnd)
	if err == nil && size > int64(trailerSize) {
		_, err = t.under.Seek(-int64(trailerSize), io.SeekEnd)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.file, err)
	}
	trailer := make([]byte, trailerSize)
	if _, err := io.ReadFull(t.under, trailer); err != nil {
		return nil, fmt.Errorf("%s: %w", t.file, err)
	}
	at := binary.LittleEndian.Uint64(trailer)
	if string(trailer[8:]) != trailerMagic || at >= uint64(size) {
		return nil, &CorruptError{File: t.file, Offset: size, What: "cut off"}
	}
	if err := t.b.Seek(t.under, int64(at)); err != nil {
		return nil, err
	}
	if err := t.b.Next(); err != nil {
		return nil, err
	}
	if t.b.Kind != blockFooter {
		return nil, t.b.Corrupt("no footer")
	}
	err = t.footer()
	return t.Footer.Points, err
}

// First returns the first n events of a source. A batch that comes as a whole is cut.
func First(source txn.Source, n int) txn.Source { return &first{source, n} }

type first struct {
	source txn.Source
	left   int
}

// Fill implements [txn.Source].
func (b *first) Fill(ctx context.Context, f *txn.Feed, limit int) error {
	if b.left <= 0 {
		return io.EOF
	}
	had := f.Len()
	err := b.source.Fill(ctx, f, min(limit, b.left))
	f.Cut(min(f.Len(), had+b.left)) // recorded batches come whole
	b.left -= f.Len() - had
	return err
}
