package tpg_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/tpg"
	"github.com/heddle-stream/heddle/txn"
)

// graphOf links the graph of the events as one batch, planned in as many parts
// as the number of workers gives.
func graphOf(t testing.TB, events []metamorphic.Event, workers int) (*tpg.Graph, *txn.Batch) {
	t.Helper()
	l := metamorphic.New(4)
	b, err := txn.Bind(l.App, workers)
	if err != nil {
		t.Fatal(err)
	}
	feed := l.App.NewFeed()
	for _, e := range events {
		l.Events.Push(feed, e)
	}
	x := b.NewBatch(0)
	x.Open(feed)
	for r := range x.RegionCount() {
		x.PlanRegion(r)
	}
	x.Seal(false)
	g := &tpg.Graph{}
	g.Reset(x)
	for table := range x.Tables() {
		for s := range x.Shards(table) {
			g.Link(x.Resolve(table, s))
		}
	}
	return g, x
}

// TestScripts shows graphs as text. A line of input is an event:
//
//	add a, add b reads a start c, get d, sum o[1,5)
//
// Keys are letters; tables are left, or right with a trailing ' mark, or the
// ordered one for o[lo,hi).
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			g, x := graphOf(t, parseEvents(t, d.Input), 1)
			if err := g.Check(); err != nil {
				return err.Error()
			}
			var out strings.Builder
			switch d.Cmd {
			case "graph":
				if err := g.Dump(&out, x); err != nil {
					t.Fatal(err)
				}
			case "strata", "segments":
				showStrata(&out, g, x, d.Cmd == "segments")
			case "stats":
				fmt.Fprintf(&out, "%+v\n", g.Stats())
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			return out.String()
		})
	})
}

func showStrata(out *strings.Builder, g *tpg.Graph, x *txn.Batch, segments bool) {
	var s tpg.Strata
	if segments {
		s.Segments(g)
	} else {
		s.Operations(g)
	}
	for i := range s.Count() {
		fmt.Fprintf(out, "stratum %d, %d operations up to here:", i, s.Through[i])
		for _, id := range s.Units[s.Start[i]:s.Start[i+1]] {
			fmt.Fprintf(out, " %d:%s", g.Acc[id].Event, x.RowName(id))
		}
		out.WriteString("\n")
	}
}

func parseEvents(t *testing.T, input string) []metamorphic.Event {
	var out []metamorphic.Event
	for line := range strings.Lines(input) {
		var e metamorphic.Event
		for part := range strings.SplitSeq(strings.TrimSpace(line), ", ") {
			e.Ops = append(e.Ops, parseOp(t, strings.Fields(part)))
		}
		out = append(out, e)
	}
	return out
}

func parseOp(t *testing.T, words []string) metamorphic.Op {
	kinds := map[string]metamorphic.Kind{"add": metamorphic.Add, "get": metamorphic.Get, "put": metamorphic.Put, "sum": metamorphic.SumOf}
	kind, ok := kinds[words[0]]
	if !ok {
		t.Fatalf("unknown operation %q", words[0])
	}
	o := metamorphic.Op{Kind: kind}
	o.Table, o.Key = parseKey(words[1])
	start := false
	for _, w := range words[2:] {
		switch {
		case w == "reads" || w == "start":
			start = w == "start"
		case strings.HasPrefix(w, "o["):
			if _, err := fmt.Sscanf(w, "o[%d,%d)", &o.Lo, &o.Hi); err != nil {
				t.Fatal(err)
			}
		default:
			table, key := parseKey(w)
			o.Reads = append(o.Reads, metamorphic.Read{Table: table, Key: key, Start: start})
		}
	}
	return o
}

func parseKey(w string) (table uint8, key int16) {
	switch {
	case strings.HasPrefix(w, "o"):
		table = 2
		w = w[1:]
	case strings.HasSuffix(w, "'"):
		table = 1
	}
	return table, int16(w[0] - 'a')
}

// The graph is the same however many workers plan it, and keeps its laws.
func TestGraphIsTheSameForAnyNumberOfPlanners(t *testing.T) {
	for seed := range uint64(60) {
		r := rng.New(seed, 2)
		events := metamorphic.Draw(r, 1+r.IntN(80), metamorphic.Shape{Keys: 1 + r.IntN(8), OpsMax: 4, Tables: 3, NoLate: true})
		want := ""
		for workers := 1; workers <= 5; workers++ {
			g, x := graphOf(t, events, workers)
			if err := g.Check(); err != nil {
				t.Fatalf("seed %d, %d workers: %v", seed, workers, err)
			}
			g.Operations(func(id uint32) bool {
				g.Dependencies(id, func(on uint32, _ bool) {
					if on >= id {
						t.Fatalf("seed %d: operation %d waits for %d, which comes later", seed, id, on)
					}
				})
				return true
			})
			var got strings.Builder
			if err := g.Dump(&got, x); err != nil {
				t.Fatal(err)
			}
			if want == "" {
				want = got.String()
			}
			if got.String() != want {
				t.Fatalf("seed %d: %d workers give\n%s\nand one gives\n%s", seed, workers, got.String(), want)
			}
		}
	}
}

// An access taken out of its chain and inserted late leaves the graph as it was.
func TestLateInsertEqualsLinking(t *testing.T) {
	for seed := range uint64(200) {
		r := rng.New(seed, 5)
		events := metamorphic.Draw(r, 2+r.IntN(30), metamorphic.Shape{Keys: 1 + r.IntN(3), OpsMax: 3, Tables: 2, NoLate: true})
		g, x := graphOf(t, events, 2)
		var ids []uint32
		for e := range g.Events {
			for id := g.TxLo[e]; id < g.TxHi[e]; id++ {
				if !g.Acc[id].IsRange() {
					ids = append(ids, id)
				}
			}
		}
		if len(ids) == 0 {
			continue
		}
		var want strings.Builder
		if err := g.Dump(&want, x); err != nil {
			t.Fatal(err)
		}
		id := ids[r.IntN(len(ids))]
		tail := unlink(g, id)
		last, _ := g.Insert(id, tail)
		if err := g.Check(); err != nil {
			t.Fatalf("seed %d, access %d: %v", seed, id, err)
		}
		if g.Acc[last].Next != tpg.None {
			t.Fatalf("seed %d: %d is not the end of the chain", seed, last)
		}
		var got strings.Builder
		if err := g.Dump(&got, x); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() {
			t.Fatalf("seed %d: inserting %d late gives\n%s\nlinking it gave\n%s", seed, id, got.String(), want.String())
		}
	}
}

// unlink takes an access out of its chain and returns the chain's last access.
func unlink(g *tpg.Graph, id uint32) uint32 {
	tail := id
	for g.Acc[tail].Next != tpg.None {
		tail = g.Acc[tail].Next
	}
	if tail == id {
		tail = g.Acc[id].Prev
	}
	g.Remove(id)
	return tail
}

// Check must notice each kind of damage.
func TestCheckFindsDamage(t *testing.T) {
	damage := map[string]func(g *tpg.Graph){
		"a wrong predecessor":        func(g *tpg.Graph) { g.Acc[g.TxLo[2]].Pred = tpg.None },
		"a broken chain":             func(g *tpg.Graph) { g.Acc[g.TxLo[1]].Next = tpg.None; g.Acc[g.TxLo[0]].Next = g.TxLo[2] },
		"an access of another event": func(g *tpg.Graph) { g.Acc[g.TxLo[1]].Event = 0 },
	}
	for what, do := range damage {
		g, _ := graphOf(t, parseEvents(t, "add a\nadd a\nadd a"), 1)
		if err := g.Check(); err != nil {
			t.Fatal(err)
		}
		do(g)
		if g.Check() == nil {
			t.Errorf("%s goes unnoticed", what)
		}
	}
}
