//go:build librocksdb

package peers

/*
#cgo LDFLAGS: -lrocksdb
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <rocksdb/c.h>

// Lists are joined, numbers are added: by C, so that a compaction does not call Go.
static char* join(void* state, const char* key, size_t keyLen, const char* base, size_t baseLen, const char* const* parts, const size_t* lens, int n, unsigned char* ok, size_t* outLen) {
	size_t total = base ? baseLen : 0, at = 0;
	for (int i = 0; i < n; i++) total += lens[i];
	char* out = malloc(total ? total : 1);
	if (base) { memcpy(out, base, baseLen); at = baseLen; }
	for (int i = 0; i < n; i++) { memcpy(out + at, parts[i], lens[i]); at += lens[i]; }
	*ok = 1; *outLen = total;
	return out;
}
static char* joinFull(void* s, const char* k, size_t kl, const char* b, size_t bl, const char* const* p, const size_t* l, int n, unsigned char* ok, size_t* ol) { return join(s, k, kl, b, bl, p, l, n, ok, ol); }
static char* joinPart(void* s, const char* k, size_t kl, const char* const* p, const size_t* l, int n, unsigned char* ok, size_t* ol) { return join(s, k, kl, 0, 0, p, l, n, ok, ol); }
static char* sum(const char* base, const char* const* parts, int n, unsigned char* ok, size_t* outLen) {
	uint64_t total = 0, v;
	if (base) { memcpy(&v, base, 8); total = v; }
	for (int i = 0; i < n; i++) { memcpy(&v, parts[i], 8); total += v; }
	char* out = malloc(8);
	memcpy(out, &total, 8);
	*ok = 1; *outLen = 8;
	return out;
}
static char* sumFull(void* s, const char* k, size_t kl, const char* b, size_t bl, const char* const* p, const size_t* l, int n, unsigned char* ok, size_t* ol) { return sum(b, p, n, ok, ol); }
static char* sumPart(void* s, const char* k, size_t kl, const char* const* p, const size_t* l, int n, unsigned char* ok, size_t* ol) { return sum(0, p, n, ok, ol); }
static void freeValue(void* s, const char* v, size_t n) { free((void*)v); }
static void freeState(void* s) {}
static const char* nameOf(void* s) { return s ? "sum" : "join"; }
static rocksdb_mergeoperator_t* merger(int sums) {
	if (sums) return rocksdb_mergeoperator_create((void*)1, freeState, sumFull, sumPart, freeValue, nameOf);
	return rocksdb_mergeoperator_create(0, freeState, joinFull, joinPart, freeValue, nameOf);
}

// scan copies entries below end from an iterator into buf, lengths first, until it is full.
static size_t scan(rocksdb_iterator_t* it, const char* end, size_t endLen, char* buf, size_t cap) {
	size_t at = 0;
	for (; rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
		size_t kl, vl;
		const char* k = rocksdb_iter_key(it, &kl);
		if (memcmp(k, end, endLen < kl ? endLen : kl) >= 0) break;
		const char* v = rocksdb_iter_value(it, &vl);
		if (at + 4 + vl > cap) {
			if (at == 0) return (size_t)-(long)(4 + vl);
			return at;
		}
		uint32_t n = (uint32_t)vl;
		memcpy(buf + at, &n, 4);
		memcpy(buf + at + 4, v, vl);
		at += 4 + vl;
	}
	return at;
}
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/heddle-stream/heddle/bench"
)

func init() { openRocks = openRocksDB }

// rocksWindows is windows on RocksDB through its interface for C, laid out as those of Pebble.
type rocksWindows struct {
	way     bench.Way
	merges  bool
	db      *C.rocksdb_t
	opts    *C.rocksdb_options_t
	write   *C.rocksdb_writeoptions_t
	read    *C.rocksdb_readoptions_t
	batch   *C.rocksdb_writebatch_t
	pending int
	seq     uint64
	key     []byte
	buf     []byte
}

// failure makes an error of a message of RocksDB, which is freed.
func failure(msg *C.char) error {
	if msg == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(msg))
	return errors.New("rocksdb: " + C.GoString(msg))
}

func chars(b []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(b))) }

func openRocksDB(way bench.Way, dir string, limit int64, merges bool) (bench.WindowStore, error) {
	o := C.rocksdb_options_create()
	C.rocksdb_options_set_create_if_missing(o, 1)
	C.rocksdb_options_set_compression(o, 0)
	C.rocksdb_options_set_write_buffer_size(o, C.size_t(max(limit/4, 256<<10)))
	C.rocksdb_options_set_max_write_buffer_number(o, 2)
	C.rocksdb_options_increase_parallelism(o, 2)
	C.rocksdb_options_enable_statistics(o)
	sums := C.int(0)
	if way == bench.WayRMW {
		sums = 1
	}
	C.rocksdb_options_set_merge_operator(o, C.merger(sums))
	table := C.rocksdb_block_based_options_create()
	C.rocksdb_block_based_options_set_block_cache(table, C.rocksdb_cache_create_lru(C.size_t(limit/2)))
	C.rocksdb_block_based_options_set_filter_policy(table, C.rocksdb_filterpolicy_create_bloom(10))
	C.rocksdb_options_set_block_based_table_factory(o, table)
	name := C.CString(filepath.Join(dir, "rocksdb"))
	defer C.free(unsafe.Pointer(name))
	var msg *C.char
	db := C.rocksdb_open(o, name, &msg)
	if err := failure(msg); err != nil {
		return nil, err
	}
	w := C.rocksdb_writeoptions_create()
	C.rocksdb_writeoptions_disable_WAL(w, 1)
	return &rocksWindows{
		way: way, merges: merges, db: db, opts: o, write: w, read: C.rocksdb_readoptions_create(), batch: C.rocksdb_writebatch_create(),
		buf: make([]byte, 1<<20),
	}, nil
}

func (r *rocksWindows) Append(w, key uint64, _ int64, value []byte) error {
	if r.merges {
		r.key = tupleKey(r.key, w, key, 0)
		C.rocksdb_writebatch_merge(r.batch, chars(r.key), C.size_t(len(r.key)), chars(value), C.size_t(len(value)))
	} else {
		r.seq++
		r.key = tupleKey(r.key, w, key, r.seq)
		C.rocksdb_writebatch_put(r.batch, chars(r.key), C.size_t(len(r.key)), chars(value), C.size_t(len(value)))
	}
	return r.wrote()
}

func (r *rocksWindows) wrote() error {
	if r.pending++; r.pending < storeBatch {
		return nil
	}
	return r.flush()
}

func (r *rocksWindows) flush() error {
	r.pending = 0
	var msg *C.char
	C.rocksdb_write(r.db, r.write, r.batch, &msg)
	C.rocksdb_writebatch_clear(r.batch)
	return failure(msg)
}

// Add merges into the sum, or reads and writes it.
func (r *rocksWindows) Add(w, key uint64, n uint64) error {
	r.key = tupleKey(r.key, w, key, 0)
	var v [8]byte
	var msg *C.char
	if r.merges {
		binary.LittleEndian.PutUint64(v[:], n)
		C.rocksdb_writebatch_merge(r.batch, chars(r.key), C.size_t(len(r.key)), chars(v[:]), 8)
		return r.wrote()
	}
	var size C.size_t
	old := C.rocksdb_get(r.db, r.read, chars(r.key), C.size_t(len(r.key)), &size, &msg)
	if err := failure(msg); err != nil {
		return err
	}
	if old != nil {
		n += binary.LittleEndian.Uint64(C.GoBytes(unsafe.Pointer(old), 8))
		C.free(unsafe.Pointer(old))
	}
	binary.LittleEndian.PutUint64(v[:], n)
	C.rocksdb_put(r.db, r.write, chars(r.key), C.size_t(len(r.key)), chars(v[:]), 8, &msg)
	return failure(msg)
}

func (r *rocksWindows) Fire(ws []uint64, yield func(value []byte)) error {
	if err := r.flush(); err != nil {
		return err
	}
	it := C.rocksdb_create_iterator(r.db, r.read)
	defer C.rocksdb_iter_destroy(it)
	for _, w := range ws {
		from, to := tupleKey(nil, w, 0, 0), tupleKey(nil, w+1, 0, 0)
		C.rocksdb_iter_seek(it, chars(from), C.size_t(len(from)))
		for r.scan(it, to, yield) {
		}
		C.rocksdb_writebatch_delete_range(r.batch, chars(from), C.size_t(len(from)), chars(to), C.size_t(len(to)))
	}
	return r.flush()
}

// scan yields some entries. It reports false behind the last one.
func (r *rocksWindows) scan(it *C.rocksdb_iterator_t, end []byte, yield func(value []byte)) bool {
	n := int64(C.scan(it, chars(end), C.size_t(len(end)), chars(r.buf), C.size_t(len(r.buf))))
	if n < 0 { // one that is larger than the buffer
		r.buf = make([]byte, -n)
		return true
	}
	for b := r.buf[:n]; len(b) > 0; {
		size := binary.LittleEndian.Uint32(b)
		v := b[4 : 4+size]
		b = b[4+size:]
		for r.merges && r.way != bench.WayRMW && len(v) > flowValueSize {
			yield(v[:flowValueSize])
			v = v[flowValueSize:]
		}
		yield(v)
	}
	return n > 0
}

// Written returns what flushes and compactions wrote.
func (r *rocksWindows) Written() int64 {
	text := C.rocksdb_options_statistics_get_string(r.opts)
	defer C.free(unsafe.Pointer(text))
	stats := C.GoString(text)
	return counter(stats, "rocksdb.flush.write.bytes") + counter(stats, "rocksdb.compact.write.bytes")
}

// counter finds a count in the statistics, which are lines of a name and what it counts.
func counter(stats, name string) (n int64) {
	_, rest, _ := strings.Cut(stats, name+" COUNT : ")
	_, _ = fmt.Sscan(rest, &n)
	return n
}

func (r *rocksWindows) Close() error {
	C.rocksdb_writebatch_destroy(r.batch)
	C.rocksdb_close(r.db)
	C.rocksdb_readoptions_destroy(r.read)
	C.rocksdb_writeoptions_destroy(r.write)
	C.rocksdb_options_destroy(r.opts)
	return nil
}
