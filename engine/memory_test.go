package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/storage/spill"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// failingReads is a disk for rows that gives back nothing from the n-th read on, in a row of
// as many as times says.
func failingReads(n, times int) (*vfs.Faulty, *int) {
	disk, reads := vfs.NewFaulty(&vfs.Memory{}), 0
	disk.SetHook(func(op vfs.Op) error {
		if op.Kind != "read" {
			return nil
		}
		if reads++; reads >= n && reads < n+times {
			return fmt.Errorf("read %s: %w", op.Name, syscall.EIO)
		}
		return nil
	})
	return disk, &reads
}

// spread is an application whose events add the sum of an interval to a row.
func spread(keys uint32) (*txn.App, *txn.Event[uint32, struct{}]) {
	app := txn.New("spread")
	table := txn.NewOrdered[uint32, int64](app, "table")
	interval := txn.NewRange(table, "interval")
	add := txn.Update(table.Table, "add", func(c txn.Ctx, _ uint32, v *int64) txn.Verdict {
		for _, other := range interval.All(c) {
			*v += other % 100
		}
		return txn.OK
	})
	ev := txn.On(app, "spread", func(p *txn.Plan, at uint32) {
		add.At(p, at%keys, at, interval.Of(p, at/2%keys, at/2%keys+20))
	}, func(txn.Outcome, uint32) struct{} { return struct{}{} })
	for k := range keys {
		table.Load(k, int64(k))
	}
	return app, ev
}

// TestIntervalsOfRowsOnDisk has nearly all rows on disk when an operation reads an interval:
// they must come before the operation holds on to its row, which may have to move for them.
func TestIntervalsOfRowsOnDisk(t *testing.T) {
	for _, strategy := range []string{"serial", "ns-op-eager"} {
		app, ev := spread(2000)
		disk := &vfs.Memory{}
		app.LimitMemory(1, func(int) txn.RowLog { return spill.New(disk, "rows", 0) })
		r, events := rng.New(1, 0), []uint32{}
		for range 3000 {
			events = append(events, r.Uint32N(4000))
		}
		m, err := engine.Run(context.Background(), app, ev.Slice(events), engine.Options{Strategy: strategy, Workers: 2, Batch: 100, Verify: true})
		if err != nil || !m.Verified || m.Spilled.Come < 10_000 {
			t.Fatalf("%s: %v, verified %v, %+v", strategy, err, m.Verified, m.Spilled)
		}
		if err := app.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDiskForRows lets the disk have no room for rows, or give back other bytes, from
// some operation on: the run ends with an error that names the file, and what was told
// before is as if all were well.
func TestFullDiskForRows(t *testing.T) {
	var events []uint32
	for i := range uint32(2000) {
		events = append(events, i*7%4000)
	}
	for fail := 1; fail < 300; fail = fail*3/2 + 1 {
		app, ev := spread(2000)
		disk := vfs.NewFaulty(&vfs.Memory{})
		failed := false
		disk.SetHook(func(op vfs.Op) error {
			if op.N < fail || op.Kind == "remove" || op.Kind == "close" {
				return nil
			}
			failed = true
			return fmt.Errorf("%s %s: %w", op.Kind, op.Name, vfs.ErrNoSpace)
		})
		app.LimitMemory(1, func(int) txn.RowLog { return spill.New(disk, "rows", 0) })
		m, err := engine.Run(context.Background(), app, ev.Slice(events), engine.Options{Strategy: "ns-op-eager", Workers: 2, Batch: 100})
		if !failed {
			t.Fatalf("there are less than %d operations", fail)
		}
		if !errors.Is(err, vfs.ErrNoSpace) || !strings.Contains(err.Error(), "rows-") || !strings.Contains(err.Error(), "table table") {
			t.Fatalf("operation %d and those behind it fail: %v after %d events", fail, err, m.Events)
		}
	}
}

// TestUnreadableRows lets each of many reads of rows fail once, under every scheme: a run that
// goes on with a disk that is well must end as one that nothing happened to.
func TestUnreadableRows(t *testing.T) {
	var events []uint32
	// Of the reads every so many-th fails; under wal more, since few are for its records.
	n, keys, share, shareOfWAL, least := uint32(1200), uint32(400), 25, 200, 20
	if testing.Short() {
		n, keys, share, shareOfWAL, least = 400, 200, 2, 10, 2
	}
	for i := range n {
		events = append(events, i*7%4000)
	}
	run := func(state vfs.FS, rows vfs.FS, scheme engine.Scheme) (*txn.App, error) {
		app, ev := spread(keys)
		app.LimitMemory(1, func(int) txn.RowLog { return spill.New(rows, "rows", 0) })
		o := engine.Options{Strategy: "ns-op-eager", Workers: 1, Batch: 100, FS: state, State: "state", Durability: scheme}
		o.Checkpoints = checkpoint.Options{Every: 5000, Inline: true, AllViews: true}
		_, err := engine.Run(context.Background(), app, ev.Slice(events), o)
		return app, err
	}
	app, err := run(&vfs.Memory{}, &vfs.Memory{}, engine.NoLog)
	if err != nil {
		t.Fatal(err)
	}
	want := storage.StateHash(app)
	for _, scheme := range engine.Schemes() {
		rows, all := failingReads(1<<30, 0)
		if _, err := run(&vfs.Memory{}, rows, scheme); err != nil {
			t.Fatal(err)
		}
		failed := 0
		step := 1 + *all/share
		if scheme == engine.WAL {
			step = 1 + *all/shareOfWAL
		}
		for n := 1; n < *all; n += step {
			state := &vfs.Memory{}
			rows, _ := failingReads(n, 1)
			if _, err := run(state, rows, scheme); errors.Is(err, syscall.EIO) {
				failed++
			} else {
				t.Fatalf("%s: read %d failed, the run says %v", scheme, n, err)
			}
			app, err := run(state, &vfs.Memory{}, scheme)
			if got := storage.StateHash(app); err != nil || got != want {
				t.Fatalf("%s: read %d failed; then the state was %v, expected %v (%v)", scheme, n, got, want, err)
			}
		}
		if failed < least {
			t.Errorf("%s: only %d reads failed", scheme, failed)
		}
	}
}

// TestSinksMeetUnreadableRows has the disk fail when a sink looks at rows, behind the last batch
// as well.
func TestSinksMeetUnreadableRows(t *testing.T) {
	app := txn.New("sink")
	table := txn.NewTable[uint32, int64](app, "table")
	add := txn.Update(table, "add", func(_ txn.Ctx, _ uint32, v *int64) txn.Verdict { *v++; return txn.OK })
	ev := txn.On(app, "add", func(p *txn.Plan, at uint32) { add.At(p, at, at) }, func(_ txn.Outcome, at uint32) uint32 { return at })
	for k := range uint32(3000) {
		table.Load(k, 1)
	}
	rows := vfs.NewFaulty(&vfs.Memory{})
	app.LimitMemory(1, func(int) txn.RowLog { return spill.New(rows, "rows", 0) })
	ev.Each(func(at uint32) {
		if at == 99 {
			for k := range uint32(3000) {
				rows.FailAt(rows.Ops()+1, syscall.EIO)
				_, _ = table.Peek(k)
			}
		}
	})
	var events []uint32
	for k := range uint32(100) {
		events = append(events, k)
	}
	if _, err := engine.Run(context.Background(), app, ev.Slice(events), engine.Options{Batch: 100}); !errors.Is(err, syscall.EIO) {
		t.Fatalf("a sink saw no rows where some are, and the run says %v", err)
	}
}

// TestValuesThatGrow has values grow where they are, so that no row comes and none goes: they
// must count, and leave memory.
func TestValuesThatGrow(t *testing.T) {
	const limit, keys = 1 << 20, 1000
	for _, strategy := range []string{"serial", "ns-op-eager"} {
		app := txn.New("lists")
		table := txn.NewTable[uint32, []byte](app, "table", txn.Clone[uint32](slices.Clone[[]byte]))
		app.LimitMemory(limit, func(int) txn.RowLog { return spill.New(vfs.Disk{}, filepath.Join(t.TempDir(), "rows"), 0) })
		grow := txn.Update(table, "grow", func(_ txn.Ctx, _ uint32, v *[]byte) txn.Verdict {
			*v = append(*v, make([]byte, 500)...)
			return txn.OK
		})
		ev := txn.On(app, "grow", func(p *txn.Plan, at uint32) { grow.At(p, at, at) }, func(txn.Outcome, uint32) struct{} { return struct{}{} })
		var events []uint32
		for range 10 {
			for k := range uint32(keys) {
				events = append(events, k)
			}
		}
		for k := range uint32(keys) {
			table.Load(k, nil)
		}
		m, err := engine.Run(context.Background(), app, ev.Slice(events), engine.Options{Strategy: strategy, Batch: 100})
		if err != nil {
			t.Fatal(err)
		}
		// All of it would be five times the limit; about the last batch may be above.
		if held := app.MemoryUsed(); held > limit*3/2 || m.Spilled.Gone == 0 {
			t.Errorf("%s: rows take %d bytes of %d, %d went to disk", strategy, held, limit, m.Spilled.Gone)
		}
		if err := app.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCodecThatPanics has a user's codec panic when a row goes to disk, or comes back: the run ends
// with an error that names it.
func TestCodecThatPanics(t *testing.T) {
	for _, strategy := range []string{"serial", "ns-op-eager"} {
		for _, reading := range []bool{false, true} {
			armed := false
			trip := func(now bool) {
				if armed && now {
					panic("a codec that cannot")
				}
			}
			app := txn.New("codec")
			table := txn.NewTable[uint32, byte](app, "table", txn.Codecs[uint32](txn.Codec[uint32]{}, txn.Codec[byte]{
				Append: func(dst []byte, v *byte) []byte { trip(!reading && *v == 7); return append(dst, *v) },
				Decode: func(src []byte, v *byte) ([]byte, error) { trip(reading); *v = src[0]; return src[1:], nil },
			}))
			app.LimitMemory(1, func(int) txn.RowLog { return spill.New(&vfs.Memory{}, "rows", 0) })
			add := txn.Update(table, "add", func(_ txn.Ctx, _ uint32, v *byte) txn.Verdict { *v = 7; return txn.OK })
			ev := txn.On(app, "add", func(p *txn.Plan, at uint32) { add.At(p, at, at) }, func(txn.Outcome, uint32) struct{} { return struct{}{} })
			var events []uint32
			for k := range uint32(2000) {
				table.Load(k, 1)
				events = append(events, k)
			}
			armed = true
			if _, err := engine.Run(context.Background(), app, ev.Slice(events), engine.Options{Strategy: strategy, Workers: 2, Batch: 300}); err == nil || !strings.Contains(err.Error(), "a codec that cannot") {
				t.Errorf("%s, reading %v: %v", strategy, reading, err)
			}
		}
	}
}
