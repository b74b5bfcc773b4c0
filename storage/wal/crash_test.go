package wal_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/storage/wal"
)

var errPower = errors.New("the power is gone")

// seeds returns how many seeds to run: HEDDLE_SEEDS if it is set.
func seeds(n uint64) uint64 {
	if s, err := strconv.ParseUint(os.Getenv("HEDDLE_SEEDS"), 10, 64); err == nil {
		return s
	}
	if testing.Short() {
		return n/8 + 1
	}
	return n
}

const steps = 30

// work runs the script of a seed until the file system refuses something, and
// returns the log as it is then and why it stopped. A bug of the log is a panic.
func work(sys vfs.FS, seed uint64, m *model) (*wal.Log, wal.Options, error) {
	r := rng.New(seed, 2)
	opts := drawOptions(r)
	l, err := wal.Open(sys, dir, opts)
	for i := 0; err == nil && i < steps; i++ {
		l, err = step(sys, l, m, r, opts)
	}
	return l, opts, err
}

// stopAt refuses every operation from n on.
func stopAt(n int) func(vfs.Op) error {
	return func(op vfs.Op) error {
		if op.N >= n {
			return errPower
		}
		return nil
	}
}

// operations returns how many operations the script of a seed has.
func operations(t *testing.T, seed uint64) int {
	t.Helper()
	f := vfs.NewFaulty(vfs.NewCrashable())
	m := &model{}
	l, _, err := work(f, seed, m)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	must(t, l.Close())
	return f.Ops()
}

// verify opens the log after crashes and compares it with the model; then the
// machine crashes again, after which nothing that was read may be missing, and
// the log is worked with some more.
func verify(disk *vfs.Crashable, m *model, r *rng.RNG, opts wal.Options) error {
	for round := range 3 {
		l, err := wal.Open(disk, dir, opts)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if err := m.check(l); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		for range round * 4 {
			if l, err = step(disk, l, m, r, opts); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		disk.Crash(r)
	}
	return nil
}

// The machine crashes at each operation of a run; sometimes just the process is
// killed, and the machine crashes during or after the recovery.
func TestCrashAtEveryOperation(t *testing.T) {
	crashes, inflight := 0, 0
	for seed := range seeds(60) {
		for n := 1; n <= operations(t, seed); n++ {
			disk, m := vfs.NewCrashable(), &model{}
			f := vfs.NewFaulty(disk)
			f.SetHook(stopAt(n))
			_, opts, err := work(f, seed, m)
			if err != nil && !errors.Is(err, errPower) {
				t.Fatalf("seed %d, operation %d: %v", seed, n, err)
			}
			r := rng.New(seed, uint64(n))
			end(disk, r)
			for r.IntN(3) == 0 { // it does not come to the end of the recovery either
				again := vfs.NewFaulty(disk)
				again.SetHook(stopAt(1 + r.IntN(30)))
				if l, err := wal.Open(again, dir, opts); err == nil {
					again.SetHook(nil)
					if err := m.check(l); err != nil {
						t.Fatalf("seed %d, operation %d, second opening: %v", seed, n, err)
					}
				}
				end(disk, r)
			}
			before := len(m.committed)
			if err := verify(disk, m, r, opts); err != nil {
				t.Fatalf("seed %d, operation %d: %v", seed, n, err)
			}
			crashes++
			if len(m.committed) > before {
				inflight++
			}
		}
	}
	t.Logf("%d crashes", crashes)
	if inflight == 0 {
		t.Error("no batch in flight ever survived: the test tests less than it means to")
	}
}

// end ends the process, and mostly the machine.
func end(disk *vfs.Crashable, r *rng.RNG) {
	if r.IntN(3) == 0 {
		disk.Kill()
	} else {
		disk.Crash(r)
	}
}

// A crash at each operation of an opening that follows a crash.
func TestCrashAtEveryOperationOfRecovery(t *testing.T) {
	for seed := range seeds(200) {
		ops := operations(t, seed)
		for n := 1; ; n++ {
			disk, m := vfs.NewCrashable(), &model{}
			r := rng.New(seed, 3)
			f := vfs.NewFaulty(disk)
			f.SetHook(stopAt(1 + r.IntN(ops)))
			_, opts, err := work(f, seed, m)
			if err != nil && !errors.Is(err, errPower) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			end(disk, r)
			again := vfs.NewFaulty(disk)
			again.SetHook(stopAt(n))
			_, err = wal.Open(again, dir, opts)
			if err != nil && !errors.Is(err, errPower) {
				t.Fatalf("seed %d, operation %d: %v", seed, n, err)
			}
			disk.Crash(rng.New(seed, uint64(n)))
			if failed := verify(disk, m, r, opts); failed != nil {
				t.Fatalf("seed %d, operation %d: %v", seed, n, failed)
			}
			if err == nil {
				break // all operations were done
			}
		}
	}
}

// One operation fails and the rest would work. The log must not go on: it reads
// what was committed and refuses the rest, until it is opened again. A sync that
// failed has lost the bytes, and the log must not believe that they are there.
func TestEveryOperationFailsOnce(t *testing.T) {
	for seed := range seeds(60) {
		for n := 1; n <= operations(t, seed); n++ {
			disk, m := vfs.NewCrashable(), &model{}
			f := vfs.NewFaulty(disk)
			f.SetHook(func(op vfs.Op) error {
				if op.N != n {
					return nil
				}
				if op.Kind == "sync" {
					must(t, disk.DropDirty(op.Name))
				}
				return errPower
			})
			l, opts, err := work(f, seed, m)
			fatal := func(err error) {
				t.Helper()
				t.Fatalf("seed %d, operation %d: %v", seed, n, err)
			}
			if err != nil && !errors.Is(err, errPower) {
				fatal(err)
			}
			if l != nil && l.Err() != nil {
				if err := refuses(l); err != nil {
					fatal(err)
				}
				if err := m.read(l, l.First()); err != nil {
					fatal(err)
				}
				if err := l.Close(); !errors.Is(err, errPower) {
					fatal(fmt.Errorf("close: %w", err))
				}
			}
			disk.Kill()
			if err := verify(disk, m, rng.New(seed, uint64(n)), opts); err != nil {
				fatal(err)
			}
		}
	}
}

// refuses returns an error unless everything that changes the log returns one.
func refuses(l *wal.Log) error {
	_, err := l.Append(1, nil)
	for _, err := range []error{err, l.Commit(), l.TruncateBefore(0)} {
		if !errors.Is(err, errPower) {
			return fmt.Errorf("a failed log returned %w", err)
		}
	}
	return nil
}

// A sync that failed is not tried again: the log is dead, and after the machine
// came up again it has what was committed before.
func TestFailedSync(t *testing.T) {
	disk := vfs.NewCrashable()
	f := vfs.NewFaulty(disk)
	l, err := wal.Open(f, dir, wal.Options{SegmentSize: 512})
	must(t, err)
	commit(t, l, "one")
	syncs := 0
	f.SetHook(func(op vfs.Op) error {
		if op.Kind == "sync" {
			syncs++
			return errPower
		}
		return nil
	})
	if _, err := l.Append(1, []byte("two")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := l.Commit(); !errors.Is(err, errPower) {
			t.Fatalf("commit: %v", err)
		}
	}
	if err := l.Close(); !errors.Is(err, errPower) {
		t.Fatalf("close: %v", err)
	}
	if syncs != 1 {
		t.Errorf("%d syncs, want 1", syncs)
	}
	disk.Crash(rng.New(2, 2))
	l, err = wal.Open(disk, dir, wal.Options{})
	must(t, err)
	if n := l.Durable(); n != 1 && n != 2 {
		t.Errorf("%d records", n)
	}
}

func commit(t *testing.T, l *wal.Log, payloads ...string) {
	t.Helper()
	for _, p := range payloads {
		if _, err := l.Append(1, []byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	must(t, l.Commit())
}

// The disk fills up at every possible byte of a run. What was committed can be
// read at once, and the log goes on when there is room again.
func TestDiskFull(t *testing.T) {
	opts := wal.Options{SegmentSize: 200, Spares: -1}
	for space := int64(0); space < 1500; space += 3 {
		mem := &vfs.Memory{}
		f := vfs.NewFaulty(mem)
		f.SetSpace(space)
		m := &model{}
		l, err := wal.Open(f, dir, opts)
		for err == nil {
			payload := []byte("some payload")
			m.pending = append(m.pending, rec{kind: 7, payload: payload})
			if _, err = l.Append(7, payload); err != nil {
				break
			}
			if len(m.pending) < 3 {
				continue
			}
			m.commit()
			if err = l.Commit(); err == nil {
				m.confirm()
			}
		}
		if !errors.Is(err, vfs.ErrNoSpace) {
			t.Fatalf("room for %d bytes: %v", space, err)
		}
		if l != nil {
			must(t, m.read(l, 0))
			if err := l.Close(); !errors.Is(err, vfs.ErrNoSpace) {
				t.Fatalf("close: %v", err)
			}
		}
		for range 3 { // as long as it is full, opening fails and does no harm
			if l, err := wal.Open(f, dir, opts); err == nil {
				must(t, m.check(l))
				must(t, l.Close())
			} else if !errors.Is(err, vfs.ErrNoSpace) {
				t.Fatalf("room for %d bytes: open: %v", space, err)
			}
		}
		f.Heal()
		l, err = wal.Open(f, dir, opts)
		must(t, err)
		must(t, m.check(l))
		commit(t, l, "more")
		must(t, l.Close())
	}
}
