package micro

import (
	"context"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
)

func configured(t *testing.T, values map[string]string, events int) *program.Config {
	t.Helper()
	c, err := Program.Config(values)
	if err != nil {
		t.Fatal(err)
	}
	c.Events = events
	return c
}

// Every strategy counts as the loops do, and the check sees one count that is wrong.
func TestCounts(t *testing.T) {
	values := map[string]string{"keys": "300", "bytes": "20", "pairs": "30", "phases": "3", "access": "20", "skew": "0.8"}
	for _, strategy := range []string{"serial", "ns-op-eager", "lock"} {
		c := configured(t, values, 20_000)
		in, err := newInstance(c)
		if err != nil {
			t.Fatal(err)
		}
		m, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{Strategy: strategy, Workers: 2, Verify: true})
		if err != nil || !m.Verified || m.Committed != 20_000 {
			t.Fatalf("%s: %d committed, %v", strategy, m.Committed, err)
		}
		if err := in.Check(); err != nil {
			t.Errorf("%s: %v", strategy, err)
		}
	}
	a := New(300, 20, program.Cost{})
	if a.check(configured(t, values, 20_000)) == nil {
		t.Error("a table without any counts passes the check")
	}
}

// With few keys in use at a time, others are after a period, and each phase has its own.
func TestKeysInUse(t *testing.T) {
	used := func(events []Touch) map[uint32]bool {
		out := map[uint32]bool{}
		for _, e := range events {
			out[e.Key] = true
		}
		return out
	}
	all := list(configured(t, map[string]string{"keys": "10000", "access": "1"}, 2*period))
	first, second := used(all[:period]), used(all[period:])
	both := 0
	for k := range first {
		if second[k] {
			both++
		}
	}
	if len(first) != 100 || len(second) != 100 || both > 50 {
		t.Errorf("%d and %d keys, %d of them in both periods", len(first), len(second), both)
	}
	hot := func(events []Touch) (key uint32) {
		count := map[uint32]int{}
		for _, e := range events {
			if count[e.Key]++; count[e.Key] > count[key] {
				key = e.Key
			}
		}
		return key
	}
	phased := list(configured(t, map[string]string{"keys": "10000", "skew": "1", "phases": "2"}, 20_000))
	if a, b := hot(phased[:10_000]), hot(phased[10_000:]); a == b {
		t.Errorf("key %d is the most frequent in both phases", a)
	}
}
