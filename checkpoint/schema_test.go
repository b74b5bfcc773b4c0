package checkpoint_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

type cents struct{ Cents int64 }

type money struct {
	Cents    int64
	Currency string
}

// shop is an application whose accounts hold V, with more tables if they are named.
func shop[V any](more []string, opts ...txn.Option[string, V]) (*txn.App, *txn.Table[string, V]) {
	app := txn.New("shop")
	for _, name := range more {
		txn.NewTable[int64, int64](app, name).Load(7, 49)
	}
	accounts := txn.NewTable[string, V](app, "accounts", opts...)
	touch := txn.Upsert(accounts, "touch", func(txn.Ctx, int64, *V, bool) txn.Verdict { return txn.OK })
	txn.On(app, "touch", func(p *txn.Plan, n int64) { touch.At(p, fmt.Sprint(n), n) }, func(txn.Outcome, int64) int64 { return 0 })
	return app, accounts
}

func euros(key string, old cents) money { return money{old.Cents, "EUR " + key} }

// restore opens a directory for an application and closes it again.
func restore(t *testing.T, fs vfs.FS, dir, from string, app *txn.App, use func(d *checkpoint.Dir, p checkpoint.Point) error) error {
	t.Helper()
	d, err := checkpoint.Open(fs, dir, checkpoint.Identity{"workload": "shop"}, checkpoint.Options{})
	if err != nil {
		return err
	}
	p, err := d.Restore(app, from)
	if err == nil {
		err = use(d, p)
	}
	return errors.Join(err, d.Close())
}

func nothing(*checkpoint.Dir, checkpoint.Point) error { return nil }

// keepShop keeps accounts of cents in a directory and as a savepoint.
func keepShop(t *testing.T, fs vfs.FS, n int) storage.Hash {
	t.Helper()
	app, accounts := shop[cents](nil)
	for i := range n {
		accounts.Load(fmt.Sprint("account ", i), cents{int64(i)})
	}
	err := restore(t, fs, "state", "", app, func(d *checkpoint.Dir, _ checkpoint.Point) error {
		p := checkpoint.Point{Events: 10, Output: 99}
		return errors.Join(d.Checkpoint(app, p), d.Savepoint(app, "ten", p))
	})
	if err != nil {
		t.Fatal(err)
	}
	return storage.StateHash(app)
}

// Many blocks are loaded by several goroutines.
func TestLoadsManyRows(t *testing.T) {
	fs := &vfs.Memory{}
	want := keepShop(t, fs, 200_000)
	app, _ := shop[cents](nil)
	err := restore(t, fs, "state", "", app, nothing)
	if got := storage.StateHash(app); err != nil || got != want {
		t.Errorf("state %s, expected %s, %v", got, want, err)
	}
}

// A state fits a program that has more tables, and one whose values are made of those
// that are kept; from then on it is that program's.
func TestChangedProgram(t *testing.T) {
	fs := &vfs.Memory{}
	keepShop(t, fs, 100)
	changed := func() (*txn.App, *txn.Table[string, money]) {
		return shop([]string{"stock"}, txn.Migrated(euros))
	}
	for round := range 2 {
		app, accounts := changed()
		if err := restore(t, fs, "state", "", app, nothing); err != nil {
			t.Fatal(err)
		}
		v, ok := accounts.Peek("account 42")
		if !ok || v != (money{42, "EUR account 42"}) || accounts.Len() != 100 || app.Tables()[0].Name() != "stock" {
			t.Errorf("round %d: %+v, %v of %d accounts", round, v, ok, accounts.Len())
		}
	}
	app, _ := shop[money]([]string{"stock"}) // which needs no migration any more
	if err := restore(t, fs, "state", "", app, nothing); err != nil {
		t.Error(err)
	}
}

// Whatever does not fit is refused, with a message that says why, and stays as it is.
func TestOtherProgramsAreRefused(t *testing.T) {
	fs := &vfs.Memory{}
	want := keepShop(t, fs, 5)
	other := func(app *txn.App, text string) {
		t.Helper()
		if err := restore(t, fs, "state", "", app, nothing); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("expected %q, got %v", text, err)
		}
	}
	values, _ := shop[money](nil)
	other(values, "table accounts has values {Cents int64}, this program has {Cents int64; Currency string}: give txn.Migrated")
	keys := txn.New("shop")
	txn.NewTable[int64, cents](keys, "accounts")
	other(keys, "table accounts has keys string, this program has int64")
	none := txn.New("shop")
	txn.NewTable[int64, cents](none, "other")
	other(none, "table accounts is kept, and this program does not have it")
	same, _ := shop[cents](nil)
	if err := restore(t, fs, "state", "", same, nothing); err != nil || storage.StateHash(same) != want {
		t.Errorf("state %s, expected %s, %v", storage.StateHash(same), want, err)
	}
}

// A log is for the program that wrote it.
func TestChangedProgramNeedsTheLogDone(t *testing.T) {
	fs := &vfs.Memory{}
	app, _ := shop[cents](nil)
	err := restore(t, fs, "state", "", app, func(d *checkpoint.Dir, _ checkpoint.Point) error {
		f := app.NewFeed()
		if _, err := f.PushEncoded(0, []byte{2}); err != nil {
			return err
		}
		return d.Commit(0, f, 0, 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	more, _ := shop[cents]([]string{"stock"})
	if err := restore(t, fs, "state", "", more, nothing); err == nil || !strings.Contains(err.Error(), "its log has 1 events that only that one can read") {
		t.Error(err)
	}
}

func TestSavepointBeginsAnotherDirectory(t *testing.T) {
	fs := &vfs.Memory{}
	want := keepShop(t, fs, 1000)
	for round := range 2 {
		app, _ := shop[cents](nil)
		from := "state/savepoints/ten"
		if round == 1 {
			from = "" // what began with it goes on without it
		}
		err := restore(t, fs, "second", from, app, func(_ *checkpoint.Dir, p checkpoint.Point) error {
			if p.Events != 10 || p.Output != 0 || storage.StateHash(app) != want {
				t.Errorf("round %d: %+v, state %s, expected %s", round, p, storage.StateHash(app), want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	app, _ := shop[cents](nil)
	if err := restore(t, fs, "second", "state/savepoints/ten", app, nothing); err != nil { // as it began
		t.Error(err)
	}
	if err := restore(t, fs, "second", "state/savepoints/other", app, nothing); err == nil || !strings.Contains(err.Error(), "has a state already") {
		t.Error(err)
	}
	info, err := checkpoint.Look(fs, "state")
	if err != nil || len(info.Savepoints) != 1 || info.Savepoints[0] != "ten" {
		t.Errorf("%v, %v", info.Savepoints, err)
	}
	for _, name := range []string{"", "a/b", "..", ".x", strings.Repeat("x", 101)} {
		if checkpoint.CheckSavepointName(name) == nil {
			t.Errorf("name %q is allowed", name)
		}
	}
}

// A crash while a changed program takes a directory over leaves the state of the one
// before or that of the new one.
func TestCrashWhileAProgramChanges(t *testing.T) {
	crash, last := errors.New("the power is gone"), error(nil)
	for n := range 300 {
		disk := vfs.NewCrashable()
		keepShop(t, disk, 20)
		f := vfs.NewFaulty(disk)
		left := n
		f.SetHook(func(op vfs.Op) error {
			if op.Kind != "read" {
				left--
			}
			if left < 0 {
				return crash
			}
			return nil
		})
		app, _ := shop[money]([]string{"stock"}, txn.Migrated(euros))
		err := restore(t, f, "state", "", app, nothing)
		last = err
		disk.Crash(rng.New(uint64(n), 1))
		app, accounts := shop[money]([]string{"stock"}, txn.Migrated(euros))
		if err := restore(t, disk, "state", "", app, nothing); err != nil || accounts.Len() != 20 {
			t.Fatalf("crash at operation %d: %d accounts, %v", n, accounts.Len(), err)
		}
		for i := range 20 {
			key := fmt.Sprint("account ", i)
			if v, ok := accounts.Peek(key); !ok || v != (money{int64(i), "EUR " + key}) {
				t.Fatalf("crash at operation %d: %s is %+v", n, key, v)
			}
		}
		if err == nil {
			return
		}
	}
	t.Errorf("the program never got to its end: %v", last)
}

// swapped is an event like that of shop, by shape, and another one.
type swapped struct{ Have, Want int64 }

type swappedBack struct{ Want, Have int64 }

func market[E any]() *txn.App {
	app := txn.New("shop")
	txn.NewTable[int64, int64](app, "table")
	txn.On(app, "price", func(*txn.Plan, E) {}, func(txn.Outcome, E) int64 { return 0 })
	return app
}

// A log is only for events of the shape that they were logged with.
func TestShapeOfEventsIsKept(t *testing.T) {
	fs := &vfs.Memory{}
	app := market[swapped]()
	err := restore(t, fs, "state", "", app, func(d *checkpoint.Dir, _ checkpoint.Point) error {
		f := app.NewFeed()
		if _, err := f.PushEncoded(0, []byte{2, 4}); err != nil {
			return err
		}
		return d.Commit(0, f, 0, 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := restore(t, fs, "state", "", market[swappedBack](), nothing); err == nil || !strings.Contains(err.Error(), "only that one can read") {
		t.Error(err)
	}
	if err := restore(t, fs, "state", "", market[swapped](), nothing); err != nil {
		t.Error(err)
	}
}

// A log without its manifest is anybody's, and so nobody's.
func TestLogWithoutManifest(t *testing.T) {
	fs := &vfs.Memory{}
	app := market[swapped]()
	err := restore(t, fs, "state", "", app, func(d *checkpoint.Dir, _ checkpoint.Point) error {
		return d.Commit(0, app.NewFeed(), 0, 0)
	})
	if err := errors.Join(err, fs.Remove("state/MANIFEST")); err != nil {
		t.Fatal(err)
	}
	if err := restore(t, fs, "state", "", app, nothing); err == nil || !strings.Contains(err.Error(), "it is damaged") {
		t.Error(err)
	}
}
