package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/schedule"
)

// stepped returns a driver that steps the workers from one goroutine, in an
// order drawn from the seed, and fails when none of them gets anywhere.
func stepped(t *testing.T, seed uint64, workers int) func(*schedule.Run) {
	r := rng.New(seed, 7)
	return func(run *schedule.Run) {
		for idle := 0; !run.Finished(); {
			// Runs of steps by one worker let the others fall behind.
			w := run.Worker(r.IntN(workers))
			for range 1 + r.IntN(4) {
				if w.Step() == schedule.Ran {
					idle = 0
				} else {
					idle++
				}
			}
			if idle > 1000*workers {
				t.Fatalf("seed %d: no worker gets anywhere: %s", seed, run.Diagnosis())
			}
		}
	}
}

// replay runs events stepped, beside the serial model.
func replay(t *testing.T, events []metamorphic.Event, strategy string, workers, batch int, seed uint64) error {
	l := metamorphic.New(4)
	r := rng.New(seed, 9)
	_, err := Run(context.Background(), l.App, l.Events.Slice(events), Options{
		Workers: workers, Strategy: strategy, Batch: batch, Verify: true,
		drive: stepped(t, seed, workers),
		grain: schedule.Grain{Events: 1 + r.IntN(3), Fine: r.IntN(2) == 0, Operations: 1 + r.IntN(3), RedoMax: r.IntN(30)},
	})
	var p *PanicError
	if errors.As(err, &p) {
		return nil // the model has panicked there, too
	}
	return err
}

// Every interleaving at the grain of steps replays from two integers: that of
// the events and that of the order of steps.
func TestSeededInterleavings(t *testing.T) {
	seeds := 300
	if testing.Short() {
		seeds = 40
	}
	for seed := range uint64(metamorphic.Seeds(seeds)) {
		r := rng.New(seed, 3)
		shape := metamorphic.Shape{Keys: 1 + r.IntN(6), OpsMax: 1 + r.IntN(4), Tables: 1 + r.IntN(3), Panics: seed%4 == 3}
		events := metamorphic.Draw(r, 5+r.IntN(40), shape)
		for _, s := range schedule.Strategies() {
			if s.Kind() != schedule.Graph {
				continue
			}
			name := fmt.Sprintf("%s seed=%d", s, seed)
			if err := replay(t, events, s.String(), 1+r.IntN(4), 1+r.IntN(len(events)), seed); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, metamorphic.Text(events))
			}
		}
	}
}
