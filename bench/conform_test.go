package bench_test

import (
	"context"
	"testing"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/workloads/gs"
	"github.com/heddle-stream/heddle/workloads/ob"
	"github.com/heddle-stream/heddle/workloads/osed"
	"github.com/heddle-stream/heddle/workloads/sl"
	"github.com/heddle-stream/heddle/workloads/smallbank"
	"github.com/heddle-stream/heddle/workloads/stock"
	"github.com/heddle-stream/heddle/workloads/tp"
	"github.com/heddle-stream/heddle/workloads/tpcc"
	"github.com/heddle-stream/heddle/workloads/ycsb"
)

// Each generated workload, with so few keys that events meet and some abort,
// keeps its Check and agrees with the serial model under every strategy.
func TestWorkloadsUnderContention(t *testing.T) {
	keys := map[string]string{"keys": "40", "skew": "0.8", "abort": "10"}
	for _, w := range []struct {
		name    string
		program program.Program
		params  map[string]string
	}{
		{"sl", sl.Program, keys},
		{"dynamic", sl.Dynamic, map[string]string{"keys": "40"}},
		{"gs", gs.Program, keys},
		{"gsw", gs.Windowed, map[string]string{"keys": "40", "skew": "0.8", "abort": "10", "accesses": "3", "trigger": "9", "length": "5", "window": "500"}},
		{"gsw, over versions", gs.Windowed, map[string]string{"keys": "40", "abort": "10", "trigger": "9", "length": "5", "window": "50", "fold": "no"}},
		{"stock", stock.Program, nil},
		{"tp", tp.Program, keys},
		{"ob", ob.Program, keys},
		{"smallbank", smallbank.Program, map[string]string{"customers": "40", "skew": "0.8", "abort": "10"}},
		{"ycsb a", ycsb.Program, keys},
		{"ycsb d", ycsb.Program, map[string]string{"mix": "d", "keys": "40", "abort": "10"}},
		{"ycsb e", ycsb.Program, map[string]string{"mix": "e", "keys": "40", "abort": "10", "scan": "2"}},
		{"ycsb f", ycsb.Program, map[string]string{"mix": "f", "keys": "40", "abort": "10"}},
		{"osed", osed.Program, map[string]string{"repeat": "100000", "burst-min": "2", "burst": "150", "similar": "30"}},
		{"tpcc", tpcc.Program, map[string]string{"warehouses": "2", "customers": "10", "items": "40", "remote-lines": "20", "rollback": "10"}},
	} {
		t.Run(w.name, func(t *testing.T) {
			s := bench.Spec{Program: &w.program, Events: 2000, Seed: 1, Params: w.params, Options: engine.Options{Strategy: "serial"}}
			want, err := bench.Run(context.Background(), s)
			if err != nil {
				t.Fatal(err)
			}
			s.Options = engine.Options{Workers: 3, Batch: 300, Verify: true}
			for _, strategy := range schedule.Strategies() {
				s.Options.Strategy = strategy.String()
				got, err := bench.Run(context.Background(), s)
				if err != nil {
					t.Fatalf("%s: %v", strategy, err)
				}
				if got.StateHash != want.StateHash || got.ResultsHash != want.ResultsHash || got.Aborted == 0 || got.Aborted == got.Events {
					t.Errorf("%s: state %s, results %s, %d of %d aborted; serial has %s, %s, %d", strategy,
						got.StateHash, got.ResultsHash, got.Aborted, got.Events, want.StateHash, want.ResultsHash, want.Aborted)
				}
			}
		})
	}
}
