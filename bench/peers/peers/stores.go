package peers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/heddle-stream/heddle/storage/window"
)

// PebbleStores keeps the windows of a job in one Pebble, for operators that do not know: each tuple is a key,
// values that are changed are merged. The order of keys is that in which operators expect them.
//
//	lists         store | start | end | hash | length of the key | key | number of the tuple
//	accumulators  store | start | end | hash | length of the key | key
//	unaligned     store | window | number of the tuple
type PebbleStores struct {
	db *pebble.DB

	mu     sync.RWMutex
	merges []func(into, from []byte) // by store
}

// OpenPebbleStores opens an empty Pebble in a directory, with so many bytes for its cache and its tables in memory.
func OpenPebbleStores(dir string, limit int64) (*PebbleStores, error) {
	p := &PebbleStores{}
	o := pebbleOptions(limit, &pebble.Merger{Name: "heddle-stores", Merge: p.merger})
	defer o.Cache.Unref()
	db, err := pebble.Open(dir, o)
	if err != nil {
		return nil, fmt.Errorf("pebble: %w", err)
	}
	p.db = db
	return p, nil
}

// Close closes the database, when all its stores are closed.
func (p *PebbleStores) Close() error { return p.db.Close() }

// merger merges values of a key as its store says.
func (p *PebbleStores) merger(key, value []byte) (pebble.ValueMerger, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	id := binary.BigEndian.Uint32(key)
	if int(id) >= len(p.merges) || p.merges[id] == nil {
		return nil, fmt.Errorf("store %d has no values that are merged", id)
	}
	return &merging{p.merges[id], aligned(value)}, nil
}

// aligned returns a copy that operators may look at as what it holds.
func aligned(value []byte) []byte { return append(make([]byte, 0, len(value)), value...) }

// merging is a value that others are merged into, in any order.
type merging struct {
	merge func(into, from []byte)
	value []byte
}

func (m *merging) MergeNewer(value []byte) error { m.merge(m.value, aligned(value)); return nil }
func (m *merging) MergeOlder(value []byte) error { return m.MergeNewer(value) }
func (m *merging) Finish(bool) ([]byte, io.Closer, error) {
	return m.value, nil, nil
}

// Lists implements [window.Stores].
func (p *PebbleStores) Lists(window.Options) (window.ListStore, error) {
	return &pebbleLists{p.store(nil)}, nil
}

// Accumulators implements [window.Stores].
func (p *PebbleStores) Accumulators(_ window.Options, width int, merge func(into, from []byte)) (window.AccumulatorStore, error) {
	return &pebbleAccumulators{pebbleValues{pebbleStore: p.store(merge), acc: make([]byte, width)}}, nil
}

// Unaligned implements [window.Stores].
func (p *PebbleStores) Unaligned(_ window.Options, width int, merge func(into, from []byte)) (window.UnalignedStore, error) {
	return &pebbleUnaligned{pebbleValues: pebbleValues{pebbleStore: p.store(merge), acc: make([]byte, width)}}, nil
}

func (p *PebbleStores) store(merge func(into, from []byte)) pebbleStore {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.merges = append(p.merges, merge)
	return pebbleStore{db: p.db, id: uint32(len(p.merges) - 1), merge: merge, batch: p.db.NewBatch()}
}

// pebbleStore is what the stores have in common.
type pebbleStore struct {
	db    *pebble.DB
	id    uint32
	merge func(into, from []byte)
	batch *pebble.Batch
	seq   uint64
	key   []byte
	stats window.Stats
}

// prefix begins the key of a window: bounds are in order if the sign comes first.
func (s *pebbleStore) prefix(dst []byte, w window.Span) []byte {
	dst = binary.BigEndian.AppendUint32(dst[:0], s.id)
	dst = binary.BigEndian.AppendUint64(dst, uint64(w.Start)^1<<63)
	return binary.BigEndian.AppendUint64(dst, uint64(w.End)^1<<63)
}

const spanPrefix = 4 + 8 + 8

func keyOf(dst []byte, hash uint64, key []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, hash)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(key)))
	return append(dst, key...)
}

// cutKey returns the hash and the key at the front of what follows a window, and what they take.
func cutKey(b []byte) (hash uint64, key []byte, size int) {
	size = 10 + int(binary.BigEndian.Uint16(b[8:]))
	return binary.BigEndian.Uint64(b), b[10:size], size
}

// behind returns the least key that no key with a prefix reaches.
func behind(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

func (s *pebbleStore) wrote(err error) error {
	if err != nil || s.batch.Count() < storeBatch {
		return err
	}
	return s.flush()
}

func (s *pebbleStore) flush() error {
	err := s.batch.Commit(pebble.NoSync)
	s.batch.Reset()
	return err
}

func (s *pebbleStore) Stats() window.Stats { return s.stats }
func (s *pebbleStore) Close() error        { return s.batch.Close() }

// Resize does nothing: all stores have the memory of the database.
func (s *pebbleStore) Resize(limit int64) (int64, error) { return limit, nil }

var errNotKept = errors.New("windows in Pebble are not kept for another process")

func (s *pebbleStore) Save(func([]byte)) error           { return errNotKept }
func (s *pebbleStore) Load(func() ([]byte, error)) error { return errNotKept }
func (s *pebbleStore) Files() []string                   { return nil }
func (s *pebbleStore) Release() error                    { return nil }
func (s *pebbleStore) drop(prefix []byte) error {
	return s.wrote(s.batch.DeleteRange(prefix, behind(prefix), nil))
}

// cursors returns an iterator for each window that has something, at its first key.
func (s *pebbleStore) cursors(windows []window.Span) (all []*pebble.Iterator, err error) {
	if err = s.flush(); err != nil {
		return nil, err
	}
	for _, w := range windows {
		prefix := s.prefix(nil, w)
		it, failed := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: behind(prefix)})
		if failed != nil {
			return all, failed
		}
		if all = append(all, it); it.First() {
			continue
		}
		all = all[:len(all)-1]
		if err := it.Close(); err != nil {
			return all, err
		}
	}
	return all, nil
}

// each yields all keys of some windows in order, each with its values, those of the first window first.
func (s *pebbleStore) each(windows []window.Span, yield func(hash uint64, key []byte, values [][]byte) error) error {
	all, err := s.cursors(windows)
	left := len(all)
	var head, buf []byte
	var values [][]byte
	var ends []int
	for left > 0 && err == nil {
		head = head[:0]
		for _, it := range all {
			if !it.Valid() {
				continue
			}
			_, _, n := cutKey(it.Key()[spanPrefix:])
			if next := it.Key()[spanPrefix : spanPrefix+n]; len(head) == 0 || bytes.Compare(next, head) < 0 {
				head = append(head[:0], next...)
			}
		}
		values, buf, ends = values[:0], buf[:0], ends[:0]
		for _, it := range all {
			for it.Valid() && bytes.HasPrefix(it.Key()[spanPrefix:], head) {
				buf = append(buf, it.Value()...)
				ends = append(ends, len(buf))
				if !it.Next() {
					left--
				}
			}
		}
		from := 0
		for _, end := range ends {
			values = append(values, buf[from:end])
			from = end
		}
		hash, key, _ := cutKey(head)
		err = yield(hash, key, values)
	}
	for _, it := range all {
		err = errors.Join(err, it.Close())
	}
	return err
}

type pebbleLists struct{ pebbleStore }

func (s *pebbleLists) Append(w window.Span, hash uint64, key, value []byte) error {
	s.seq++
	s.stats.UserBytes += int64(len(key) + len(value))
	s.key = binary.BigEndian.AppendUint64(keyOf(s.prefix(s.key, w), hash, key), s.seq)
	return s.wrote(s.batch.Set(s.key, value, nil))
}

func (s *pebbleLists) Each(windows []window.Span, yield func(hash uint64, key []byte, values window.Values) error) error {
	return s.each(windows, func(hash uint64, key []byte, values [][]byte) error { return yield(hash, key, window.ValuesOf(values)) })
}

func (s *pebbleLists) Drop(w window.Span) error { return s.drop(s.prefix(nil, w)) }

// pebbleValues collects what is added to one key in a row, and merges that.
type pebbleValues struct {
	pebbleStore
	acc  []byte
	open bool // acc is of key
}

// begin returns an empty value for the key that stands in s.key.
func (s *pebbleValues) begin() []byte {
	s.stats.UserBytes += int64(len(s.acc))
	s.open = true
	clear(s.acc)
	return s.acc
}

// put merges what was added to the last key.
func (s *pebbleValues) put() error {
	if !s.open {
		return nil
	}
	s.open = false
	return s.wrote(s.batch.Merge(s.key, s.acc, nil))
}

type pebbleAccumulators struct{ pebbleValues }

func (s *pebbleAccumulators) At(w window.Span, hash uint64, key []byte) (acc []byte, fresh bool, err error) {
	if err := s.put(); err != nil {
		return nil, false, err
	}
	s.key = keyOf(s.prefix(s.key, w), hash, key)
	return s.begin(), true, nil
}

func (s *pebbleAccumulators) Each(windows []window.Span, yield func(hash uint64, key, acc []byte) error) error {
	if err := s.put(); err != nil {
		return err
	}
	return s.each(windows, func(hash uint64, key []byte, values [][]byte) error {
		for _, v := range values[1:] {
			s.merge(values[0], v)
		}
		return yield(hash, key, values[0])
	})
}

func (s *pebbleAccumulators) Drop(w window.Span) error {
	return errors.Join(s.put(), s.drop(s.prefix(nil, w)))
}

// pebbleUnaligned keeps windows by numbers that do not come again: one that was merged has several.
type pebbleUnaligned struct {
	pebbleValues
	next    uint64
	windows [][]uint64
	unused  []uint32
}

func (s *pebbleUnaligned) Open() (uint32, error) {
	s.next++
	if n := len(s.unused); n > 0 {
		id := s.unused[n-1]
		s.unused, s.windows[id] = s.unused[:n-1], append(s.windows[id][:0], s.next)
		return id, nil
	}
	s.windows = append(s.windows, []uint64{s.next})
	return uint32(len(s.windows) - 1), nil
}

// number begins the key of a window.
func (s *pebbleUnaligned) number(dst []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(dst[:0], s.id), n)
}

// last is the number of a window to which values go.
func (s *pebbleUnaligned) last(id uint32) uint64 { return s.windows[id][len(s.windows[id])-1] }

func (s *pebbleUnaligned) Append(id uint32, _ int64, value []byte) error {
	s.seq++
	s.stats.UserBytes += int64(len(value))
	s.key = binary.BigEndian.AppendUint64(s.number(s.key, s.last(id)), s.seq)
	return s.wrote(s.batch.Set(s.key, value, nil))
}

func (s *pebbleUnaligned) At(id uint32, _ int64) (acc []byte, fresh bool, err error) {
	if err := s.put(); err != nil {
		return nil, false, err
	}
	s.key = binary.BigEndian.AppendUint64(s.number(s.key, s.last(id)), 0)
	return s.begin(), true, nil
}

func (s *pebbleUnaligned) Merge(into, from uint32) error {
	s.windows[into] = append(s.windows[into], s.windows[from]...)
	s.windows[from] = s.windows[from][:0]
	s.unused = append(s.unused, from)
	return nil
}

func (s *pebbleUnaligned) Each(ids []uint32, yield func(i int, contents []byte) error) error {
	if err := errors.Join(s.put(), s.flush()); err != nil {
		return err
	}
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	var contents []byte
	for i, id := range ids {
		contents = contents[:0]
		for _, n := range s.windows[id] {
			prefix := s.number(s.key, n)
			for ok := it.SeekGE(prefix); ok && bytes.HasPrefix(it.Key(), prefix); ok = it.Next() {
				contents = s.join(contents, it.Value())
			}
		}
		if err = errors.Join(it.Error(), yield(i, contents)); err != nil {
			break
		}
	}
	return errors.Join(err, it.Close())
}

// join adds a value to those of a window.
func (s *pebbleUnaligned) join(contents, value []byte) []byte {
	switch {
	case len(s.acc) == 0: // a list
		return append(binary.AppendUvarint(contents, uint64(len(value))), value...)
	case len(contents) == 0:
		return append(contents, value...)
	}
	s.merge(contents, value)
	return contents
}

func (s *pebbleUnaligned) Drop(ids []uint32) error {
	if err := s.put(); err != nil {
		return err
	}
	for _, id := range ids {
		for _, n := range s.windows[id] {
			if err := s.drop(s.number(nil, n)); err != nil {
				return err
			}
		}
		s.windows[id] = s.windows[id][:0]
		s.unused = append(s.unused, id)
	}
	return nil
}
