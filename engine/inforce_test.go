package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// price is an event at a time: it sets a value, deletes it (0), or asks (below 0).
type price struct{ time, set int64 }

const ask = -1

// prices is an application that tells what was in force so many units of time ago.
func prices(ago int64) (*txn.App, *txn.Event[price, int64]) {
	app := txn.New("prices")
	table := txn.NewTable[int32, int64](app, "prices")
	log := txn.NewTable[int32, int64](app, "answers")
	window := txn.NewWindow(table, "window", txn.Within(ago)).WithInForce()
	set := txn.Upsert(table, "set", func(_ txn.Ctx, e price, v *int64, _ bool) txn.Verdict {
		*v = e.set
		return txn.OK
	})
	drop := txn.Delete(table, "drop", func(txn.Ctx, price, int64) txn.Verdict { return txn.OK }).Lenient()
	answer := txn.Upsert(log, "answer", func(c txn.Ctx, _ price, v *int64, _ bool) txn.Verdict {
		held, ok := window.InForce(c)
		if *v = held; !ok {
			*v = -100
		}
		return txn.OK
	})
	table.Load(7, 1)
	return app, txn.On(app, "price", func(p *txn.Plan, e price) {
		switch e.set {
		case ask:
			answer.At(p, int32(e.time), e, window.Of(p, 7))
		case 0:
			drop.At(p, 7, e)
			answer.At(p, int32(e.time), e, window.Of(p, 7)) // before its own transaction
		default:
			set.At(p, 7, price{e.time, e.set * 2})
			set.At(p, 7, e)
		}
	}, func(out txn.Outcome, _ price) int64 {
		v, _ := answer.After(out)
		return v
	}, txn.EventTime[price, int64](func(e price) int64 { return e.time }))
}

// What is in force when a window begins is what the table was loaded with, an older version, or
// nothing; also where older versions are kept no more, and when the run went on from a
// checkpoint or a log in between.
func TestInForce(t *testing.T) {
	events := []price{
		{0, ask},  // loaded
		{1, 20},   //
		{5, ask},  // loaded: the version came later
		{11, ask}, // loaded: what comes at the begin of the window is in it
		{12, ask}, // 20
		{13, 0},   // 20, and gone from here
		{14, 30},  //
		{20, ask}, // 20
		{24, ask}, // gone
		{25, ask}, // 30
		{60, ask}, // 30, though no version is kept
		{61, 40},  //
		{62, ask}, // 30
		{80, ask}, // 40
	}
	want := []int64{1, 0, 1, 1, 20, 20, 0, 20, -100, 30, 30, 0, 30, 40}
	first, step := 0, 1
	if testing.Short() {
		first, step = 2, 5
	}
	for _, strategy := range []string{"serial", "ns-op-eager", "bfs-chain-lazy"} {
		for cut := first; cut < len(events); cut += step {
			for _, scheme := range []engine.Scheme{engine.Views, engine.WAL} {
				disk := &vfs.Memory{}
				var got []int64
				run := func(events []price, batch int) {
					app, ev := prices(10)
					ev.Each(func(v int64) { got = append(got, v) })
					o := engine.Options{Strategy: strategy, Workers: 2, Batch: batch, Verify: true, FS: disk, State: "state", Durability: scheme}
					if _, err := engine.Run(context.Background(), app, ev.Slice(events), o); err != nil {
						t.Fatal(err)
					}
				}
				run(events[:cut], 3)
				run(events, 1+cut)
				if !slices.Equal(got, want) {
					t.Fatalf("%s, %s, %d events first:\n got %v\nwant %v", strategy, scheme, cut, got, want)
				}
			}
		}
	}
}

// A program whose windows reach further back does not go on with a state: what they want was
// not kept. One whose windows reach less far does, and one without any.
func TestWindowsOfAnotherProgram(t *testing.T) {
	disk := &vfs.Memory{}
	events := []price{{0, 10}, {1, 20}, {2, ask}}
	run := func(app *txn.App, source txn.Source) error {
		_, err := engine.Run(context.Background(), app, source, engine.Options{FS: disk, State: "state"})
		return err
	}
	app, ev := prices(10)
	if err := run(app, ev.Slice(events)); err != nil {
		t.Fatal(err)
	}
	app, ev = prices(11)
	var refused *checkpoint.RefusalError
	if err := run(app, ev.Slice(events)); !errors.As(err, &refused) || !strings.Contains(err.Error(), "table prices: its windows want") {
		t.Errorf("a longer window: %v", err)
	}
	app, ev = prices(9)
	if err := run(app, ev.Slice(events)); err != nil {
		t.Errorf("a shorter window: %v", err)
	}
	bare := txn.New("prices")
	table := txn.NewTable[int32, int64](bare, "prices")
	txn.NewTable[int32, int64](bare, "answers")
	set := txn.Upsert(table, "set", func(_ txn.Ctx, e price, v *int64, _ bool) txn.Verdict { *v = e.set; return txn.OK })
	plain := txn.On(bare, "price", func(p *txn.Plan, e price) { set.At(p, 7, e) }, func(txn.Outcome, price) int64 { return 0 })
	if err := run(bare, plain.Slice(append(events, price{3, 30}))); err != nil {
		t.Errorf("no window: %v", err)
	}
	if v, _ := table.Peek(7); v != 30 {
		t.Errorf("it went on with %d", v)
	}
}
