package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"runtime"
	"sync"

	"github.com/heddle-stream/heddle/internal/blocks"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// load puts tables into the state of the checkpoint: that of the first file, changed by
// the others one after the other.
func (d *Dir) load(tables []txn.TableView) (p Point, err error) {
	reset(tables)
	for i, name := range d.m.Files {
		last := i == len(d.m.Files)-1
		if p, err = loadFile(d.fs, path.Join(d.path, name), magic, "checkpoint", tables, last); err != nil {
			return p, err
		}
	}
	return p, nil
}

// reset takes out what the application began with.
func reset(tables []txn.TableView) {
	for _, t := range tables {
		t.Reset()
	}
}

// reserve makes room for the rows of a file of so many bytes, as far as it can have
// that many.
func reserve(tables []txn.TableView, rows []int, size int64) {
	const perByte = 64 // of compressed rows
	for i := range min(len(tables), len(rows)) {
		if rows[i] > 0 && int64(rows[i])/perByte <= size {
			tables[i].Reserve(rows[i])
		}
	}
}

// loading is a file of a checkpoint on its way into tables. Blocks are read by one
// goroutine; rows are unpacked and put in place by several.
type loading struct {
	tables   []txn.TableView
	versions bool // those that windows need are read: only the last file's count
	blocks   chan packedBlock
	free     chan []byte // payloads to be filled again
	wait     sync.WaitGroup
	mu       sync.Mutex
	err      error // the first one of a goroutine
}

type packedBlock struct {
	payload []byte
	broken  func(what string) error // the error that something is wrong with it
}

// loadFile loads a file; what names it in messages. Versions are read if they are to
// count.
func loadFile(fsys vfs.FS, name, magic, what string, tables []txn.TableView, versions bool) (p Point, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := blocks.NewReader(f, name, magic, what)
	if err != nil {
		return p, err
	}
	defer b.Close()
	if err := b.Next(); err != nil {
		return p, err
	}
	if b.Kind == blockManifest { // of a savepoint
		if err := b.Next(); err != nil {
			return p, err
		}
	}
	if b.Kind != blockPoint {
		return p, b.Corrupt("no point")
	}
	if err := b.JSON(&p, "point"); err != nil {
		return p, err
	}
	if size, err := f.Size(); err == nil {
		reserve(tables, p.Rows, size)
	}
	l := &loading{tables: tables, versions: versions}
	l.start(b)
	err = l.read(b)
	close(l.blocks)
	l.wait.Wait()
	return p, errors.Join(err, l.err)
}

// start starts the goroutines that load rows.
func (l *loading) start(b *blocks.Reader) {
	n := runtime.GOMAXPROCS(0)
	l.blocks, l.free = make(chan packedBlock, n), make(chan []byte, 2*n+1)
	for range n {
		l.wait.Add(1)
		go l.loadRows(b)
	}
}

// loadRows unpacks blocks of rows and loads them, block by block.
func (l *loading) loadRows(b *blocks.Reader) {
	defer l.wait.Done()
	var plain []byte
	loaders := make([]txn.RowLoader, len(l.tables))
	for i := range loaders {
		loaders[i] = l.tables[i].Loader()
	}
	for block := range l.blocks {
		var err error
		if plain, err = b.UnpackTo(plain, block.payload); err != nil {
			err = block.broken(err.Error())
		} else {
			err = l.items(plain, block.broken, func(table uint64, row []byte) error { return loaders[table].Load(row) })
		}
		l.fail(err)
		for _, loader := range loaders {
			loader.Flush()
		}
		select {
		case l.free <- block.payload:
		default:
		}
	}
}

func (l *loading) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}

func (l *loading) failed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err != nil
}

// read reads blocks up to the last one. What is gone comes before the rows, which are
// of distinct keys, so that only the latter are loaded in any order.
func (l *loading) read(b *blocks.Reader) error {
	rows := false
	for !l.failed() {
		if err := b.Next(); err != nil {
			return err
		}
		var err error
		switch b.Kind {
		case blockEnd:
			return nil
		case itemRow:
			rows = true
			var payload []byte
			select {
			case payload = <-l.free:
			default:
			}
			l.blocks <- packedBlock{append(payload[:0], b.Payload...), b.Broken()}
			continue
		case itemGone:
			if rows {
				return b.Corrupt("keys that are gone behind rows")
			}
		case itemVersion:
			if !l.versions {
				continue
			}
		default:
			return b.Corrupt(fmt.Sprintf("unexpected block %q", b.Kind))
		}
		plain, err := b.Unpack()
		if err == nil {
			err = l.items(plain, b.Corrupt, func(table uint64, item []byte) error { return load(l.tables[table], b.Kind, item) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// items hands out the items of a block: each its length, the number of its table, and
// what it is.
func (l *loading) items(plain []byte, broken func(string) error, load func(table uint64, item []byte) error) error {
	for len(plain) > 0 {
		item, rest, ok := takeCounted(plain)
		if !ok {
			return broken("an item beyond its block")
		}
		plain = rest
		table, used := binary.Uvarint(item)
		if used <= 0 || table >= uint64(len(l.tables)) {
			return broken(fmt.Sprintf("an item of table %d of %d", table, len(l.tables)))
		}
		if err := load(table, item[used:]); err != nil {
			return broken(err.Error())
		}
	}
	return nil
}
