package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/storage/wal"
)

const dir = "log"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type rec struct {
	kind    byte
	payload []byte
	last    bool
}

// model is the naive log: a list of what is committed.
type model struct {
	committed []rec // from the very first on, number = index
	pending   []rec // appended
	inflight  []rec // of a commit that did not return
	floor     uint64
}

func (m *model) commit() {
	if len(m.pending) > 0 {
		m.pending[len(m.pending)-1].last = true
	}
	m.inflight, m.pending = m.pending, nil
}

func (m *model) confirm() {
	m.committed = append(m.committed, m.inflight...)
	m.inflight = nil
}

// readAll returns what a reader returns up to its error, io.EOF being none.
func readAll(r *wal.Reader) ([]wal.Record, error) {
	var out []wal.Record
	for {
		got, err := r.Next()
		if err != nil {
			if _, again := r.Next(); again != err { //nolint:errorlint // it must be the same
				return out, fmt.Errorf("%w and then %w", err, again)
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return out, errors.Join(err, r.Close())
		}
		got.Payload = bytes.Clone(got.Payload)
		out = append(out, got)
	}
}

// compare returns what is wrong with records that were read from a number on.
func compare(got []wal.Record, want []rec, from uint64) error {
	if len(got) != len(want)-int(from) {
		return fmt.Errorf("%d records from %d on, want %d", len(got), from, len(want)-int(from))
	}
	for i, g := range got {
		n := from + uint64(i)
		if w := want[n]; g.Number != n || g.Kind != w.kind || !bytes.Equal(g.Payload, w.payload) || g.Last != w.last {
			return fmt.Errorf("record %d is %+v, want %+v", n, g, w)
		}
	}
	return nil
}

// check returns what is wrong with a log that was just opened. The batch in
// flight is committed or gone from then on.
func (m *model) check(l *wal.Log) error {
	if n := uint64(len(m.inflight)); n > 0 && l.Durable() == uint64(len(m.committed))+n {
		m.confirm()
	}
	m.inflight, m.pending = nil, nil
	if l.Durable() != uint64(len(m.committed)) || l.Next() != l.Durable() {
		return fmt.Errorf("%d records durable, next is %d, want %d", l.Durable(), l.Next(), len(m.committed))
	}
	return m.read(l, l.First())
}

func (m *model) read(l *wal.Log, from uint64) error {
	if l.First() > m.floor {
		return fmt.Errorf("the first record is %d, truncated was before %d", l.First(), m.floor)
	}
	r, err := l.Reader(from)
	if err != nil {
		return err
	}
	got, err := readAll(r)
	if err != nil {
		return err
	}
	return compare(got, m.committed, from)
}

// step does something with the log that the draws say, and with the model. The
// log may be another one afterwards, or nil if it was closed and not opened. An
// error is one of the file system, or says what is wrong.
func step(sys vfs.FS, l *wal.Log, m *model, r *rng.RNG, opts wal.Options) (*wal.Log, error) {
	switch k := r.IntN(20); {
	case k < 9:
		sizes := []int{0, 1, 20, 60, 300}
		payload := make([]byte, r.IntN(sizes[r.IntN(len(sizes))]+1))
		for i := range payload {
			payload[i] = byte(r.IntN(256))
		}
		kind := byte(1 + r.IntN(wal.KindMax))
		m.pending = append(m.pending, rec{kind: kind, payload: payload})
		n, err := l.Append(kind, payload)
		if want := uint64(len(m.committed) + len(m.pending) - 1); err == nil && n != want {
			err = fmt.Errorf("record %d appended, want %d", n, want)
		}
		return l, err
	case k < 15:
		m.commit()
		err := l.Commit()
		if err == nil {
			m.confirm()
		}
		return l, err
	case k < 17:
		n := uint64(r.IntN(len(m.committed) + 1))
		m.floor = max(m.floor, n)
		return l, l.TruncateBefore(n)
	case k < 18:
		return l, m.read(l, l.First()+uint64(r.IntN(int(l.Durable()-l.First())+1)))
	default:
		m.pending = nil
		if err := l.Close(); err != nil {
			return nil, err
		}
		l, err := wal.Open(sys, dir, opts)
		if err != nil {
			return nil, err
		}
		return l, m.check(l)
	}
}

func drawOptions(r *rng.RNG) wal.Options {
	return wal.Options{SegmentSize: int64(128 + r.IntN(400)), Spares: r.IntN(4) - 1}
}

// Random work gives what a list of batches gives, on every file system.
func TestModel(t *testing.T) {
	run := func(t *testing.T, seed uint64, sys vfs.FS, root string, steps int) {
		r := rng.New(seed, 1)
		opts := drawOptions(r)
		m := &model{}
		in := sub{sys, root}
		l, err := wal.Open(in, dir, opts)
		must(t, err)
		for i := range steps {
			if l, err = step(in, l, m, r, opts); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
		}
		must(t, l.Close())
		reader, err := wal.NewReader(in, dir, m.floor)
		must(t, err)
		got, err := readAll(reader)
		must(t, err)
		if err := compare(got, m.committed, m.floor); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	for seed := range uint64(100) {
		run(t, seed, &vfs.Memory{}, "", 150)
		run(t, seed, vfs.NewFaulty(vfs.NewCrashable()), "", 50)
	}
	for seed := range uint64(2) {
		run(t, seed, vfs.Disk{}, t.TempDir(), 60)
	}
}

// sub is a file system below a directory.
type sub struct {
	vfs.FS
	root string
}

func (s sub) path(name string) string {
	if s.root == "" {
		return name
	}
	return s.root + "/" + name
}

func (s sub) Open(name string) (vfs.File, error)   { return s.FS.Open(s.path(name)) }
func (s sub) Create(name string) (vfs.File, error) { return s.FS.Create(s.path(name)) }
func (s sub) Edit(name string) (vfs.File, error)   { return s.FS.Edit(s.path(name)) }
func (s sub) Remove(name string) error             { return s.FS.Remove(s.path(name)) }
func (s sub) Rename(from, to string) error         { return s.FS.Rename(s.path(from), s.path(to)) }
func (s sub) MkdirAll(dir string) error            { return s.FS.MkdirAll(s.path(dir)) }
func (s sub) List(dir string) ([]string, error)    { return s.FS.List(s.path(dir)) }
func (s sub) Size(name string) (int64, error)      { return s.FS.Size(s.path(name)) }
func (s sub) SyncDir(dir string) error             { return s.FS.SyncDir(s.path(dir)) }
func (s sub) Lock(name string) (io.Closer, error)  { return s.FS.Lock(s.path(name)) }
