package peers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/dgraph-io/badger/v4"

	"github.com/heddle-stream/heddle/bench"
)

// WindowStores returns general stores as the experiment flowkv uses them, by name, with their
// names in order. Window, key and the number of the value are the key of a tuple, so that a window is a
// range; what they log and compress is turned off, since Heddle's stores do neither.
func WindowStores() (names []string, open map[string]bench.OpenStore) {
	names, open = []string{"go maps", "heddle", "pebble", "pebble merge", "badger"}, map[string]bench.OpenStore{
		"go maps": bench.OpenGoMaps,
		"heddle":  bench.OpenHeddle,
		"pebble": func(way bench.Way, dir string, limit int64) (bench.WindowStore, error) {
			return openPebble(way, dir, limit, false)
		},
		"pebble merge": func(way bench.Way, dir string, limit int64) (bench.WindowStore, error) {
			return openPebble(way, dir, limit, true)
		},
		"badger": openBadger,
	}
	if openRocks != nil {
		names = append(names, "rocksdb", "rocksdb merge")
		open["rocksdb"] = func(way bench.Way, dir string, limit int64) (bench.WindowStore, error) {
			return openRocks(way, dir, limit, false)
		}
		open["rocksdb merge"] = func(way bench.Way, dir string, limit int64) (bench.WindowStore, error) {
			return openRocks(way, dir, limit, true)
		}
	}
	return names, open
}

// openRocks opens RocksDB, if this was built with it: see rocksdb.go.
var openRocks func(way bench.Way, dir string, limit int64, merges bool) (bench.WindowStore, error)

// tupleKey is the key of a tuple. Sequence numbers keep the order of values.
func tupleKey(buf []byte, w, key, seq uint64) []byte {
	buf = binary.BigEndian.AppendUint64(buf[:0], w)
	buf = binary.BigEndian.AppendUint64(buf, key)
	return binary.BigEndian.AppendUint64(buf, seq)
}

// storeBatch is how many writes go to a store at once.
const storeBatch = 256

// pebbleWindows is windows on Pebble: a key for each tuple, or values of one key merged into a
// list, and numbers merged into their sum.
type pebbleWindows struct {
	way     bench.Way
	merges  bool
	db      *pebble.DB
	batch   *pebble.Batch
	pending int
	seq     uint64
	key     []byte
	end     []byte
}

// joining makes values of one key a list, or a sum.
func joining(sums bool) *pebble.Merger {
	return &pebble.Merger{Name: fmt.Sprint("heddle-", sums), Merge: func(_, value []byte) (pebble.ValueMerger, error) {
		return &joined{sums: sums, parts: [][]byte{append([]byte(nil), value...)}}, nil
	}}
}

type joined struct {
	sums  bool
	parts [][]byte // the oldest first
}

func (j *joined) MergeNewer(value []byte) error {
	j.parts = append(j.parts, append([]byte(nil), value...))
	return nil
}

func (j *joined) MergeOlder(value []byte) error {
	j.parts = append([][]byte{append([]byte(nil), value...)}, j.parts...)
	return nil
}

func (j *joined) Finish(bool) ([]byte, io.Closer, error) {
	if j.sums {
		sum := uint64(0)
		for _, p := range j.parts {
			sum += binary.LittleEndian.Uint64(p)
		}
		return binary.LittleEndian.AppendUint64(nil, sum), nil, nil
	}
	var all []byte
	for _, p := range j.parts {
		all = append(all, p...)
	}
	return all, nil, nil
}

// pebbleOptions are those of a Pebble with so many bytes of memory, half of it for blocks and a quarter for each of two
// tables, without a log and without compression. The cache is to be given back.
func pebbleOptions(limit int64, merger *pebble.Merger) *pebble.Options {
	o := &pebble.Options{Cache: pebble.NewCache(limit / 2), DisableWAL: true, MemTableSize: uint64(max(limit/4, 256<<10)), Logger: silent{}, Merger: merger, FormatMajorVersion: pebble.FormatNewest}
	for i := range o.Levels {
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	}
	return o
}

func openPebble(way bench.Way, dir string, limit int64, merges bool) (bench.WindowStore, error) {
	o := pebbleOptions(limit, joining(way == bench.WayRMW))
	defer o.Cache.Unref()
	db, err := pebble.Open(filepath.Join(dir, "pebble"), o)
	if err != nil {
		return nil, fmt.Errorf("pebble: %w", err)
	}
	return &pebbleWindows{way: way, merges: merges, db: db, batch: db.NewBatch()}, nil
}

func (p *pebbleWindows) Append(w, key uint64, _ int64, value []byte) (err error) {
	if p.merges {
		p.key = tupleKey(p.key, w, key, 0)
		err = p.batch.Merge(p.key, value, nil)
	} else {
		p.seq++
		p.key = tupleKey(p.key, w, key, p.seq)
		err = p.batch.Set(p.key, value, nil)
	}
	return errors.Join(err, p.wrote())
}

func (p *pebbleWindows) wrote() error {
	if p.pending++; p.pending < storeBatch {
		return nil
	}
	return p.flush()
}

func (p *pebbleWindows) flush() error {
	p.pending = 0
	err := p.batch.Commit(pebble.NoSync)
	p.batch.Reset()
	return err
}

// Add merges into the sum, or reads and writes it.
func (p *pebbleWindows) Add(w, key uint64, n uint64) error {
	p.key = tupleKey(p.key, w, key, 0)
	if p.merges {
		return errors.Join(p.batch.Merge(p.key, binary.LittleEndian.AppendUint64(nil, n), nil), p.wrote())
	}
	value, done, err := p.db.Get(p.key)
	switch {
	case err == nil:
		n += binary.LittleEndian.Uint64(value)
		err = done.Close()
	case errors.Is(err, pebble.ErrNotFound):
		err = nil
	}
	if err != nil {
		return err
	}
	return p.db.Set(p.key, binary.LittleEndian.AppendUint64(nil, n), pebble.NoSync)
}

// flowValueSize is the size of the values of the experiment, by which a merged list is cut.
const flowValueSize = 80

func (p *pebbleWindows) Fire(ws []uint64, yield func(value []byte)) error {
	if err := p.flush(); err != nil {
		return err
	}
	it, err := p.db.NewIter(nil)
	if err != nil {
		return err
	}
	for _, w := range ws {
		p.key, p.end = tupleKey(p.key, w, 0, 0), tupleKey(p.end, w+1, 0, 0)
		for ok := it.SeekGE(p.key); ok && binary.BigEndian.Uint64(it.Key()) == w; ok = it.Next() {
			v := it.Value()
			for p.merges && p.way != bench.WayRMW && len(v) > flowValueSize {
				yield(v[:flowValueSize])
				v = v[flowValueSize:]
			}
			yield(v)
		}
		if err := p.batch.DeleteRange(p.key, p.end, nil); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return errors.Join(it.Close(), p.flush())
}

func (p *pebbleWindows) Written() int64 {
	m := p.db.Metrics()
	var n uint64
	for _, l := range m.Levels {
		n += l.TableBytesFlushed + l.TableBytesCompacted + l.BlobBytesFlushed + l.BlobBytesCompacted
	}
	return int64(n)
}

func (p *pebbleWindows) Close() error { return errors.Join(p.batch.Close(), p.db.Close()) }

// badgerWindows is windows on Badger, a key for each tuple.
type badgerWindows struct {
	db  *badger.DB
	txn *badger.Txn
	ops int // in the transaction
	seq uint64
}

func openBadger(_ bench.Way, dir string, limit int64) (bench.WindowStore, error) {
	o := badger.DefaultOptions(filepath.Join(dir, "badger")).WithLogger(nil).WithMemTableSize(max(limit/4, 1<<20)).
		WithValueThreshold(1 << 10).WithBlockCacheSize(limit / 2).WithCompression(0).WithNumMemtables(2).WithDetectConflicts(false)
	db, err := badger.Open(o)
	if err != nil {
		return nil, fmt.Errorf("badger: %w", err)
	}
	return &badgerWindows{db: db, txn: db.NewTransaction(true)}, nil
}

func (b *badgerWindows) wrote() error {
	if b.ops++; b.ops < storeBatch {
		return nil
	}
	return b.flush()
}

func (b *badgerWindows) flush() error {
	b.ops = 0
	err := b.txn.Commit()
	b.txn = b.db.NewTransaction(true)
	return err
}

func (b *badgerWindows) Append(w, key uint64, _ int64, value []byte) error {
	b.seq++
	return errors.Join(b.txn.Set(tupleKey(nil, w, key, b.seq), append([]byte(nil), value...)), b.wrote())
}

func (b *badgerWindows) Add(w, key uint64, n uint64) error {
	k := tupleKey(nil, w, key, 0)
	item, err := b.txn.Get(k)
	switch {
	case err == nil:
		err = item.Value(func(v []byte) error { n += binary.LittleEndian.Uint64(v); return nil })
	case errors.Is(err, badger.ErrKeyNotFound):
		err = nil
	}
	if err != nil {
		return err
	}
	return errors.Join(b.txn.Set(k, binary.LittleEndian.AppendUint64(nil, n)), b.wrote())
}

func (b *badgerWindows) Fire(ws []uint64, yield func(value []byte)) error {
	if err := b.flush(); err != nil {
		return err
	}
	var gone [][]byte
	err := b.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for _, w := range ws {
			prefix := binary.BigEndian.AppendUint64(nil, w)
			for it.Seek(prefix); it.ValidForPrefix(prefix); it.Next() {
				gone = append(gone, it.Item().KeyCopy(nil))
				if err := it.Item().Value(func(v []byte) error { yield(v); return nil }); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for _, k := range gone {
		err = errors.Join(err, b.txn.Delete(k), b.wrote())
	}
	return err
}

// Written returns 0: Badger does not tell.
func (b *badgerWindows) Written() int64 { return 0 }

func (b *badgerWindows) Close() error {
	b.txn.Discard()
	return b.db.Close()
}
