package checkpoint_test

import (
	"errors"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/internal/blocks"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// counter is an application with some rows.
func counter(rows int) (*txn.App, *txn.Event[int64, int64]) {
	app := txn.New("counter")
	counts := txn.NewTable[string, int64](app, "counts")
	for i := range rows {
		counts.Load(string(rune('a'+i)), int64(i))
	}
	add := txn.Upsert(counts, "add", func(_ txn.Ctx, n int64, v *int64, _ bool) txn.Verdict {
		*v += n
		return txn.OK
	})
	return app, txn.On(app, "add", func(p *txn.Plan, n int64) { add.At(p, "a", n) }, func(txn.Outcome, int64) int64 { return 0 })
}

func open(t *testing.T, fs vfs.FS) (*checkpoint.Dir, error) {
	t.Helper()
	return checkpoint.Open(fs, "state", checkpoint.Identity{"workload": "counter"}, checkpoint.Options{SegmentSize: 4096})
}

// kept makes a directory with a checkpoint of ten rows and two batches behind it.
func kept(t *testing.T, fs vfs.FS) storage.Hash {
	t.Helper()
	app, adds := counter(10)
	d, err := open(t, fs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Restore(app, ""); err != nil {
		t.Fatal(err)
	}
	if err := d.Checkpoint(app, checkpoint.Point{Events: 5}); err != nil {
		t.Fatal(err)
	}
	f := app.NewFeed()
	for n := range int64(7) {
		adds.Push(f, n)
	}
	if err := errors.Join(d.Commit(5, f, 0, 3), d.Commit(8, f, 3, 7), d.Close()); err != nil {
		t.Fatal(err)
	}
	return storage.StateHash(app)
}

// back reads a directory and returns what it restores and replays.
func back(t *testing.T, fs vfs.FS) (state storage.Hash, at, events int, err error) {
	app, _ := counter(3)
	d, err := open(t, fs)
	if err != nil {
		return state, 0, 0, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	p, err := d.Restore(app, "")
	if err != nil {
		return state, 0, 0, err
	}
	f := app.NewFeed()
	for err == nil {
		var l *checkpoint.Logged
		if l, err = d.Next(); err == nil {
			err = l.Push(f)
		}
	}
	if !errors.Is(err, io.EOF) {
		return state, 0, 0, err
	}
	return storage.StateHash(app), p.Events, f.Len(), nil
}

func TestComesBack(t *testing.T) {
	fs := &vfs.Memory{}
	want := kept(t, fs)
	state, at, events, err := back(t, fs)
	if err != nil || state != want || at != 5 || events != 7 {
		t.Errorf("state %s, expected %s; event %d, %d events of the log, %v", state, want, at, events, err)
	}
	info, err := checkpoint.Look(fs, "state")
	if err != nil || info.Events != 7 || info.Batches != 2 || info.Point.Events != 5 || info.Identity["workload"] != "counter" {
		t.Errorf("%+v, %v", info, err)
	}
}

// Any bit that flips in any file is an error, or changes nothing.
func TestFlippedBits(t *testing.T) {
	first := &vfs.Memory{}
	want := kept(t, first)
	names := []string{"state/MANIFEST", "state/checkpoint-1-5"}
	logs, err := first.List("state/log")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range logs {
		if strings.HasSuffix(name, ".log") {
			names = append(names, path.Join("state/log", name))
		}
	}
	caught := 0
	for _, name := range names {
		size, err := first.Size(name)
		if err != nil {
			t.Fatal(err)
		}
		for at := range min(size, 600) { // behind it a log has room only
			fs := &vfs.Memory{}
			kept(t, fs)
			flip(t, fs, name, at)
			state, point, events, err := back(t, fs)
			if err != nil {
				caught++
				continue
			}
			if state != want || point != 5 || events != 7 {
				t.Fatalf("%s, byte %d: state %s, event %d, %d events, and no error", name, at, state, point, events)
			}
		}
	}
	if caught < 300 {
		t.Errorf("%d flipped bytes were caught", caught)
	}
}

func flip(t *testing.T, fs vfs.FS, name string, at int64) {
	t.Helper()
	f, err := fs.Edit(name)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A checkpoint in the middle of the log would lose what is behind it.
func TestNoCheckpointBeforeTheLogIsReadBack(t *testing.T) {
	fs := &vfs.Memory{}
	kept(t, fs)
	app, _ := counter(0)
	d, err := open(t, fs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Restore(app, ""); err != nil {
		t.Fatal(err)
	}
	if err := d.Checkpoint(app, checkpoint.Point{Events: 8}); err == nil {
		t.Error("a checkpoint at event 8 of 12 is taken")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, events, err := back(t, fs); err != nil || events != 7 {
		t.Errorf("%d events of the log are left, %v", events, err)
	}
}

func TestOneAtATimeAndOneVersion(t *testing.T) {
	fs := &vfs.Memory{}
	kept(t, fs)
	d, err := open(t, fs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, fs); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("a second one: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Edit("state/MANIFEST")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{9}, 7); err != nil {
		t.Fatal(err)
	}
	var corrupt *blocks.CorruptError
	if _, err := open(t, fs); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("a manifest of version 9: %v", err)
	}
}
