package sl

import (
	"context"
	"math"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
)

func run(t *testing.T, events int, params map[string]string, o engine.Options) engine.Metrics {
	t.Helper()
	return runProgram(t, &Program, events, params, o)
}

func runProgram(t *testing.T, p *program.Program, events int, params map[string]string, o engine.Options) engine.Metrics {
	t.Helper()
	c, err := p.Config(params)
	if err != nil {
		t.Fatal(err)
	}
	c.Events = events
	in, err := p.New(c)
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
	return m
}

func TestVerifiedUnderContention(t *testing.T) {
	for _, s := range []string{"serial", "nested", "ns-op-eager", "ns-op-lazy", "bfs-op-eager", "dfs-chain-lazy", "lock", "tstream", "auto"} {
		for keys, fees := range map[string]string{"10": "merge", "12": "update", "50000": "merge"} { // the largest takes the serial path of large tables
			m := run(t, 4000, map[string]string{"keys": keys, "abort": "20", "skew": "0.9", "deposit": "20", "fee": fees, "hot": "30", "hot-keys": "5"}, engine.Options{Strategy: s, Verify: true, Batch: 512})
			if !m.Verified || m.Aborted == 0 {
				t.Errorf("%s, %s keys: verified %v, %d aborted", s, keys, m.Verified, m.Aborted)
			}
		}
	}
}

// Defect 12 of the public code of an earlier system: the share of aborts was
// drawn from another parameter, and a fraction was parsed as an integer.
func TestRegress12GeneratorKeepsFractions(t *testing.T) {
	const events = 200_000
	m := run(t, events, map[string]string{"keys": "1000", "abort": "0.5", "deposit": "12.5"}, engine.Options{})
	want := events * (1 - 0.125) * 0.005
	if got := float64(m.Aborted); math.Abs(got-want) > 5*math.Sqrt(want) {
		t.Errorf("%v aborts, expected about %v", got, want)
	}
}

func TestLoopsReachTheEnginesState(t *testing.T) {
	compareLoops(t, &Program, newGenerator, map[string]string{"keys": "500", "abort": "10", "deposit": "40", "fee": "merge"})
	compareLoops(t, &Program, newGenerator, map[string]string{"keys": "500", "hot": "50", "hot-keys": "4", "hot-abort": "20"})
}

func compareLoops(t *testing.T, p *program.Program, newMaker func(*program.Config) maker, params map[string]string) {
	t.Helper()
	c, err := p.Config(params)
	if err != nil {
		t.Fatal(err)
	}
	c.Events = 20_000
	in, err := p.New(c)
	if err != nil {
		t.Fatal(err)
	}
	accounts, books := map[uint32]int64{}, map[uint32]int64{}
	for k := range uint32(rows(c)) {
		accounts[k], books[k] = Opening, Opening
	}
	fees := newFees(c)
	overMaps(list(c, newMaker), accounts, books, program.Cost{}, fees)
	if _, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{}); err != nil {
		t.Fatal(err)
	}
	for i, table := range in.App.Tables() {
		want := []map[uint32]int64{accounts, books, {0: fees.sum}}[i]
		table.All(func(k, v any) bool {
			if want[k.(uint32)] != v.(int64) {
				t.Errorf("%s[%v]: the loop has %d, the engine %d", table.Name(), k, want[k.(uint32)], v)
			}
			return !t.Failed()
		})
	}
}
