package trace

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/heddle-stream/heddle/txn"
)

// Fits tells whether the trace was recorded from an application with the same
// events and tables.
func (t *Reader) Fits(app *txn.App) error {
	h := Describe(app)
	if !slices.Equal(h.Events, t.Header.Events) || !slices.Equal(h.Tables, t.Header.Tables) {
		return fmt.Errorf("%s: recorded with events %v on tables %v, this program has events %v on tables %v",
			t.file, t.Header.Events, t.Header.Tables, h.Events, h.Tables)
	}
	return nil
}

// Describe returns a header with the application's events and tables.
func Describe(app *txn.App) Header {
	h := Header{Events: app.EventNames()}
	for _, table := range app.Tables() {
		h.Tables = append(h.Tables, table.Name())
	}
	return h
}

// LoadState replaces the application's state by the recorded one that follows. Before
// the first batch is read.
func (t *Reader) LoadState(app *txn.App) error {
	tables := app.Tables()
	for _, table := range tables {
		table.Reset()
	}
	for {
		if err := t.b.Next(); err != nil {
			return err
		}
		load := txn.TableView.LoadRow
		switch t.b.Kind {
		case blockState:
		case blockVersions:
			load = txn.TableView.LoadVersion
		default:
			t.b.Again()
			return nil
		}
		plain, err := t.b.Unpack()
		if err != nil {
			return err
		}
		for len(plain) > 0 {
			if plain, err = t.loadItem(tables, plain, load); err != nil {
				return err
			}
		}
	}
}

func (t *Reader) loadItem(tables []txn.TableView, plain []byte, load func(txn.TableView, []byte) error) ([]byte, error) {
	n, plain, err := t.b.Count(plain)
	if err != nil {
		return nil, err
	}
	if n > len(plain) {
		return nil, t.b.Corrupt("a row beyond its block")
	}
	row, rest := plain[:n], plain[n:]
	table, row, err := t.b.Count(row)
	if err != nil {
		return nil, err
	}
	if table >= len(tables) {
		return nil, t.b.Corrupt(fmt.Sprintf("a row of table %d of %d", table, len(tables)))
	}
	if err := load(tables[table], row); err != nil {
		return nil, t.b.Corrupt(err.Error())
	}
	return rest, nil
}

// Batch pushes the events of the next batch and returns io.EOF after the last,
// when the footer has been read.
func (t *Reader) Batch(f *txn.Feed) error {
	had := f.Len()
	for {
		if err := t.b.Next(); err != nil {
			return err
		}
		switch t.b.Kind {
		case blockEvents:
			if err := t.events(f); err != nil {
				return err
			}
			return t.digests(f.Len() - had)
		case blockFooter:
			if err := t.footer(); err != nil {
				return err
			}
			return io.EOF
		case blockPoint, blockState, blockVersions: // where others begin
		default:
			return t.b.Corrupt(fmt.Sprintf("unexpected block %q", t.b.Kind))
		}
	}
}

// digests reads those of a batch of n events, if there are some.
func (t *Reader) digests(n int) error {
	t.Digests = t.Digests[:0]
	if err := t.b.Next(); err != nil {
		return err
	}
	if t.b.Kind != blockDigests {
		t.b.Again()
		return nil
	}
	if len(t.b.Payload) != 4*n {
		return t.b.Corrupt(fmt.Sprintf("%d bytes of digests for %d events", len(t.b.Payload), n))
	}
	for i := range n {
		t.Digests = append(t.Digests, binary.LittleEndian.Uint32(t.b.Payload[4*i:]))
	}
	return nil
}

func (t *Reader) events(f *txn.Feed) error {
	plain, err := t.b.Unpack()
	if err != nil {
		return err
	}
	n, plain, err := t.b.Count(plain)
	if err != nil {
		return err
	}
	if n > batchMax {
		return t.b.Corrupt(fmt.Sprintf("a batch of %d events, %d are allowed", n, batchMax))
	}
	for range n {
		var typ int
		if typ, plain, err = t.b.Count(plain); err != nil {
			return err
		}
		if plain, err = f.PushEncoded(typ, plain); err != nil {
			return t.b.Corrupt("event: " + err.Error())
		}
	}
	if len(plain) != 0 {
		return t.b.Corrupt("bytes behind the last event of a batch")
	}
	return nil
}

// Source returns the trace's events as a source, in the recorded batches: each
// Fill delivers one, whatever its limit. With a size, batches are cut anew.
func (t *Reader) Source(app *txn.App, cutAnew bool) txn.Source {
	if !cutAnew {
		return txn.SourceFunc(func(_ context.Context, f *txn.Feed, _ int) error { return t.Batch(f) })
	}
	feed, at := app.NewFeed(), 0
	return txn.SourceFunc(func(_ context.Context, f *txn.Feed, limit int) error {
		for range limit {
			for at == feed.Len() {
				feed.Reset()
				at = 0
				if err := t.Batch(feed); err != nil {
					return err
				}
			}
			feed.CopyTo(f, at)
			at++
		}
		return nil
	})
}
