package wal_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/invariants"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/storage/wal"
)

var update = flag.Bool("update", false, "write the golden files of the format that is written now")

// golden makes the log of testdata/v1: a segment that is cut where the process
// was killed, one that uses a file again, and a torn tail.
func golden(t *testing.T) (vfs.FS, []string) {
	t.Helper()
	sys := vfs.NewCrashable()
	opts := wal.Options{SegmentSize: 256}
	l, err := wal.Open(sys, dir, opts)
	must(t, err)
	commit(t, l, "dropped", strings.Repeat("stale ", 25))
	commit(t, l, "one", "two")
	must(t, l.TruncateBefore(2))
	sys.Kill()
	l, err = wal.Open(sys, dir, opts)
	must(t, err)
	commit(t, l, "three")
	commit(t, l, "", "four", "five")
	if _, err := l.Append(200, []byte("never committed")); err != nil {
		t.Fatal(err)
	}
	must(t, l.Commit())
	sys.Kill()
	im := take(t, sys)
	last := slices.Max(names(im))
	data := im[last]
	data[bytes.Index(data, []byte("never"))] = 'N'
	return im.put(t, "", nil), []string{"one", "two/", "three/", "", "four", "five/"}
}

func names(im image) []string {
	var out []string
	for name := range im {
		out = append(out, name)
	}
	return out
}

// Version 1 of the format is read for ever, and as long as it is the one that is
// written, the bytes are the same.
func TestGoldenFiles(t *testing.T) {
	const folder = "testdata/v1"
	sys, want := golden(t)
	im := take(t, sys)
	if *update {
		must(t, os.MkdirAll(folder, 0o755))
		for name, data := range im {
			must(t, os.WriteFile(filepath.Join(folder, name), data, 0o644))
		}
	}
	entries, err := os.ReadDir(folder)
	must(t, err)
	if len(entries) != len(im) || len(im) != 2 {
		t.Fatalf("%d files in %s, %d are written now, want 2", len(entries), folder, len(im))
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		must(t, err)
		if !bytes.Equal(data, im[e.Name()]) {
			t.Errorf("%s is written with other bytes than version 1", e.Name())
		}
	}
	r, err := wal.NewReader(vfs.Disk{}, folder, 2)
	must(t, err)
	got, err := readAll(r)
	must(t, err)
	var texts []string
	for i, rec := range got {
		text := string(rec.Payload)
		if rec.Last {
			text += "/"
		}
		texts = append(texts, text)
		if rec.Kind != 1 || rec.Number != uint64(2+i) {
			t.Errorf("record %+v", rec)
		}
	}
	if !slices.Equal(texts, want) {
		t.Errorf("%q, want %q", texts, want)
	}
}

func TestOnlyOneMayOpen(t *testing.T) {
	where := filepath.Join(t.TempDir(), "a", "log")
	l, err := wal.Open(vfs.Disk{}, where, wal.Options{SegmentSize: 4096})
	must(t, err)
	commit(t, l, "mine")
	if _, err := wal.Open(vfs.Disk{}, where, wal.Options{}); !errors.Is(err, vfs.ErrLocked) {
		t.Fatalf("a second opening: %v", err)
	}
	commit(t, l, "still mine")
	must(t, l.Close())
	l, err = wal.Open(vfs.Disk{}, where, wal.Options{SegmentSize: 4096})
	must(t, err)
	if l.Durable() != 2 {
		t.Errorf("%d records", l.Durable())
	}
	must(t, l.Close())
	for _, err := range []error{l.Close(), l.Commit(), l.TruncateBefore(0)} {
		if err == nil {
			t.Error("a closed log can be used")
		}
	}
	if _, err := l.Reader(0); err == nil {
		t.Error("a closed log can be read")
	}
}

func TestArguments(t *testing.T) {
	sys := &vfs.Memory{}
	if _, err := wal.Open(sys, dir, wal.Options{SegmentSize: 10}); err == nil {
		t.Error("tiny segments were allowed")
	}
	l, err := wal.Open(sys, dir, wal.Options{SegmentSize: 128})
	must(t, err)
	for _, kind := range []byte{0, 255} {
		if _, err := l.Append(kind, nil); err == nil {
			t.Errorf("a record of kind %d was allowed", kind)
		}
	}
	must(t, l.Commit())
	for range 9 {
		commit(t, l, strings.Repeat("text", 10))
	}
	if err := l.TruncateBefore(10); err == nil {
		t.Error("truncation of records to come was allowed")
	}
	must(t, l.TruncateBefore(5))
	if l.First() == 0 || l.First() > 5 {
		t.Errorf("the first record is %d", l.First())
	}
	if _, err := l.Reader(l.First() - 1); !errors.Is(err, wal.ErrTruncated) {
		t.Errorf("a truncated record: %v", err)
	}
	if _, err := l.Reader(10); err == nil {
		t.Error("reading from a record to come was allowed")
	}
	r, err := l.Reader(9)
	must(t, err)
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last record: %v", err)
	}
	must(t, r.Close())
	if l.Err() != nil {
		t.Errorf("wrong arguments made the log unusable: %v", l.Err())
	}
	must(t, l.Close())
}

// A reader sees what was committed when it was made, while the log goes on in
// another segment.
func TestReaderBesideWriter(t *testing.T) {
	l, err := wal.Open(&vfs.Memory{}, dir, wal.Options{SegmentSize: 200})
	must(t, err)
	for i := range 5 {
		commit(t, l, fmt.Sprint(i), "of a batch")
	}
	r, err := l.Reader(3)
	must(t, err)
	for i := range 20 {
		commit(t, l, fmt.Sprint("later ", i))
	}
	got, err := readAll(r)
	must(t, err)
	if len(got) != 7 || got[0].Number != 3 || got[6].Number != 9 {
		t.Errorf("%d records: %v", len(got), got)
	}
	must(t, l.Close())
}

// Truncated segments are used again, and no more files are kept than asked for.
func TestFilesAreUsedAgain(t *testing.T) {
	f := vfs.NewFaulty(&vfs.Memory{})
	created := 0
	f.SetHook(func(op vfs.Op) error {
		if op.Kind == "create" {
			created++
		}
		return nil
	})
	l, err := wal.Open(f, dir, wal.Options{SegmentSize: 256, Spares: 1})
	must(t, err)
	for range 200 {
		commit(t, l, strings.Repeat("text", 30))
		must(t, l.TruncateBefore(l.Durable()))
	}
	if created > 3 {
		t.Errorf("%d files were made", created)
	}
	names, err := f.List(dir)
	must(t, err)
	if len(names) > 3 {
		t.Errorf("files %v", names)
	}
	must(t, l.Close())
}

// A commit is one write and one sync, and allocates nothing.
func TestCommitIsOneWriteAndOneSync(t *testing.T) {
	f := vfs.NewFaulty(&vfs.Memory{})
	l, err := wal.Open(f, dir, wal.Options{SegmentSize: 1 << 20})
	must(t, err)
	var ops []string
	f.SetHook(func(op vfs.Op) error {
		ops = append(ops, op.Kind)
		return nil
	})
	commit(t, l, "one", "two", "three")
	if got := strings.Join(ops, " "); got != "write sync" {
		t.Errorf("operations %s", got)
	}
	must(t, l.Close())

	l, err = wal.Open(&vfs.Memory{}, dir, wal.Options{SegmentSize: 1 << 20})
	must(t, err)
	payload := make([]byte, 100)
	batch := func() {
		for range 20 {
			if _, err := l.Append(1, payload); err != nil {
				t.Fatal(err)
			}
		}
		must(t, l.Commit())
	}
	batch()
	// Checks box their arguments.
	if n := testing.AllocsPerRun(100, batch); n > 0 && !invariants.Enabled {
		t.Errorf("%v allocations per batch", n)
	}
	must(t, l.Close())
}

// BenchmarkCommit appends records of 100 bytes to a log on the machine's disk and
// commits each hundred, beside the bare write and sync of as many bytes.
func BenchmarkCommit(b *testing.B) {
	payload := make([]byte, 100)
	const records = 100
	b.Run("log", func(b *testing.B) {
		l, err := wal.Open(vfs.Disk{}, b.TempDir(), wal.Options{})
		must(b, err)
		defer l.Close()
		b.SetBytes(records * int64(len(payload)))
		b.ReportAllocs()
		for b.Loop() {
			for range records {
				if _, err := l.Append(1, payload); err != nil {
					b.Fatal(err)
				}
			}
			must(b, l.Commit())
		}
	})
	b.Run("bare", func(b *testing.B) {
		f, err := vfs.Disk{}.Create(filepath.Join(b.TempDir(), "f"))
		must(b, err)
		defer f.Close()
		must(b, f.Preallocate(64<<20))
		data := make([]byte, records*len(payload))
		b.SetBytes(int64(len(data)))
		for off := int64(0); b.Loop(); off = (off + int64(len(data))) % (60 << 20) {
			if _, err := f.WriteAt(data, off); err != nil {
				b.Fatal(err)
			}
			must(b, f.Sync())
		}
	})
	b.Run("append", func(b *testing.B) {
		l, err := wal.Open(&vfs.Memory{}, dir, wal.Options{})
		must(b, err)
		b.SetBytes(int64(len(payload)))
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := l.Append(1, payload); err != nil {
				b.Fatal(err)
			}
			if i%1000 == 0 {
				must(b, l.Commit())
				must(b, l.TruncateBefore(l.Durable()))
			}
		}
	})
}
