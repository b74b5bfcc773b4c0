package metamorphic

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/storage"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// ants starts a pool of its own at import, which nobody asked for.
		goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

// history is what a run shows: its state, its results and how it ended.
type history struct {
	state, results storage.Hash
	events         int
	ended          string
}

// run executes the events under the options, beside the serial model.
func run(t *testing.T, events []Event, o engine.Options) history {
	t.Helper()
	l := New(4)
	o.Verify, o.HashResults = true, true
	m, err := engine.Run(context.Background(), l.App, l.Events.Slice(events), o)
	h := history{results: m.ResultsHash, events: m.Events, state: storage.StateHash(l.App)}
	if err != nil {
		var p *engine.PanicError
		if !errors.As(err, &p) {
			t.Fatalf("%s workers=%d batch=%d: %v", o.Strategy, o.Workers, o.Batch, err)
		}
		h.ended = fmt.Sprintf("%d %s %s %v", p.Event, p.What, p.Name, p.Value)
	}
	return h
}

func TestEveryConfigurationGivesOneHistory(t *testing.T) {
	seeds := 200
	if testing.Short() {
		seeds = 5
	}
	for seed := range Seeds(seeds) {
		r := rng.New(uint64(seed), 1)
		shape := Shape{Keys: 2 + r.IntN(12), OpsMax: 1 + r.IntN(5), Tables: 1 + r.IntN(3), Panics: seed%3 == 2}
		events := Draw(r, 20+r.IntN(200), shape)
		want := run(t, events, engine.Options{Strategy: "serial", Workers: 1, Batch: 64})
		for _, s := range schedule.Strategies() {
			o := engine.Options{Strategy: s.String(), Workers: 1 + r.IntN(8), Batch: 1 + r.IntN(len(events))}
			if got := run(t, events, o); got != want {
				t.Fatalf("seed %d, %s workers=%d batch=%d:\n got %+v\nwant %+v\n%s", seed, o.Strategy, o.Workers, o.Batch, got, want, Text(events))
			}
		}
	}
}
