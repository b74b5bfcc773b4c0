package tp

import (
	"context"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/storage"
)

// run runs the workload with few keys, so that events meet, and checks it.
func run(t *testing.T, params map[string]string, o engine.Options) (engine.Metrics, storage.Hash) {
	t.Helper()
	c, err := Program.Config(params)
	if err != nil {
		t.Fatal(err)
	}
	c.Events = 3000
	in, err := Program.New(c)
	if err != nil {
		t.Fatal(err)
	}
	m, err := engine.Run(context.Background(), in.App, in.Source, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Check(); err != nil {
		t.Fatal(err)
	}
	return m, storage.StateHash(in.App)
}

func TestVerifiedUnderContention(t *testing.T) {
	params := map[string]string{"keys": "40", "skew": "0.8", "abort": "10"}
	_, want := run(t, params, engine.Options{Strategy: "serial"})
	for _, s := range []string{"serial", "ns-op-eager", "ns-chain-lazy", "bfs-op-lazy", "dfs-chain-eager", "lock", "tstream", "auto"} {
		m, got := run(t, params, engine.Options{Strategy: s, Workers: 3, Batch: 300, Verify: true})
		if got != want || m.Aborted == 0 || m.Aborted == m.Events {
			t.Errorf("%s: state %s, expected %s; %d of %d aborted", s, got, want, m.Aborted, m.Events)
		}
	}
}
