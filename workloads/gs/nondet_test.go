package gs

import (
	"context"
	"testing"

	"github.com/heddle-stream/heddle/engine"
)

// All strategies equal the model whatever share of the keys is computed, and
// the hand-written loop does what the engine does.
func TestComputedKeysVerified(t *testing.T) {
	for _, nondet := range []string{"0", "10", "100"} {
		for _, s := range []string{"serial", "ns-op-eager", "ns-op-lazy", "bfs-chain-eager", "dfs-op-lazy", "lock", "tstream", "auto"} {
			c, err := NonDet.Config(map[string]string{"keys": "60", "abort": "10", "nondet": nondet, "skew": "0.5"})
			if err != nil {
				t.Fatal(err)
			}
			c.Events = 3000
			in, err := NonDet.New(c)
			if err != nil {
				t.Fatal(err)
			}
			m, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{Strategy: s, Verify: true, Workers: 3, Batch: 400})
			if err != nil {
				t.Fatalf("%s, %s %%: %v", s, nondet, err)
			}
			if err := in.Check(); err != nil {
				t.Errorf("%s, %s %%: %v", s, nondet, err)
			}
			if nondet == "100" && s == "ns-op-eager" && m.Moved == 0 {
				t.Error("no computed key was another one than foreseen: the test tests nothing")
			}
			vals := map[uint32]int64{}
			for k := range uint32(60) {
				vals[k] = int64(k)
			}
			g := newNonDetGenerator(c)
			events := make([]Computed, c.Events)
			for i := range events {
				events[i] = g.next()
			}
			overComputed(events, vals, 60, c.Cost("complexity"))
			in.App.Tables()[0].All(func(k, v any) bool {
				if vals[k.(uint32)] != v.(int64) {
					t.Errorf("%s, %s %%: values[%v]: the loop has %d, the engine %d", s, nondet, k, vals[k.(uint32)], v)
				}
				return !t.Failed()
			})
		}
	}
}
