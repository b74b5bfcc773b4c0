package window

import (
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-stream/heddle/storage/spill"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// Span is the time that a window is about, from Start up to and without End, in the unit of
// whoever uses the store.
type Span struct{ Start, End int64 }

// Options are what stores have in common.
type Options struct {
	// Limit is how many bytes of memory the contents may take, with their index.
	// Beside it a store needs buffers for what goes to disk, as large as that but not more than
	// 2 MiB, and lists also an eighth of what a window has in memory when it fires, windows of one key each
	// half of the limit, at most 20 MiB, while much more than memory has room for is read at once.
	Limit int64
	// FS and Name say where contents go that memory has no room for; Name is how the names
	// of files begin.
	FS   vfs.FS
	Name string
	// Keep makes files stay for the next process, to be loaded: see Save and Load of the stores.
	Keep bool
	// Shared is how many upper bits the hashes of all keys have in common.
	Shared uint
}

// WidthMax is the largest value that is changed, in bytes.
const WidthMax = smallest<<(sizeClasses-1) - blockHead

// LimitMin is the least memory that a store works with.
const LimitMin = 16 * chunkSize

// Stats is what a store did so far, and has.
type Stats struct {
	MemoryBytes    int64 // of contents and index, now
	MemoryBytesMax int64
	DiskBytes      int64 // of files, now
	DiskBytesMax   int64
	DiskRowsMax    int64 // of DiskBytesMax, what windows had there
	WrittenBytes   int64 // to files
	ReadBytes      int64 // from files
	Spills         int64 // times that windows went to disk
	UserBytes      int64 // keys and values that were handed over
	// Of windows of one key each that were on disk: how many had been read before they were asked for, how many had
	// not, and how often such reading was done. Gathered were asked for with so many others that they were put in
	// order on disk first: these are not among them.
	Hits, Misses, Fetches, Gathered int64
}

// Add adds the figures of another store.
func (s *Stats) Add(t Stats) {
	s.MemoryBytes += t.MemoryBytes
	s.MemoryBytesMax += t.MemoryBytesMax
	s.DiskBytes += t.DiskBytes
	s.DiskBytesMax += t.DiskBytesMax
	s.DiskRowsMax += t.DiskRowsMax
	s.WrittenBytes += t.WrittenBytes
	s.ReadBytes += t.ReadBytes
	s.Spills += t.Spills
	s.UserBytes += t.UserBytes
	s.Hits += t.Hits
	s.Misses += t.Misses
	s.Fetches += t.Fetches
	s.Gathered += t.Gathered
}

// spansOf returns windows, the one that ends first at the front.
func spansOf[T any](windows map[Span]T) []Span {
	return slices.SortedFunc(maps.Keys(windows), compareSpans)
}

// disk is the log of a store, with what it does counted.
type disk struct {
	log   *spill.Log
	stats *Stats
	buf   []byte
}

func newDisk(o *Options, s *Stats) disk {
	log := spill.New
	if o.Keep {
		log = spill.NewKept
	}
	// Files become free one by one, and a part of them waits for that.
	segment := int(min(max(o.Limit/4, LimitMin), spill.SegmentBytes))
	return disk{log: log(o.FS, o.Name, segment), stats: s}
}

// put adds rows, which stand in data one behind the other and end at ends, and returns
// where they are.
func (d *disk) put(data []byte, ends []int) ([]piece, error) {
	at := make([]uint64, len(ends))
	if err := d.log.Append(data, ends, at); err != nil {
		return nil, err
	}
	pieces := make([]piece, len(ends))
	from := 0
	for i, end := range ends {
		pieces[i] = piece{at[i], uint32(end - from)}
		from = end
	}
	d.stats.WrittenBytes += int64(len(data))
	d.measure()
	return pieces, nil
}

// get reads a row, which is valid until the next call.
func (d *disk) get(p piece) ([]byte, error) { return d.read(p, &d.buf) }

// read reads a row into memory of the caller.
func (d *disk) read(p piece, buf *[]byte) ([]byte, error) {
	row, err := d.log.Row(p.at, buf)
	if err == nil && len(row) != int(p.size) {
		err = fmt.Errorf("rows on disk: %d bytes at %d, want %d", len(row), p.at, p.size)
	}
	d.stats.ReadBytes += int64(p.size)
	return row, err
}

func (d *disk) free(pieces []piece) {
	for _, p := range pieces {
		d.log.Free(p.at, int(p.size))
	}
}

// compact gives back files of which little is wanted. Windows that end together are mostly
// written together, so that files empty by themselves, and little has to be moved.
func (d *disk) compact(pieces func(yield func(*piece) bool)) error {
	var at map[uint64]*piece // made only if a file is emptied
	find := func(address uint64) *piece {
		if at == nil {
			at = map[uint64]*piece{}
			for p := range pieces {
				at[p.at] = p
			}
		}
		return at[address]
	}
	moved := func(row []byte, from, to uint64) {
		p := find(from)
		// A file that was filled meanwhile may be emptied next, and a number may belong to another file then.
		delete(at, from)
		p.at, at[to] = to, p
		d.stats.WrittenBytes += int64(len(row))
	}
	err := d.log.Compact(func(address uint64, _ []byte) bool { return find(address) != nil }, moved)
	d.measure()
	return err
}

func (d *disk) measure() {
	d.stats.DiskBytes = d.log.Size()
	if d.stats.DiskBytes > d.stats.DiskBytesMax {
		d.stats.DiskBytesMax, d.stats.DiskRowsMax = d.stats.DiskBytes, d.log.Live()
	}
}

// piece is where a row is on disk.
type piece struct {
	at   uint64
	size uint32
}
