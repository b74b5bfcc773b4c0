package keyed

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
)

// memLog is a log for tests, in memory.
type memLog struct {
	rows   map[uint64][]byte
	freed  map[uint64]bool
	next   uint64
	moved  int
	broken error
}

func (l *memLog) Append(data []byte, ends []int, addresses []uint64) error {
	if l.broken != nil {
		return l.broken
	}
	if l.rows == nil {
		l.rows, l.freed, l.next = map[uint64][]byte{}, map[uint64]bool{}, 1
	}
	at := 0
	for i, end := range ends {
		l.rows[l.next], addresses[i] = slices.Clone(data[at:end]), l.next
		l.next++
		at = end
	}
	return nil
}

func (l *memLog) Read(addresses []uint64, _ *[]byte, yield func(i int, row []byte) error) error {
	for i, a := range addresses {
		if l.broken != nil {
			return l.broken
		}
		row, ok := l.rows[a]
		if !ok || l.freed[a] || i > 0 && addresses[i-1] >= a {
			panic("a row is read that is not there, or out of order")
		}
		if err := yield(i, row); err != nil {
			return err
		}
	}
	return nil
}

func (l *memLog) Row(address uint64, buf *[]byte) (row []byte, err error) {
	err = l.Read([]uint64{address}, buf, func(_ int, b []byte) error {
		row = b
		return nil
	})
	return row, err
}

func (l *memLog) Free(address uint64, row int) {
	if l.freed[address] || len(l.rows[address]) != row {
		panic("a row is freed twice, or with another length")
	}
	l.freed[address] = true
}

func (l *memLog) Each(yield func(address uint64, row []byte) error) error {
	for a, row := range l.rows {
		if err := yield(a, row); err != nil {
			return err
		}
	}
	return nil
}

// Compact moves every second row, and forgets those that are freed.
func (l *memLog) Compact(there func(address uint64, row []byte) bool, moved func(row []byte, from, to uint64)) error {
	for a, row := range maps.Clone(l.rows) {
		if there(a, row) == l.freed[a] {
			panic("a row is there and free, or neither")
		}
		if l.freed[a] {
			delete(l.rows, a)
			delete(l.freed, a)
			continue
		}
		if l.next++; a%2 == 0 {
			l.rows[l.next] = row
			moved(row, a, l.next)
			delete(l.rows, a)
			l.moved++
		}
	}
	l.next++
	return nil
}

func (l *memLog) Size() int64 { return int64(len(l.rows)) }

func (l *memLog) Close() error {
	l.rows, l.freed, l.next = map[uint64][]byte{}, map[uint64]bool{}, 1
	return nil
}

var errShort = errors.New("short")

func limitWords(table *Table[uint32, int], bytes int64) *memLog {
	log := &memLog{}
	table.Limit(NewBudget(bytes), log, func(dst []byte, key *uint32, v *int) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(dst, *key), uint64(*v))
	}, func(src []byte, key *uint32, v *int) error {
		if len(src) != 12 {
			return errShort
		}
		*key, *v = binary.LittleEndian.Uint32(src), int(binary.LittleEndian.Uint64(src[4:]))
		return nil
	})
	return log
}

func limitText(table *Table[string, int], bytes int64) {
	table.Limit(NewBudget(bytes), &memLog{}, func(dst []byte, key *string, v *int) []byte {
		return append(binary.LittleEndian.AppendUint64(dst, uint64(*v)), *key...)
	}, func(src []byte, key *string, v *int) error {
		if len(src) < 8 {
			return errShort
		}
		*v, *key = int(binary.LittleEndian.Uint64(src)), strings.Clone(string(src[8:]))
		return nil
	})
}

// checkLimit makes sure that memory is kept to, and that what the budget has is what the
// shards take.
func checkLimit[K comparable](t *testing.T, table *Table[K, int]) {
	t.Helper()
	p, sum := table.spill, int64(0)
	if err := table.LogErr(); err != nil {
		t.Fatal(err)
	}
	for i := range table.shards[:table.count] {
		z, s := &p.shards[i], &table.shards[i]
		sum += table.placesBytes(int(s.mask)+1) + z.cold.bytes() + z.outside
		n := 0
		for _, slot := range z.cold.slots {
			if slot != 0 {
				n++
			}
		}
		if n != z.cold.used || len(s.late) > 0 || len(s.recs) != int(s.mask)+1 {
			t.Fatalf("shard %d: %d slots in use, counted as %d; %d rows are late", i, n, z.cold.used, len(s.late))
		}
	}
	if used := p.budget.Used(); used != sum || used != p.held.Load() {
		t.Fatalf("the budget has %d bytes, the shards take %d", used, sum)
	}
	// The index of so small a table takes as much as its rows, and may have to grow.
	if limit := p.budget.limit * 2; sum > limit {
		t.Fatalf("%d bytes in memory, of %d", sum, p.budget.limit)
	}
}

// TestTablesShareABudget loads one table until it has all memory, and then another one:
// both come to have about half.
func TestTablesShareABudget(t *testing.T) {
	const limit, rows = 800_000, 20_000
	a, b := New[uint32, int](), New[uint32, int]()
	limitWords(a, limit)
	limitWords(b, limit)
	shared := NewBudget(limit)
	shared.tables = 2
	for _, table := range []*Table[uint32, int]{a, b} {
		table.spill.budget = shared
		shared.used.Add(table.spill.held.Load())
	}
	for k := range uint32(rows) {
		a.Load(k, int(k))
	}
	alone := a.spill.held.Load()
	for k := range uint32(rows) {
		b.Load(k, int(k))
		if k%100 == 0 {
			a.ReclaimAll()
		}
	}
	for range 20 { // a quarter of the rows goes at a time
		a.ReclaimAll()
	}
	if alone < limit/2 || shared.Used() > limit*5/4 || a.spill.held.Load() < limit*9/20 || b.spill.held.Load() < limit*9/20 {
		t.Fatalf("the first one had %d bytes alone; now they have %d and %d, %d together", alone, a.spill.held.Load(), b.spill.held.Load(), shared.Used())
	}
	for k := range uint32(rows) {
		if v, ok := a.Get(k); !ok || v != int(k) {
			t.Fatalf("key %d has %d, %v", k, v, ok)
		}
	}
}

// TestRowsInUseStay looks for few keys all the time and for others now and then: the few
// have to be in memory nearly always.
func TestRowsInUseStay(t *testing.T) {
	table := New[uint32, int]()
	limitWords(table, 250_000)
	for k := range uint32(10_000) {
		table.Load(k, int(k))
	}
	r, missed := rng.New(1, 0), 0
	for range 2000 {
		before := table.Traffic().Come
		for k := range uint32(50) {
			table.Ensure(k)
		}
		missed += table.Traffic().Come - before
		for range 50 {
			table.Ensure(50 + r.Uint32N(9950))
		}
		table.ReclaimAll()
	}
	if missed > 100 { // one in a thousand
		t.Fatalf("of 100,000 looks at 50 keys in use %d found the key in the log", missed)
	}
}

// TestSearchesStayShort has rows come and go until the hand was everywhere many times: rows
// that stay have to be near where the search for them begins.
func TestSearchesStayShort(t *testing.T) {
	table := newTable[uint32, int](1, 32)
	limitWords(table, 2_000_000)
	const keys = 100_000
	for k := range uint32(keys) {
		table.Load(k, int(k))
	}
	r, s, worst := rng.New(2, 0), &table.shards[0], 0.0
	for i := range 300 {
		for range 2000 {
			table.Ensure(r.Uint32N(keys))
		}
		if i%10 == 0 {
			steps := uint32(0)
			for at := range s.mask + 1 {
				if s.recs[at].tag != 0 {
					steps += s.steps(s.home(s.recs[at].tag), at)
				}
			}
			worst = max(worst, float64(steps)/float64(s.used))
		}
		table.ReclaimAll()
	}
	t.Logf("%.1f places", worst)
	if s.used < 10_000 || worst > 10 {
		t.Fatalf("%d rows are %.1f places from where the search for them begins", s.used, worst)
	}
}

// TestBrokenLog lets the log fail: the table has to say so, and keep what it could not
// write.
func TestBrokenLog(t *testing.T) {
	table := New[uint32, int]()
	log := limitWords(table, 20_000)
	log.broken = errors.New("no room")
	for k := range uint32(5000) {
		table.Load(k, int(k))
	}
	if err := table.LogErr(); !errors.Is(err, log.broken) {
		t.Fatalf("the log failed, the table says %v", err)
	}
	for k := range uint32(5000) {
		if v, ok := table.Get(k); !ok || v != int(k) {
			t.Fatalf("key %d is lost: %d, %v", k, v, ok)
		}
	}
}
