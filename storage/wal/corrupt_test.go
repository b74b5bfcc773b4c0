package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/storage/wal"
)

// image is the segment files of a log, by name.
type image map[string][]byte

func take(t testing.TB, sys vfs.FS) image {
	t.Helper()
	names, err := sys.List(dir)
	must(t, err)
	out := image{}
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		f, err := sys.Open(dir + "/" + name)
		must(t, err)
		out[name], err = io.ReadAll(f)
		must(t, err)
		must(t, f.Close())
	}
	return out
}

// put returns a file system with the image, of which one file has other bytes.
func (im image) put(t testing.TB, other string, data []byte) vfs.FS {
	t.Helper()
	sys := &vfs.Memory{}
	must(t, sys.MkdirAll(dir))
	for name, b := range im {
		if name == other {
			b = data
		}
		f, err := sys.Create(dir + "/" + name)
		must(t, err)
		_, err = f.Write(b)
		must(t, err)
		must(t, f.Close())
	}
	return sys
}

// smallLog writes a log of four segments with stale records behind the new ones.
// Its last two batches lie in one segment. Without an orderly close the file
// system is as after a kill.
func smallLog(t testing.TB, orderly bool) (vfs.FS, []rec) {
	t.Helper()
	sys := vfs.NewCrashable()
	l, err := wal.Open(sys, dir, wal.Options{SegmentSize: 230})
	must(t, err)
	m := &model{}
	add := func(texts ...string) {
		for _, text := range texts {
			m.pending = append(m.pending, rec{kind: byte(1 + len(m.committed)), payload: []byte(text)})
			if _, err := l.Append(byte(1+len(m.committed)), []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		m.commit()
		must(t, l.Commit())
		m.confirm()
	}
	for range 8 {
		add("this will be truncated", "and this, too")
	}
	must(t, l.TruncateBefore(l.Durable()))
	first := l.First()
	add("a", "bc", "")
	add("def")
	add("ghij", "\x10\x00\x00\x00\xff\xff\xff\xff\xff")
	add("a record that needs more room than the others, so that a new segment is begun")
	add("x", "y")
	add("the", "end")
	if orderly {
		must(t, l.Close())
	}
	return sys, m.committed[first:]
}

// read reads all of a log and opens and reads it again, and returns what it
// reads. Both ways must agree.
func readBoth(t *testing.T, sys vfs.FS) ([]wal.Record, error) {
	t.Helper()
	files, err := sys.List(dir)
	must(t, err)
	plain, errPlain := readFrom(sys)
	l, err := wal.Open(sys, dir, wal.Options{SegmentSize: 230})
	if err != nil {
		if errPlain == nil {
			t.Fatalf("files %v: reading works, opening says %v", files, err)
		}
		return plain, err
	}
	defer l.Close()
	r, err := l.Reader(l.First())
	must(t, err)
	opened, errOpened := readAll(r)
	if fmt.Sprint(plain) != fmt.Sprint(opened) || (errPlain == nil) != (errOpened == nil) {
		t.Fatalf("reading gives %d records and %v, opening %d and %v", len(plain), errPlain, len(opened), errOpened)
	}
	return plain, errPlain
}

// readFrom reads a log from its first record on.
func readFrom(sys vfs.FS) ([]wal.Record, error) {
	r, err := wal.NewReader(sys, dir, 0)
	if errors.Is(err, wal.ErrTruncated) {
		var first uint64
		if _, scan := fmt.Sscanf(err.Error(), dir+": record 0: the first one is %d", &first); scan != nil {
			return nil, scan
		}
		r, err = wal.NewReader(sys, dir, first)
	}
	if err != nil {
		return nil, err
	}
	return readAll(r)
}

// prefix returns how many records were read, which must be the first ones of
// those written and whole batches.
func prefix(t *testing.T, got []wal.Record, want []rec) int {
	t.Helper()
	for i, g := range got {
		if i >= len(want) || g.Kind != want[i].kind || !bytes.Equal(g.Payload, want[i].payload) || g.Last != want[i].last {
			t.Fatalf("record %d was read as %+v", i, g)
		}
	}
	if n := len(got); n > 0 && !got[n-1].Last {
		t.Fatalf("%d records are no whole batches", n)
	}
	return len(got)
}

// Every bit of a small log is flipped, every byte replaced, and every segment cut
// off and blanked from everywhere on. All records are read, or there is an error
// that says where. Only the last batch of a log that was not closed may be missing,
// and what the last segment is cut off behind.
func TestDamageIsFound(t *testing.T) {
	for _, orderly := range []bool{false, true} {
		sys, want := smallLog(t, orderly)
		im := take(t, sys)
		if len(im) != 4 {
			t.Fatalf("%d segments, want 4", len(im))
		}
		least := len(want)
		if !orderly {
			least -= 2
		}
		found, torn := 0, 0
		try := func(name string, data []byte, least int) {
			t.Helper()
			from := 0 // the first byte that is bad
			for from < len(data) && data[from] == im[name][from] {
				from++
			}
			got, err := readBoth(t, im.put(t, name, data))
			n := prefix(t, got, want)
			if err != nil {
				var bad *wal.CorruptError
				if !errors.As(err, &bad) {
					t.Fatalf("%s, byte %d: %v", name, from, err)
				}
				if bad.File != dir+"/"+name || bad.Offset > int64(from) {
					t.Fatalf("%s, byte %d: %v", name, from, err)
				}
				found++
				return
			}
			if n < least {
				t.Fatalf("%s, byte %d: only %d of %d records and no error", name, from, n, len(want))
			}
			if n < len(want) && least > 0 {
				torn++
			}
		}
		last := slices.Max(names(im))
		for name, data := range im {
			// A tail that is gone as a whole, mark and all, was never written.
			rest := len(want)
			if name == last {
				rest = 0
			}
			for i := range data {
				for bit := range 8 {
					other := bytes.Clone(data)
					other[i] ^= 1 << bit
					try(name, other, least)
				}
				for _, b := range []byte{0, 255} {
					other := bytes.Clone(data)
					other[i] = b
					try(name, other, least)
				}
				if i%4 == 0 {
					try(name, append(bytes.Clone(data[:i]), make([]byte, len(data)-i)...), rest)
					try(name, data[:i], rest)
				}
			}
		}
		if found == 0 || !orderly && torn == 0 || orderly && torn > 0 {
			t.Errorf("orderly close %v: %d times found, %d times torn", orderly, found, torn)
		}
	}
}

// A segment that is missing, or not the one that its name says, is found.
func TestMissingSegmentIsFound(t *testing.T) {
	sys, want := smallLog(t, true)
	im := take(t, sys)
	var names []string
	for name := range im {
		names = append(names, name)
	}
	for _, name := range names {
		for _, other := range names {
			if name == other {
				continue
			}
			_, err := readBoth(t, im.put(t, name, im[other]))
			var bad *wal.CorruptError
			if !errors.As(err, &bad) || bad.Offset != 0 {
				t.Errorf("%s holds %s: %v", name, other, err)
			}
		}
		less := image{}
		for n, b := range im {
			if n != name {
				less[n] = b
			}
		}
		got, err := readBoth(t, less.put(t, "", nil))
		var bad *wal.CorruptError
		if err != nil && !errors.As(err, &bad) {
			t.Errorf("without %s: %v", name, err)
		}
		// Without its first or last segment a log is just shorter: its user knows which
		// record it begins with and that it had more.
		if err == nil && len(got) == len(want) {
			t.Errorf("without %s all is there", name)
		}
	}
	if r, err := wal.NewReader(sys, dir, 1000); err != nil {
		t.Error(err)
	} else if _, err := readAll(r); err == nil || !strings.Contains(err.Error(), "record 1000 is asked for") {
		t.Errorf("a record that the log does not have: %v", err)
	}
}

// An error of the disk while reading is an error of the reader, never an end.
func TestReadErrorsAreNoEnd(t *testing.T) {
	for _, orderly := range []bool{false, true} {
		sys, want := smallLog(t, orderly)
		all, err := readFrom(sys)
		must(t, err)
		first := all[0].Number
		for n := 1; ; n++ {
			f := vfs.NewFaulty(sys)
			f.FailAt(n, errPower)
			r, err := wal.NewReader(f, dir, first)
			var got []wal.Record
			if err == nil {
				got, err = readAll(r)
			}
			if n > f.Ops() {
				must(t, err)
				if len(got) != len(want) {
					t.Fatalf("%d records, want %d", len(got), len(want))
				}
				break
			}
			if !errors.Is(err, errPower) {
				t.Fatalf("operation %d: %v", n, err)
			}
			prefix(t, got, want[:len(got)])
		}
	}
}

// FuzzReader reads segments of arbitrary bytes. Nothing may panic or go on for
// ever, a bad log is a *CorruptError, and reading and opening agree.
func FuzzReader(f *testing.F) {
	for _, orderly := range []bool{false, true} {
		sys, _ := smallLog(f, orderly)
		im := take(f, sys)
		var last []byte
		for _, data := range im {
			f.Add(data, last)
			f.Add(data[:len(data)/2], data)
			last = data
		}
		f.Add([]byte{}, []byte{})
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		im := image{}
		for _, data := range [][]byte{a, b} {
			if len(data) < 32 {
				continue
			}
			// The name is made to fit, otherwise hardly anything is read.
			seq := uint64(0)
			for i := range 8 {
				seq |= uint64(data[12+i]) << (8 * i)
			}
			im[fmt.Sprintf("%020d.log", seq)] = data
		}
		_, err := readBoth(t, im.put(t, "", nil))
		var bad *wal.CorruptError
		if err != nil && !errors.As(err, &bad) {
			t.Fatal(err)
		}
	})
}
