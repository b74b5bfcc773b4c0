package ycsb

import (
	"context"
	"errors"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
)

var allMixes = []string{"a", "b", "c", "d", "e", "f"}

func config(t *testing.T, events int, params map[string]string) *program.Config {
	t.Helper()
	c, err := Program.Config(params)
	if err != nil {
		t.Fatal(err)
	}
	c.Events = events
	return c
}

func run(t *testing.T, events int, params map[string]string, o engine.Options) engine.Metrics {
	t.Helper()
	in, err := Program.New(config(t, events, params))
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
	for _, mix := range allMixes {
		for _, s := range []string{"serial", "ns-op-eager", "ns-op-lazy", "bfs-op-eager", "dfs-chain-lazy", "lock", "tstream", "auto"} {
			m := run(t, 1500, map[string]string{"mix": mix, "keys": "40", "abort": "15"}, engine.Options{Strategy: s, Verify: true, Batch: 256})
			if !m.Verified || m.Aborted == 0 || m.Aborted == m.Events {
				t.Errorf("%s, %s: verified %v, %d of %d aborted", mix, s, m.Verified, m.Aborted, m.Events)
			}
		}
	}
}

func TestSmallBatches(t *testing.T) {
	for _, mix := range allMixes {
		for _, batch := range []int{1, 9, 50} {
			params := map[string]string{"mix": mix, "keys": "32", "abort": "10", "accesses": "6", "reads": "50", "scan": "20"}
			for _, s := range []string{"serial", "ns-op-eager", "bfs-chain-lazy"} {
				if m := run(t, 300, params, engine.Options{Strategy: s, Verify: true, Batch: batch, Workers: 3}); !m.Verified {
					t.Errorf("%s, %s, batches of %d: not verified", mix, s, batch)
				}
			}
		}
	}
}

// A table that exceeds the caches takes another serial path.
func TestVerifiedWithManyKeys(t *testing.T) {
	for _, mix := range allMixes {
		events := 1000
		if mixes[mix].ordered() {
			events = 40 // the serial model goes over all rows for a scan
		}
		for _, s := range []string{"serial", "auto"} {
			if m := run(t, events, map[string]string{"mix": mix, "keys": "33000", "abort": "5"}, engine.Options{Strategy: s, Verify: true}); !m.Verified {
				t.Errorf("%s, %s: not verified", mix, s)
			}
		}
	}
}

func TestLoopsReachTheEnginesState(t *testing.T) {
	const keys = 60
	for _, mix := range allMixes {
		c := config(t, 3000, map[string]string{"mix": mix, "keys": "60", "abort": "10", "reads": "60"})
		m := mixes[mix]
		a := New(keys, m.ordered(), program.Cost{})
		var digests []uint64
		a.Requests.Each(func(d Done) { digests = append(digests, d.Digest) })
		events := list(c)
		if _, err := engine.Run(context.Background(), a.App, a.Requests.Slice(events), engine.Options{}); err != nil {
			t.Fatal(err)
		}
		want, tree := loadMap(keys), loadTree(keys)
		for i := range events {
			var digest uint64
			if m.ordered() {
				digest = applyTree(tree, &events[i], program.Cost{})
			} else {
				digest = applyMap(want, &events[i], program.Cost{})
			}
			if e := &events[i]; !e.Accesses[e.N-1].Refuse && digest != digests[i] {
				t.Fatalf("%s, event %d: the loop's digest is %x, the engine's %x", mix, i, digest, digests[i])
			}
		}
		if m.ordered() {
			clear(want)
			tree.Scan(func(key uint64, row *Row) bool {
				want[key] = row
				return true
			})
		}
		compare(t, mix, a, want)
	}
}

func compare(t *testing.T, mix string, a *App, want map[uint64]*Row) {
	t.Helper()
	if n := a.Rows.Len(); n != len(want) {
		t.Errorf("%s: the engine has %d rows, the loop %d", mix, n, len(want))
	}
	for key, row := range a.Rows.All() {
		if w := want[key]; w == nil || *w != row {
			t.Fatalf("%s: rows[%d]: the engine has %v, the loop %v", mix, key, row, w)
		}
	}
}

func TestMixes(t *testing.T) {
	const events = 20_000
	for name, m := range mixes {
		count, lately := map[Kind]int{}, 0
		for _, e := range list(config(t, events, map[string]string{"mix": name, "keys": "10000"})) {
			drawn := map[uint64]bool{}
			for _, a := range e.Accesses[:e.N] {
				count[a.Kind]++
				drawn[a.Key] = true
				if a.Kind == Read && a.Key >= 10_000 {
					lately++
				}
			}
			if len(drawn) != 4 {
				t.Fatalf("%s: a transaction with %d keys, not 4", name, len(drawn))
			}
		}
		if got := float64(count[m.read]) / (4 * events) * 100; got < m.reads-1 || got > m.reads+1 {
			t.Errorf("%s: %.1f %% reads, not %v", name, got, m.reads)
		}
		if count[m.read]+count[m.write] != 4*events {
			t.Errorf("%s: other accesses than expected: %v", name, count)
		}
		if m.latest && lately < count[Read]/2 {
			t.Errorf("%s: only %d of %d reads are of inserted keys", name, lately, count[Read])
		}
	}
}

// Inserts of an ordered table never meet a key that is there.
func TestInsertsAreNew(t *testing.T) {
	g := newGenerator(config(t, 1, map[string]string{"mix": "e", "keys": "32"}))
	seen := map[uint64]bool{}
	for i := range 32 {
		seen[place(i, true)] = true
	}
	for range 1000 {
		if k := g.insert(); seen[k] {
			t.Fatalf("%d is inserted twice", k)
		} else {
			seen[k] = true
		}
	}
}

func TestCheckFindsWrongRows(t *testing.T) {
	for name, spoil := range map[string]func(a *App, sum *totals){
		"a lost write":  func(_ *App, sum *totals) { sum.writes[3]++ },
		"a lost insert": func(_ *App, sum *totals) { sum.inserts++ },
		"a value without a write": func(a *App, _ *totals) {
			row := fresh(7)
			row[2].Value++
			a.Rows.Load(7, row)
		},
	} {
		a, sum := New(32, false, program.Cost{}), totals{}
		if err := a.check(32, &sum); err != nil {
			t.Fatal(err)
		}
		if spoil(a, &sum); a.check(32, &sum) == nil {
			t.Errorf("%s passed", name)
		}
	}
}

func TestUnknownMix(t *testing.T) {
	var wrong *program.ParamError
	if _, err := Program.New(config(t, 1, map[string]string{"mix": "g"})); !errors.As(err, &wrong) || wrong.Param != "mix" {
		t.Errorf("got %v", err)
	}
}
