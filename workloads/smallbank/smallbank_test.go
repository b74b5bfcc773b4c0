package smallbank

import (
	"context"
	"errors"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
)

func instance(t *testing.T, events int, params map[string]string) (*program.Config, *program.Instance) {
	t.Helper()
	c, err := Program.Config(params)
	if err != nil {
		t.Fatal(err)
	}
	c.Events = events
	in, err := Program.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return c, in
}

func run(t *testing.T, events int, params map[string]string, o engine.Options) engine.Metrics {
	t.Helper()
	_, in := instance(t, events, params)
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
	for _, s := range []string{"serial", "ns-op-eager", "ns-op-lazy", "bfs-op-eager", "dfs-chain-lazy", "lock", "tstream", "auto"} {
		for _, params := range []map[string]string{
			{"customers": "10", "skew": "0.9", "abort": "20"},
			{"customers": "1000", "hot": "5", "abort": "5"},
			{"customers": "50000", "abort": "20"}, // takes the serial path of large tables
		} {
			m := run(t, 4000, params, engine.Options{Strategy: s, Verify: true, Batch: 512})
			if !m.Verified || m.Aborted == 0 || m.Aborted == m.Events {
				t.Errorf("%s, %v: verified %v, %d of %d aborted", s, params, m.Verified, m.Aborted, m.Events)
			}
		}
	}
}

func TestSmallBatches(t *testing.T) {
	for _, batch := range []int{1, 7, 64} {
		for _, s := range []string{"serial", "ns-op-eager", "bfs-chain-lazy"} {
			m := run(t, 600, map[string]string{"customers": "4", "abort": "10"}, engine.Options{Strategy: s, Verify: true, Batch: batch, Workers: 3})
			if !m.Verified {
				t.Errorf("%s, batches of %d: not verified", s, batch)
			}
		}
	}
}

func TestLoopsReachTheEnginesState(t *testing.T) {
	const customers = 200
	c, in := instance(t, 20_000, map[string]string{"customers": "200", "hot": "10", "hot-share": "50", "abort": "10"})
	savings, checking := map[uint32]int64{}, map[uint32]int64{}
	savingsSlots, checkingSlots := make([]int64, customers), make([]int64, customers)
	for k := range uint32(customers) {
		savings[k], checking[k], savingsSlots[k], checkingSlots[k] = opening, opening, opening, opening
	}
	seen := overMaps(list(c), savings, checking, program.Cost{})
	if s := overSlots(list(c), savingsSlots, checkingSlots, program.Cost{}); s != seen {
		t.Errorf("the loops saw balances of %d and %d", seen, s)
	}
	if _, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{}); err != nil {
		t.Fatal(err)
	}
	for i, table := range in.App.Tables() {
		maps, slots := []map[uint32]int64{savings, checking}[i], [][]int64{savingsSlots, checkingSlots}[i]
		table.All(func(k, v any) bool {
			if key, got := k.(uint32), v.(int64); maps[key] != got || slots[key] != got {
				t.Errorf("%s[%v]: the loops have %d and %d, the engine %d", table.Name(), k, maps[key], slots[key], got)
			}
			return !t.Failed()
		})
	}
}

// The penalty is part of what a check costs, and of what the result tells.
func TestOverdraft(t *testing.T) {
	a := New(2, program.Cost{})
	var paid []int64
	a.Events[WriteCheck].Each(func(amount int64) { paid = append(paid, amount) })
	checks := []Request{{Customer: 1, Amount: 2 * opening}, {Customer: 1, Amount: 5}, {Customer: 0, Amount: 2*opening + 1}}
	if _, err := engine.Run(context.Background(), a.App, a.Events[WriteCheck].Slice(checks), engine.Options{}); err != nil {
		t.Fatal(err)
	}
	if len(paid) != 3 || paid[0] != 2*opening || paid[1] != 5+penalty || paid[2] != 2*opening+1+penalty {
		t.Errorf("paid %v", paid)
	}
	if v, _ := a.Checking.Peek(1); v != -opening-5-penalty {
		t.Errorf("checking[1] is %d", v)
	}
}

// Money that comes out of nowhere does not pass.
func TestCheckFindsWrongSums(t *testing.T) {
	a := New(3, program.Cost{})
	if err := a.check(3, 0); err != nil {
		t.Fatal(err)
	}
	if a.check(3, 1) == nil || a.check(4, -2*opening) == nil {
		t.Error("a wrong sum passed")
	}
	a.Savings.Load(0, -1)
	if a.check(3, -opening-1) == nil {
		t.Error("negative savings passed")
	}
}

func TestMixAndHotSpot(t *testing.T) {
	const events = 100_000
	c, _ := instance(t, events, map[string]string{"customers": "1000", "hot": "10"})
	var count [kinds]int
	g, hot := newGenerator(c), 0
	isHot := map[uint32]bool{}
	for i := range 10 {
		isHot[uint32(g.scatter.Index(i))] = true
	}
	for range events {
		k, r := g.next()
		count[k]++
		if isHot[r.Customer] {
			hot++
		}
	}
	for k, share := range mix {
		if got := float64(count[k]) / events * 100; got < share-1 || got > share+1 {
			t.Errorf("kind %d: %.1f %%, want %v", k, got, share)
		}
	}
	if hot < events*89/100 || hot > events*91/100 {
		t.Errorf("%d of %d first customers are hot", hot, events)
	}
}

func TestHotSpotIsSmallerThanTheBank(t *testing.T) {
	c, err := Program.Config(map[string]string{"customers": "10", "hot": "10"})
	if err != nil {
		t.Fatal(err)
	}
	var wrong *program.ParamError
	if _, err := Program.New(c); !errors.As(err, &wrong) || wrong.Param != "hot" {
		t.Errorf("got %v", err)
	}
}
