package engine_test

import (
	"context"
	"slices"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// price is an event at a time: it sets a value, deletes it (0), or asks (below 0).
type price struct{ time, set int64 }

const ask = -1

// prices is an application that tells what was in force ten units of time ago.
func prices() (*txn.App, *txn.Event[price, int64]) {
	app := txn.New("prices")
	table := txn.NewTable[int32, int64](app, "prices")
	log := txn.NewTable[int32, int64](app, "answers")
	window := txn.NewWindow(table, "last ten", txn.Within(10)).WithInForce()
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
	for _, strategy := range []string{"serial", "ns-op-eager", "bfs-chain-lazy"} {
		for cut := range len(events) {
			for _, scheme := range []engine.Scheme{engine.Views, engine.WAL} {
				disk := &vfs.Memory{}
				var got []int64
				run := func(events []price, batch int) {
					app, ev := prices()
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
