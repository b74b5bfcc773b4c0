package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/spill"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

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
		app.LimitMemory(1, func(int) txn.RowLog { return spill.New(disk, "rows") })
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
		app.LimitMemory(1, func(int) txn.RowLog { return spill.New(disk, "rows") })
		m, err := engine.Run(context.Background(), app, ev.Slice(events), engine.Options{Strategy: "ns-op-eager", Workers: 2, Batch: 100})
		if !failed {
			t.Fatalf("there are less than %d operations", fail)
		}
		if !errors.Is(err, vfs.ErrNoSpace) || !strings.Contains(err.Error(), "rows-") || !strings.Contains(err.Error(), "table table") {
			t.Fatalf("operation %d and those behind it fail: %v after %d events", fail, err, m.Events)
		}
	}
}
