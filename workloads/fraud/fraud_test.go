package fraud

import (
	"context"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

func TestVerified(t *testing.T) {
	for _, strategy := range []string{"serial", "ns-op-eager", "lock"} {
		c, err := Program.Config(map[string]string{"merchants": "20", "drift": "10000", "tree": "bursts"})
		if err != nil {
			t.Fatal(err)
		}
		c.Events = 20_000
		in, err := newInstance(c)
		if err != nil {
			t.Fatal(err)
		}
		m, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{Strategy: strategy, Workers: 2, Verify: true})
		if err != nil || !m.Verified || m.Aborted < 400 || m.Aborted > 10_000 {
			t.Fatalf("%s: %d of 20,000 refused, %v", strategy, m.Aborted, err)
		}
		if err := in.Check(); err != nil {
			t.Errorf("%s: %v", strategy, err)
		}
	}
	a := New(2, 2, program.Cost{})
	a.Cards.Load(1, Card{Paid: 1, Mean: 5})
	if a.check() == nil {
		t.Error("a payment that nobody got passes the check")
	}
}

// The tree that is right at first is wrong after the drift, until the other one takes its place.
func TestQuality(t *testing.T) {
	c, err := Program.Config(map[string]string{"drift": "20000"})
	if err != nil {
		t.Fatal(err)
	}
	in, err := newInstance(c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := engine.NewSession(in.App, engine.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	quality := func(events int) float64 {
		t.Helper()
		right, of := 0, 0
		for range events / 1000 {
			if err := in.Source.Fill(context.Background(), s.Feed(), 1000); err != nil {
				t.Fatal(err)
			}
			if err := s.RunEach(func(_ int, _ txn.Verdict, result []byte) {
				r, o := score(result)
				right, of = right+r, of+o
			}); err != nil {
				t.Fatal(err)
			}
		}
		return float64(right) / float64(of)
	}
	before, after := quality(20_000), quality(20_000)
	if err := in.App.SetLogic("tree", "bursts"); err != nil {
		t.Fatal(err)
	}
	swapped := quality(40_000)
	if before < 0.9 || after > 0.1 || swapped < 0.7 {
		t.Errorf("of frauds and refused payments %.2f are both, %.2f after the drift, %.2f with the other tree", before, after, swapped)
	}
}
