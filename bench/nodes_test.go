package bench_test

import (
	"context"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/txn"
	"github.com/heddle-stream/heddle/workloads/bikeshare"
	"github.com/heddle-stream/heddle/workloads/eth"
	"github.com/heddle-stream/heddle/workloads/gs"
	"github.com/heddle-stream/heddle/workloads/ob"
	"github.com/heddle-stream/heddle/workloads/retail"
	"github.com/heddle-stream/heddle/workloads/sl"
	"github.com/heddle-stream/heddle/workloads/smallbank"
	"github.com/heddle-stream/heddle/workloads/tp"
	"github.com/heddle-stream/heddle/workloads/tpcc"
	"github.com/heddle-stream/heddle/workloads/ycsb"
)

// Workloads on three nodes, of which one goes and comes back, come to what they come to alone; those whose keys are not
// known before they run, or that look at versions, are refused with the reason.
func TestWorkloadsOnNodes(t *testing.T) {
	keys := map[string]string{"keys": "200", "skew": "0.8", "abort": "10"}
	for _, w := range []struct {
		program program.Program
		params  map[string]string
		refused string
	}{
		{program: sl.Program, params: keys},
		{program: gs.Program, params: keys},
		{program: tp.Program, params: keys},
		{program: ob.Program, params: keys},
		{program: smallbank.Program},
		{program: ycsb.Program, params: keys},
		{program: bikeshare.Program},
		{program: eth.Program},
		{program: retail.Program},
		{gs.NonDet, map[string]string{"keys": "40"}, "computes its key"},
		{gs.Windowed, map[string]string{"keys": "40", "length": "10"}, "windows look at its versions"},
		{tpcc.Program, map[string]string{"warehouses": "1", "customers": "10", "items": "40"}, "computes its key"},
	} {
		t.Run(w.program.Name, func(t *testing.T) {
			s := bench.Spec{Program: &w.program, Params: w.params, Events: 3000, Seed: 1, Options: engine.Options{Strategy: "serial", Workers: 1}}
			want, err := bench.Run(context.Background(), s)
			if err != nil {
				t.Fatal(err)
			}
			local := &cluster.Local{Engine: s.Options, New: func() (*txn.App, error) {
				c, err := s.Config()
				if err != nil {
					return nil, err
				}
				in, err := w.program.New(c)
				if err != nil {
					return nil, err
				}
				return in.App, nil
			}}
			s.Options.Batch = 100
			n := bench.NodesSpec{Nodes: 3, Runtime: local, Box: local.Box(), Began: func(j *cluster.Job) {
				j.Ask(reconfig.Request{Nodes: 2})
				j.Ask(reconfig.Request{Nodes: 3, Migration: reconfig.Migration{Groups: 100, Ahead: true}})
			}}
			got, err := bench.RunNodes(context.Background(), s, n)
			if w.refused != "" {
				if err == nil || !strings.Contains(err.Error(), w.refused) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Events != want.Events || got.Committed != want.Committed || got.StateHash != want.StateHash || got.ResultsHash != want.ResultsHash {
				t.Errorf("%+v\nwant %d events, %d committed, %s, %s", got, want.Events, want.Committed, want.StateHash, want.ResultsHash)
			}
			for _, q := range got.Requests {
				if q.State != cluster.Done || q.GroupsMoved == 0 {
					t.Errorf("%s", q.Text())
				}
			}
		})
	}
}
