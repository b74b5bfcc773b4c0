package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// What was synced is there after a crash, and of the rest every outcome that the
// rules allow comes up.
func TestCrashKeepsWhatWasSynced(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(400) {
		c := vfs.NewCrashable()
		must(t, c.MkdirAll("d"))
		write(t, c, "d/kept", "0123456789", true)
		write(t, c, "d/empty", "abc", false)
		must(t, c.SyncDir("d"))
		write(t, c, "d/nameless", "xyz", true)
		f, err := c.Edit("d/kept")
		must(t, err)
		_, err = f.WriteAt([]byte("ABCDE"), 8)
		must(t, err)
		_, err = f.WriteAt([]byte("FG"), 13)
		must(t, err)
		must(t, c.Rename("d/empty", "d/moved"))

		c.Crash(rng.New(seed, 1))
		if _, err := f.Size(); !errors.Is(err, fs.ErrClosed) {
			t.Fatalf("a file that was open when the machine crashed: %v", err)
		}
		kept := read(t, c, "d/kept")
		if !strings.HasPrefix(kept, "01234567") || len(kept) < 10 || len(kept) > 15 {
			t.Fatalf("seed %d: %q", seed, kept)
		}
		for i := range kept {
			if was, now := "0123456789\x00\x00\x00\x00\x00"[i], "01234567ABCDEFG"[i]; kept[i] != was && kept[i] != now {
				t.Fatalf("seed %d: %q has byte %d from nowhere", seed, kept, i)
			}
		}
		names, err := c.List("d")
		must(t, err)
		list := strings.Join(names, " ")
		if strings.Contains(list, "empty") == strings.Contains(list, "moved") || !strings.Contains(list, "kept") {
			t.Fatalf("seed %d: names %s", seed, list)
		}
		seen["data "+kept]++
		seen["names "+list]++
		if strings.Contains(list, "nameless") && read(t, c, "d/nameless") != "xyz" {
			t.Fatalf("seed %d: synced bytes are lost", seed)
		}
		before := fmt.Sprint(list, kept)
		c.Crash(rng.New(seed, 2))
		names, err = c.List("d")
		must(t, err)
		if after := fmt.Sprint(strings.Join(names, " "), read(t, c, "d/kept")); after != before {
			t.Fatalf("seed %d: %q became %q in a second crash", seed, before, after)
		}
	}
	for _, want := range []string{
		"data 0123456789", "data 01234567ABCDEFG", "data 01234567ABCDE", "data 0123456789\x00\x00\x00FG", "data 01234567A9",
		"names empty kept", "names kept moved", "names empty kept nameless", "names kept moved nameless",
	} {
		if seen[want] == 0 {
			t.Errorf("%q never came up", want)
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d outcomes", len(seen))
	}
}

func TestCrashIsReproducible(t *testing.T) {
	run := func(seed uint64) string {
		c := vfs.NewCrashable()
		r := rng.New(seed, 1)
		for i := range 30 {
			name := fmt.Sprint(r.IntN(5))
			write(t, c, name, strings.Repeat(fmt.Sprint(i), 1+r.IntN(9)), r.IntN(2) == 0)
			if r.IntN(6) == 0 {
				must(t, c.SyncDir(""))
			}
			if r.IntN(3) == 0 {
				must(t, c.Rename(name, fmt.Sprint(r.IntN(5))))
			}
		}
		c.Crash(r)
		names, err := c.List("")
		must(t, err)
		var out strings.Builder
		for _, n := range names {
			fmt.Fprintf(&out, "%s=%q ", n, read(t, c, n))
		}
		return out.String()
	}
	different := map[string]bool{}
	for seed := range uint64(20) {
		a, b := run(seed), run(seed)
		if a != b {
			t.Fatalf("seed %d: %s and %s", seed, a, b)
		}
		different[a] = true
	}
	if len(different) < 10 {
		t.Errorf("only %d outcomes of 20 seeds", len(different))
	}
}

// A killed process loses its locks and files, and nothing that it wrote; what it
// did not sync can still be synced or lost.
func TestKillLosesNothing(t *testing.T) {
	c := vfs.NewCrashable()
	_, err := c.Lock("LOCK")
	must(t, err)
	write(t, c, "f", "text", false)
	c.Kill()
	_, err = c.Lock("LOCK")
	must(t, err)
	if got := read(t, c, "f"); got != "text" {
		t.Fatalf("%q", got)
	}
	f, err := c.Edit("f")
	must(t, err)
	must(t, f.Sync())
	must(t, c.SyncDir(""))
	c.Crash(rng.New(1, 1))
	if got := read(t, c, "f"); got != "text" {
		t.Fatalf("%q after it was synced", got)
	}
}

func TestDropDirty(t *testing.T) {
	c := vfs.NewCrashable()
	write(t, c, "f", "old", true)
	must(t, c.SyncDir(""))
	f, err := c.Edit("f")
	must(t, err)
	_, err = f.Write([]byte("new"))
	must(t, err)
	must(t, c.DropDirty("f"))
	if got := read(t, c, "f"); got != "new" {
		t.Fatalf("%q is seen", got)
	}
	must(t, f.Sync())
	c.Crash(rng.New(1, 1))
	if got := read(t, c, "f"); got != "old" {
		t.Fatalf("%q survived", got)
	}
}

var errInjected = errors.New("injected")

func TestFaults(t *testing.T) {
	below := &vfs.Memory{}
	f := vfs.NewFaulty(below)
	var ops []string
	f.SetHook(func(op vfs.Op) error {
		ops = append(ops, op.Kind)
		if op.N != len(ops) {
			t.Errorf("%v is number %d", op, len(ops))
		}
		if op.Name == "forbidden" {
			return errInjected
		}
		return nil
	})
	if _, err := f.Create("forbidden"); !errors.Is(err, errInjected) {
		t.Fatalf("the hook's error: %v", err)
	}
	if names, err := below.List(""); err != nil || len(names) > 0 {
		t.Fatalf("a refused operation was done: %v, %v", names, err)
	}
	file, err := f.Create("f")
	must(t, err)

	f.FailAt(f.Ops()+1, errInjected)
	if n, err := file.Write([]byte("abc")); n != 0 || !errors.Is(err, errInjected) {
		t.Errorf("failed write: %d, %v", n, err)
	}
	f.ShortAt(f.Ops() + 1)
	if n, err := file.Write([]byte("abcd")); n != 2 || err == nil {
		t.Errorf("short write: %d, %v", n, err)
	}
	f.SetSpace(3)
	if err := file.Preallocate(6); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("preallocation on a full disk: %v", err)
	}
	must(t, file.Preallocate(5))
	if n, err := file.WriteAt([]byte("xyzw"), 2); n != 3 || !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("write on a full disk: %d, %v", n, err)
	}
	if n, err := file.Write([]byte("x")); n != 0 || !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("another write on a full disk: %d, %v", n, err)
	}
	f.Heal()
	if got := read(t, f, "f"); got != "abxyz" {
		t.Errorf("%q", got)
	}
	must(t, file.Sync())
	want := "create create write write preallocate preallocate write write open read read close sync"
	if got := strings.Join(ops, " "); got != want {
		t.Errorf("operations %s, want %s", got, want)
	}
}

// A file whose sync failed once never syncs again, under any name and handle.
func TestFailedSyncPoisons(t *testing.T) {
	f := vfs.NewFaulty(&vfs.Memory{})
	file, err := f.Create("f")
	must(t, err)
	f.FailAt(f.Ops()+1, errInjected)
	for range 3 {
		if err := file.Sync(); !errors.Is(err, errInjected) {
			t.Fatalf("%v", err)
		}
	}
	must(t, f.Rename("f", "g"))
	again, err := f.Edit("g")
	must(t, err)
	if err := again.Sync(); !errors.Is(err, errInjected) {
		t.Errorf("opened again: %v", err)
	}
	write(t, f, "f", "another file", true)
	f.Heal()
	must(t, again.Sync())
	if !bytes.Equal([]byte(read(t, f, "f")), []byte("another file")) {
		t.Error("the other file is damaged")
	}
}
