package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"

	"github.com/heddle-stream/heddle/internal/blocks"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// writing is a checkpoint under way. The run hands over rows between its batches; other
// goroutines compress them and write the file, and at the end the manifest.
type writing struct {
	m     manifest // which counts when all is written
	more  bool     // rows are left
	plain []byte   // items of the block that is collected
	kind  byte

	queue  chan *block // in the order of the file
	pack   chan *block
	free   chan *block
	done   chan error
	inline bool // everything is written by the caller, so that tests can repeat it
	file   *blockFile
}

// block is on its way into a file.
type block struct {
	kind          byte
	plain, packed []byte
	ready         chan struct{}
}

// blockFile is the file being written.
type blockFile struct {
	d      *Dir
	name   string
	f      vfs.File
	b      *blocks.Writer
	packer *blocks.Packer
	drop   bool // nobody wants it any more
}

// queued is how many blocks may wait to be written.
const queued = 8

// Begin begins a checkpoint of the application as it is now, at a point of the run.
// Between batches, and not before the log is read back to its end. The last one has to
// be finished.
func (d *Dir) Begin(app *txn.App, p Point) error { return d.beginWriting(app, p, d.changesOutweigh()) }

func (d *Dir) beginWriting(app *txn.App, p Point, whole bool) error {
	if p.Events < d.end {
		return fmt.Errorf("checkpoint at event %d: the log goes on to %d", p.Events, d.end)
	}
	w := &writing{m: d.m, more: true, inline: d.opts.Inline, done: make(chan error, 1)}
	w.m.Files, w.m.Done, w.m.Record = slices.Clone(d.m.Files), p.Events, d.log.Next()
	if whole {
		w.m.Files = nil
	}
	if len(w.m.Files) == 0 {
		d.changed.All()
	}
	d.changed.Cut()
	p.Rows = rowsOf(app)
	// The number never comes again: the file that counts must not be written over, and
	// two checkpoints may be of one event, with dead letters or another program between.
	w.m.Written++
	name := fmt.Sprintf("checkpoint-%d-%d", w.m.Written, p.Events)
	w.m.Files = append(w.m.Files, name)
	file, err := d.createBlocks(name, p)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	w.file = file
	if !w.inline {
		w.start()
	}
	d.writing, d.bytes = w, 0
	w.kind = itemGone
	d.changed.TakeGone(func(table int, key []byte) { w.add(table, key) })
	w.flush()
	w.kind = itemVersion
	for i, table := range app.Tables() {
		table.Versions(func(version []byte) bool {
			w.add(i, version)
			return true
		})
	}
	w.flush()
	w.kind = itemRow
	return nil
}

func rowsOf(app *txn.App) (rows []int) {
	for _, t := range app.Tables() {
		rows = append(rows, t.RowsAllocated())
	}
	return rows
}

// changesOutweigh reports whether the files with changes have become so large that
// writing everything anew pays.
func (d *Dir) changesOutweigh() bool {
	const filesMax = 32
	return len(d.sizes) > filesMax || len(d.sizes) > 0 && sum(d.sizes[1:]) > d.sizes[0]
}

func sum(sizes []int64) int64 {
	n := int64(0)
	for _, size := range sizes {
		n += size
	}
	return n
}

// Writing reports whether a checkpoint is under way.
func (d *Dir) Writing() bool { return d.writing != nil }

// Continue takes about limit rows more into the checkpoint under way, less if the disk
// does not keep up. When all is written, the checkpoint counts, and the log is let go
// up to it. Between batches, while nobody commits.
func (d *Dir) Continue(limit int) error {
	w := d.writing
	for w.more && limit > 0 && !w.full() {
		const few = 256
		w.more = d.changed.Take(min(limit, few), w.add)
		limit -= few
	}
	if w.more {
		return w.failure()
	}
	if err := d.whole(); err != nil {
		return err
	}
	w.end()
	select {
	case err := <-w.done:
		return d.adopt(err)
	default:
		return nil
	}
}

// Finish completes the checkpoint under way.
func (d *Dir) Finish() error {
	w := d.writing
	for w.more {
		w.more = d.changed.Take(blockSize, w.add)
	}
	if err := d.whole(); err != nil {
		return err
	}
	w.end()
	return d.adopt(<-w.done)
}

// whole drops the checkpoint under way if rows could not be read.
func (d *Dir) whole() error {
	if err := d.changed.Err(); err != nil {
		return fmt.Errorf("checkpoint: %w", errors.Join(err, d.abandon()))
	}
	return nil
}

// abandon ends the checkpoint under way, which nobody wants any more.
func (d *Dir) abandon() error {
	w := d.writing
	d.writing = nil
	w.drop()
	return <-w.done
}

// Checkpoint writes a checkpoint from beginning to end.
func (d *Dir) Checkpoint(app *txn.App, p Point) error {
	return d.checkpoint(app, p, d.changesOutweigh())
}

func (d *Dir) checkpoint(app *txn.App, p Point, whole bool) error {
	if err := d.beginWriting(app, p, whole); err != nil {
		return err
	}
	return d.Finish()
}

// adopt makes the checkpoint the one that counts.
func (d *Dir) adopt(err error) error {
	w := d.writing
	d.writing = nil
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	d.m, d.fresh = w.m, false
	d.end = max(d.end, w.m.Done)
	if err := d.measureFiles(); err != nil {
		return err
	}
	if err := d.clean(); err != nil {
		return err
	}
	return d.log.TruncateBefore(d.m.Record)
}

// add adds an item to the block that is collected.
func (w *writing) add(table int, item []byte) {
	var head [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(head[:], uint64(table))
	w.plain = binary.AppendUvarint(w.plain, uint64(n+len(item)))
	w.plain = append(append(w.plain, head[:n]...), item...)
	if len(w.plain) >= blockSize {
		w.flush()
	}
}

// flush hands over the block that is collected.
func (w *writing) flush() {
	if len(w.plain) == 0 {
		return
	}
	if w.inline {
		w.file.b.Packed(w.kind, w.plain)
		w.plain = w.plain[:0]
		return
	}
	k := <-w.free
	k.kind, k.plain, w.plain = w.kind, w.plain, k.plain[:0]
	w.pack <- k
	w.queue <- k
}

// full reports whether the next block would have to wait.
func (w *writing) full() bool { return !w.inline && len(w.free) == 0 }

// failure returns why the file cannot be written, if that is known already.
func (w *writing) failure() error {
	if w.inline {
		return w.file.b.Err()
	}
	return nil // the writer tells at the end
}

// end tells that no more items come.
func (w *writing) end() {
	if w.file == nil {
		return
	}
	file := w.file
	w.flush()
	w.file = nil
	if w.inline {
		w.done <- file.finish(w.m)
		return
	}
	close(w.pack)
	close(w.queue)
}

// drop ends a checkpoint that is not whole.
func (w *writing) drop() {
	if w.file != nil {
		w.file.drop = true
	}
	w.end()
}

// start starts the goroutines that compress and write. One processor in two compresses:
// the others have a run to go on with.
func (w *writing) start() {
	w.queue, w.pack, w.free = make(chan *block, queued), make(chan *block, queued), make(chan *block, queued)
	for range queued {
		w.free <- &block{ready: make(chan struct{}, 1)}
	}
	file := w.file
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		go func() {
			for k := range w.pack {
				k.packed = file.packer.Pack(k.packed, k.plain)
				k.ready <- struct{}{}
				runtime.Gosched() // a batch may wait for the processor
			}
		}()
	}
	go func() {
		for k := range w.queue {
			<-k.ready
			file.b.Block(k.kind, k.packed)
			w.free <- k
		}
		w.done <- file.finish(w.m)
	}()
}

// createBlocks creates the file of a checkpoint, with its point.
func (d *Dir) createBlocks(name string, p Point) (*blockFile, error) {
	f, err := d.fs.Create(path.Join(d.path, name+vfs.Unfinished))
	if err != nil {
		return nil, err
	}
	b, err := blocks.NewWriter(f, magic)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b.JSON(blockPoint, p)
	packer, err := blocks.NewPacker(runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &blockFile{d: d, name: name, f: f, b: b, packer: packer}, nil
}

// finish makes the file whole and puts it in place, and then the manifest that names
// it.
func (x *blockFile) finish(m manifest) error {
	if x.drop {
		return x.f.Close()
	}
	x.b.Block(blockEnd, nil)
	err := x.b.Flush()
	if err == nil {
		err = x.f.Sync()
	}
	if err := errors.Join(err, x.f.Close()); err != nil {
		return err
	}
	if err := vfs.Place(x.d.fs, path.Join(x.d.path, x.name)); err != nil {
		return err
	}
	return x.d.writeManifest(m)
}
