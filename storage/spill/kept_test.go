package spill

import (
	"maps"
	"path"
	"slices"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// A log that is kept comes back as it was at the last mark, and files that no mark wants go
// when they may.
func TestKeptLogSurvives(t *testing.T) {
	for seed := range uint64(40) {
		disk, r := vfs.NewCrashable(), rng.New(seed, 7)
		if err := disk.MkdirAll("d"); err != nil {
			t.Fatal(err)
		}
		l, model := NewKept(disk, "d/0", 2048), map[uint64][]byte{}
		mark, marked := mustMark(t, l, disk), maps.Clone(model)
		for range 120 {
			addRows(t, l, r, model)
			freeRows(l, r, model)
			compactRows(t, l, model)
			switch r.IntN(6) {
			case 0:
				mark, marked = mustMark(t, l, disk), maps.Clone(model)
				if r.IntN(2) == 0 {
					continue
				}
				if err := l.Release(); err != nil {
					t.Fatal(err)
				}
				if names, err := disk.List("d"); err != nil || !slices.Equal(names, names0(l.Files())) {
					t.Fatalf("seed %d: %v are left, %v, in use are %v", seed, names, err, l.Files())
				}
			case 1:
				disk.Crash(r)
				var err error
				if l, err = OpenKept(disk, "d/0", mark); err != nil {
					t.Fatal(err)
				}
				model = maps.Clone(marked)
				readRows(t, l, r, model)
				sweep(t, disk, l)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := OpenKept(disk, "d/0", mark)
		if err != nil {
			t.Fatal(err)
		}
		readRows(t, again, r, marked)
	}
}

func mustMark(t *testing.T, l *Log, fs vfs.FS) Mark {
	t.Helper()
	m, err := l.Mark()
	if err == nil {
		err = fs.SyncDir("d")
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func names0(paths []string) (names []string) {
	for _, p := range paths {
		names = append(names, path.Base(p))
	}
	slices.Sort(names)
	return names
}

// sweep removes what a crash left over.
func sweep(t *testing.T, fs vfs.FS, l *Log) {
	t.Helper()
	names, err := fs.List("d")
	for _, name := range names {
		if err == nil && !slices.Contains(names0(l.Files()), name) {
			err = fs.Remove("d/" + name)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A file that lost some of what it had is found out.
func TestKeptLogTellsOfShortFiles(t *testing.T) {
	disk := &vfs.Memory{}
	if err := disk.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	l := NewKept(disk, "d/0", 0)
	if err := l.Append(make([]byte, 100), []int{100}, make([]uint64, 1)); err != nil {
		t.Fatal(err)
	}
	mark := mustMark(t, l, disk)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := disk.Edit("d/0-0")
	if err == nil {
		err = f.Truncate(50)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKept(disk, "d/0", mark); err == nil {
		t.Error("a file that is too short was opened")
	}
}
