package engine

import (
	"context"
	"testing"

	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage"
)

// A session comes to what a run over the same events comes to, however they are cut and however many workers there are.
func TestSessionLikeARun(t *testing.T) {
	for seed := range uint64(40) {
		r := rng.New(seed, 1)
		events := metamorphic.Draw(r, 200, metamorphic.Shape{})
		whole := metamorphic.New(10)
		want, err := Run(context.Background(), whole.App, whole.Events.Slice(events), Options{HashResults: true, Strategy: "serial"})
		if err != nil {
			t.Fatal(err)
		}
		cut := metamorphic.New(10)
		s, err := NewSession(cut.App, Options{HashResults: true, Verify: true, Workers: 1 + int(seed%2), WorkersMax: 4, Strategy: []string{"auto", "ns-op-eager", "serial"}[seed%3]})
		if err != nil {
			t.Fatal(err)
		}
		for left := events; len(left) > 0; {
			n := 1 + r.IntN(min(50, len(left)))
			if err := s.SetWorkers(1 + r.IntN(4)); err != nil {
				t.Fatal(err)
			}
			for _, e := range left[:n] {
				cut.Events.Push(s.Feed(), e)
			}
			if err := s.Run(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			left = left[n:]
		}
		if err := s.Run(); err != nil {
			t.Errorf("of no events: %v", err)
		}
		if s.SetWorkers(5) == nil || s.SetWorkers(0) == nil {
			t.Error("more workers than there is room for, or none")
		}
		got, err := s.Close()
		if err != nil || !got.Verified || got.Events != len(events) || got.ResultsHash != want.ResultsHash || storage.StateHash(cut.App) != storage.StateHash(whole.App) {
			t.Fatalf("seed %d: %v, %+v", seed, err, got)
		}
	}
	if _, err := NewSession(metamorphic.New(1).App, Options{State: "s"}); err == nil {
		t.Error("a session with a state directory")
	}
}
