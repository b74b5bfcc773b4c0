package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"testing"

	"github.com/heddle-stream/heddle/storage/vfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, sys vfs.FS, name, text string, sync bool) {
	t.Helper()
	f, err := sys.Create(name)
	must(t, err)
	_, err = f.Write([]byte(text))
	must(t, err)
	if sync {
		must(t, f.Sync())
	}
	must(t, f.Close())
}

func read(t *testing.T, sys vfs.FS, name string) string {
	t.Helper()
	f, err := sys.Open(name)
	must(t, err)
	text, err := io.ReadAll(f)
	must(t, err)
	must(t, f.Close())
	return string(text)
}

// everywhere runs a test on every file system.
func everywhere(t *testing.T, test func(t *testing.T, sys vfs.FS, root string)) {
	t.Run("disk", func(t *testing.T) { test(t, vfs.Disk{}, t.TempDir()) })
	t.Run("memory", func(t *testing.T) { test(t, &vfs.Memory{}, "") })
	t.Run("crashable", func(t *testing.T) { test(t, vfs.NewCrashable(), "") })
	t.Run("faulty", func(t *testing.T) { test(t, vfs.NewFaulty(&vfs.Memory{}), "") })
}

func TestNames(t *testing.T) {
	everywhere(t, func(t *testing.T, sys vfs.FS, root string) {
		dir := path.Join(root, "a/b")
		must(t, sys.MkdirAll(dir))
		must(t, sys.MkdirAll(dir))
		write(t, sys, dir+"/y", "why", false)
		write(t, sys, dir+"/x", "ex", false)
		must(t, sys.MkdirAll(dir+"/sub"))
		list := func(want ...string) {
			t.Helper()
			if got, err := sys.List(dir); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%v, %v; want %v", got, err, want)
			}
		}
		list("sub", "x", "y")
		must(t, sys.Rename(dir+"/y", dir+"/x"))
		list("sub", "x")
		must(t, sys.SyncDir(dir))
		if got := read(t, sys, dir+"/x"); got != "why" {
			t.Fatalf("the renamed file holds %q", got)
		}
		if n, err := sys.Size(dir + "/x"); err != nil || n != 3 {
			t.Fatalf("size %d, %v", n, err)
		}
		if err := sys.Rename(dir+"/x", dir+"/sub/x"); err == nil {
			t.Error("a rename to another directory was allowed")
		}
		f, err := sys.Open(dir + "/x")
		must(t, err)
		must(t, sys.Remove(dir+"/x"))
		list("sub")
		if text, err := io.ReadAll(f); err != nil || string(text) != "why" {
			t.Errorf("a removed file that is open: %q, %v", text, err)
		}
		must(t, f.Close())

		_, open := sys.Open(dir + "/x")
		_, edit := sys.Edit(dir + "/x")
		_, size := sys.Size(dir + "/x")
		_, list2 := sys.List(dir + "/none")
		_, create := sys.Create(dir + "/none/x")
		for i, err := range []error{
			open, edit, size, list2, create, sys.Remove(dir + "/x"), sys.Rename(dir+"/x", dir+"/z"), sys.SyncDir(dir + "/none"),
		} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%d: %v, want an error of an absent name", i, err)
			}
		}
		write(t, sys, dir+"/file", "", false)
		if err := sys.MkdirAll(dir + "/file/sub"); err == nil {
			t.Error("a directory was made below a file")
		}
		if _, err := sys.Create(dir + "/sub"); err == nil {
			t.Error("a directory was opened as a file")
		}
	})
}

func TestFiles(t *testing.T) {
	everywhere(t, func(t *testing.T, sys vfs.FS, root string) {
		name := path.Join(root, "f")
		f, err := sys.Create(name)
		must(t, err)
		expect := func(want string) {
			t.Helper()
			if got := read(t, sys, name); got != want {
				t.Fatalf("%q, want %q", got, want)
			}
			if n, err := f.Size(); err != nil || n != int64(len(want)) {
				t.Fatalf("size %d, %v, want %d", n, err, len(want))
			}
		}
		_, err = f.Write([]byte("hello"))
		must(t, err)
		_, err = f.Write([]byte(", you"))
		must(t, err)
		expect("hello, you")
		_, err = f.WriteAt([]byte("J"), 0)
		must(t, err)
		_, err = f.WriteAt([]byte("!"), 12)
		must(t, err)
		expect("Jello, you\x00\x00!")
		must(t, f.Truncate(4))
		must(t, f.Preallocate(2))
		expect("Jell")
		must(t, f.Preallocate(6))
		expect("Jell\x00\x00")
		must(t, f.Truncate(7))
		must(t, f.Sync())
		expect("Jell\x00\x00\x00")

		buf := make([]byte, 5)
		if n, err := f.ReadAt(buf, 4); n != 3 || !errors.Is(err, io.EOF) {
			t.Errorf("read across the end: %d, %v", n, err)
		}
		if n, err := f.ReadAt(buf, 100); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("read behind the end: %d, %v", n, err)
		}
		must(t, f.Close())
		if err := f.Sync(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("sync of a closed file: %v", err)
		}

		f, err = sys.Edit(name)
		must(t, err)
		_, err = f.Write([]byte("C"))
		must(t, err)
		expect("Cell\x00\x00\x00")
		must(t, f.Close())
		f, err = sys.Open(name)
		must(t, err)
		if _, err := f.Write([]byte("x")); err == nil {
			t.Error("wrote to a file that is open for reading")
		}
		must(t, f.Close())
		f, err = sys.Create(name)
		must(t, err)
		expect("")
		must(t, f.Close())
	})
}

// An output goes on behind what counts: what was written after that is gone, also when less is written now.
func TestOutputGoesOn(t *testing.T) {
	everywhere(t, func(t *testing.T, sys vfs.FS, root string) {
		name := path.Join(root, "out")
		add := func(length int64, text string) {
			t.Helper()
			o, err := vfs.OpenOutput(sys, name, length)
			must(t, err)
			_, err = o.Write([]byte(text))
			must(t, err)
			if want := length + int64(len(text)); o.Length() != want {
				t.Errorf("%d bytes, want %d", o.Length(), want)
			}
			must(t, o.Sync())
			must(t, o.Close())
		}
		add(0, "one\ntwo\nthree\n")
		add(4, "2\n")
		if got := read(t, sys, name); got != "one\n2\n" {
			t.Errorf("%q", got)
		}
		if _, err := vfs.OpenOutput(sys, name, 7); err == nil {
			t.Error("a file that is shorter than what counts is taken")
		}
		add(0, "new\n")
		if got := read(t, sys, name); got != "new\n" {
			t.Errorf("%q", got)
		}
	})
}

func TestLock(t *testing.T) {
	everywhere(t, func(t *testing.T, sys vfs.FS, root string) {
		name := path.Join(root, "LOCK")
		for range 3 {
			held, err := sys.Lock(name)
			must(t, err)
			if _, err := sys.Lock(name); !errors.Is(err, vfs.ErrLocked) {
				t.Fatalf("a held lock: %v", err)
			}
			must(t, held.Close())
		}
	})
}

// The test runs itself as a second process, which must be refused while this one
// holds the lock and let in when it does not.
func TestLockBetweenProcesses(t *testing.T) {
	const variable = "HEDDLE_TEST_LOCK"
	if name := os.Getenv(variable); name != "" {
		if _, err := (vfs.Disk{}).Lock(name); err != nil {
			fmt.Fprint(os.Stdout, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	name := path.Join(t.TempDir(), "LOCK")
	second := func() (string, error) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLockBetweenProcesses$")
		cmd.Env = append(os.Environ(), variable+"="+name)
		out, err := cmd.Output()
		return string(out), err
	}
	held, err := vfs.Disk{}.Lock(name)
	must(t, err)
	if out, err := second(); err == nil || !bytes.Contains([]byte(out), []byte("another process")) {
		t.Errorf("the second process: %v, %q", err, out)
	}
	must(t, held.Close())
	if out, err := second(); err != nil {
		t.Errorf("after the lock was given back: %v, %q", err, out)
	}
}
