package spill

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// TestLogEqualsAMap adds, reads, frees and compacts at random, with segments so small that
// there are many, and rows that are longer than one.
func TestLogEqualsAMap(t *testing.T) {
	for seed := range uint64(30) {
		disk := &vfs.Memory{}
		if err := disk.MkdirAll("d"); err != nil {
			t.Fatal(err)
		}
		l, r := New(disk, "d/0", 4096), rng.New(seed, 0)
		model := map[uint64][]byte{}
		for range 300 {
			addRows(t, l, r, model)
			freeRows(l, r, model)
			compactRows(t, l, model)
			readRows(t, l, r, model)
		}
		live := 0
		for _, row := range model {
			live += frameSize(len(row))
		}
		if l.live.Load() != int64(live) || l.Size() > int64(3*live+8*l.whole) {
			t.Fatalf("seed %d: %d bytes of rows, counted as %d, take %d", seed, live, l.live.Load(), l.Size())
		}
		if names, err := disk.List("d"); err != nil || len(names) > 0 {
			t.Fatalf("names are left: %v, %v", names, err)
		}
		if err := l.Close(); err != nil || l.Size() != 0 {
			t.Fatalf("closed: %v, %d bytes", err, l.Size())
		}
	}
}

// TestHolesAreFreed has more rows come back and go between two compactions than a segment
// holds: the files must stay below three times the rows.
func TestHolesAreFreed(t *testing.T) {
	l, r := New(&vfs.Memory{}, "0", 16<<10), rng.New(1, 0)
	const rows, size = 20_000, 16
	row, places, keys := make([]byte, size), make([]uint64, rows), map[uint64]int{}
	add := func(ks []int) {
		var data []byte
		var ends []int
		for range ks {
			data = append(data, row...)
			ends = append(ends, len(data))
		}
		to := make([]uint64, len(ks))
		if err := l.Append(data, ends, to); err != nil {
			t.Fatal(err)
		}
		for i, k := range ks {
			places[k], keys[to[i]] = to[i], k
		}
	}
	all := r.Perm(rows)
	add(all)
	for range 30 {
		some := r.Perm(rows)[:rows/3]
		for _, k := range some {
			l.Free(places[k], size)
			delete(keys, places[k])
		}
		add(some)
		if err := l.Compact(func(a uint64, _ []byte) bool { _, ok := keys[a]; return ok }, func(_ []byte, from, to uint64) {
			k := keys[from]
			delete(keys, from)
			places[k], keys[to] = to, k
		}); err != nil {
			t.Fatal(err)
		}
		if live := l.live.Load(); l.Size() > 2*live+int64(2*l.whole) {
			t.Fatalf("%d bytes of files for %d of rows", l.Size(), live)
		}
	}
}

// TestNumbersAreUsedAgain adds and frees rows that take several numbers each, some of them in
// use all the time.
func TestNumbersAreUsedAgain(t *testing.T) {
	l := New(&vfs.Memory{}, "0", 4096)
	type held struct {
		address uint64
		size    int
	}
	var rows []held
	for i := range 200 {
		row, address := make([]byte, 5000+i%3*4000), make([]uint64, 1)
		if err := l.Append(row, []int{len(row)}, address); err != nil {
			t.Fatal(err)
		}
		if rows = append(rows, held{address[0], len(row)}); len(rows) < 4 {
			continue
		}
		l.Free(rows[0].address, rows[0].size)
		rows = rows[1:]
		move := func(_ []byte, from, to uint64) {
			for k := range rows {
				if rows[k].address == from {
					rows[k].address = to
				}
			}
		}
		if err := l.Compact(func(a uint64, _ []byte) bool {
			return slices.ContainsFunc(rows, func(r held) bool { return r.address == a })
		}, move); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(*l.segments.Load()); n > 20 {
		t.Errorf("%d numbers are used for three rows at a time", n)
	}
}

func addRows(t *testing.T, l *Log, r *rng.RNG, model map[uint64][]byte) {
	t.Helper()
	var data []byte
	var ends []int
	for range r.IntN(20) {
		n := r.IntN(100)
		if r.IntN(30) == 0 {
			n = r.IntN(15_000)
		}
		for range n {
			data = append(data, byte(r.Uint32N(256)))
		}
		ends = append(ends, len(data))
	}
	addresses := make([]uint64, len(ends))
	if err := l.Append(data, ends, addresses); err != nil {
		t.Fatal(err)
	}
	at := 0
	for i, end := range ends {
		if _, twice := model[addresses[i]]; twice || addresses[i] == 0 {
			t.Fatalf("address %d is given twice, or zero", addresses[i])
		}
		model[addresses[i]] = slices.Clone(data[at:end])
		at = end
	}
}

func freeRows(l *Log, r *rng.RNG, model map[uint64][]byte) {
	for _, a := range slices.Sorted(maps.Keys(model)) {
		if r.IntN(12) == 0 {
			l.Free(a, len(model[a]))
			delete(model, a)
		}
	}
}

func compactRows(t *testing.T, l *Log, model map[uint64][]byte) {
	t.Helper()
	err := l.Compact(func(a uint64, row []byte) bool {
		want, ok := model[a]
		return ok && bytes.Equal(want, row)
	}, func(row []byte, from, to uint64) {
		if !bytes.Equal(model[from], row) {
			t.Fatalf("a row moves from %d that is not there", from)
		}
		model[to] = model[from]
		delete(model, from)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func readRows(t *testing.T, l *Log, r *rng.RNG, model map[uint64][]byte) {
	t.Helper()
	all := slices.Sorted(maps.Keys(model))
	some := slices.DeleteFunc(slices.Clone(all), func(uint64) bool { return r.IntN(3) > 0 })
	var buf []byte
	n := 0
	if err := l.Read(some, &buf, func(i int, row []byte) error {
		if i != n || !bytes.Equal(row, model[some[i]]) {
			t.Fatalf("row %d of %d is another one", i, len(some))
		}
		n++
		return nil
	}); err != nil || n != len(some) {
		t.Fatalf("%d rows of %d: %v", n, len(some), err)
	}
	found := 0
	if err := l.Each(func(a uint64, row []byte) error {
		if want, ok := model[a]; ok {
			found++
			if !bytes.Equal(want, row) {
				t.Fatalf("the row at %d is another one", a)
			}
		}
		return nil
	}); err != nil || found != len(model) {
		t.Fatalf("%d rows of %d are yielded: %v", found, len(model), err)
	}
}

// TestDamageIsTold flips each bit of a file in turn.
func TestDamageIsTold(t *testing.T) {
	disk := &vfs.Memory{}
	if err := disk.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	l := New(disk, "d/0", 0)
	row := []byte("a row of some length")
	addresses := make([]uint64, 2)
	if err := l.Append(append(row, row...), []int{len(row), 2 * len(row)}, addresses); err != nil {
		t.Fatal(err)
	}
	f := l.segment(0).f
	for bit := range 8 * (headSize + len(row)) {
		at, one := int64(unit+bit/8), make([]byte, 1)
		flip := func() {
			if _, err := f.ReadAt(one, at); err != nil {
				t.Fatal(err)
			}
			one[0] ^= 1 << (bit % 8)
			if _, err := f.WriteAt(one, at); err != nil {
				t.Fatal(err)
			}
		}
		flip()
		var buf []byte
		err := l.Read(addresses[:1], &buf, func(int, []byte) error { return nil })
		each := l.Each(func(uint64, []byte) error { return nil })
		for _, err := range []error{err, each} {
			if err == nil || !strings.Contains(err.Error(), "d/0-0 is damaged at 8") {
				t.Fatalf("bit %d is flipped: %v", bit, err)
			}
		}
		flip()
	}
}

// TestFullDisk fails each write in turn: the error names the file, what was there before
// stays readable.
func TestFullDisk(t *testing.T) {
	for fail := 1; fail <= 12; fail++ {
		mem := &vfs.Memory{}
		if err := mem.MkdirAll("d"); err != nil {
			t.Fatal(err)
		}
		faulty := vfs.NewFaulty(mem)
		failed := ""
		faulty.SetHook(func(op vfs.Op) error {
			if op.N != fail {
				return nil
			}
			failed = op.Kind
			return &fs.PathError{Op: op.Kind, Path: op.Name, Err: vfs.ErrNoSpace}
		})
		l := New(faulty, "d/0", 256)
		model, seen := map[uint64][]byte{}, false
		for i := range 40 {
			row := []byte(fmt.Sprint("row number ", i, " of this log"))
			address := make([]uint64, 1)
			if err := l.Append(row, []int{len(row)}, address); err != nil {
				seen = true
				if !errors.Is(err, vfs.ErrNoSpace) || !strings.Contains(err.Error(), "d/0-") {
					t.Fatalf("operation %d fails: %v", fail, err)
				}
				continue
			}
			model[address[0]] = row
		}
		if seen == (failed == "remove") { // then the name stays until the end
			t.Fatalf("%s failed; that an error came of it: %v", failed, seen)
		}
		readRows(t, l, rng.New(1, 0), model)
	}
}
