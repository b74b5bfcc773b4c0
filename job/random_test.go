package job_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/operators"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// chance is a pass that does something at random, of the kind that it is.
type chance struct {
	name string
	sets []plan.PropID
	set  func(v *plan.View) error
}

func (p chance) Name() string                { return p.name }
func (p chance) Needs() []plan.PropID        { return nil }
func (p chance) Sets() []plan.PropID         { return p.sets }
func (p chance) Annotate(v *plan.View) error { return p.set(v) }

type reshape func(s *plan.Shaper) error

func (reshape) Name() string                   { return "reshape" }
func (reshape) Needs() []plan.PropID           { return nil }
func (p reshape) Reshape(s *plan.Shaper) error { return p(s) }

// randomly returns a pass: relays on edges, work split, partitions, slices and fusions as they fall.
func randomly(r *rng.RNG, step int) plan.Pass {
	switch r.IntN(5) {
	case 0:
		return reshape(func(s *plan.Shaper) error {
			e := s.Edges()[r.IntN(len(s.Edges()))]
			from, _ := s.Vertex(e.From)
			return s.Insert(e.ID, plan.ID(fmt.Sprint("relay-", step)), operators.RelayOf(from))
		})
	case 1:
		return reshape(func(s *plan.Shaper) error {
			_, err := s.Split(s.Edges()[r.IntN(len(s.Edges()))].ID, plan.ID(fmt.Sprint("part-", step)))
			return err
		})
	case 2:
		return chance{"parallelism", []plan.PropID{plan.Parallelism}, func(v *plan.View) error {
			n := map[plan.ID]int{}
			for _, x := range v.Vertices() {
				n[x.ID] = 1 << r.IntN(5)
				if op, ok := x.Op.(interface{ OneKey() bool }); ok && op.OneKey() {
					n[x.ID] = 1
				}
				for _, e := range v.In(x.ID) {
					if e.Pattern == plan.OneToOne {
						n[x.ID] = n[e.From]
					}
				}
				if err := plan.Parallelism.Set(v, x.ID, n[x.ID]); err != nil {
					return err
				}
			}
			return nil
		}}
	case 3:
		return chance{"fuse", []plan.PropID{plan.Fuse}, func(v *plan.View) error {
			for _, e := range v.Edges() {
				if e.Pattern == plan.OneToOne && len(v.In(e.To)) == 1 {
					if err := plan.Fuse.Set(v, e.ID, r.IntN(2) == 0); err != nil {
						return err
					}
				}
			}
			return nil
		}}
	}
	return chance{"slices", []plan.PropID{plan.SliceNanos}, func(v *plan.View) error {
		for _, x := range v.Vertices() {
			if op, ok := x.Op.(interface{ SliceNanos() int64 }); ok && op.SliceNanos() > 0 {
				if err := plan.SliceNanos.Set(v, x.ID, op.SliceNanos()*int64(r.IntN(2))); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

// shop is a job with all kinds of vertices. What comes goes to got.
func shop(t *testing.T, items []reading, got *[]string) *plan.Graph {
	t.Helper()
	j := operators.New("shop")
	in := operators.Slice(items, at)
	in.Disorder = 15
	s := operators.From(j, "in", in)
	left, right := sides(s)
	all := shelves(s, left, right, operators.Sliding(90, 60))
	union := operators.Union("union", all[0], all[1:]...)
	operators.Each(union, "out", func(s *string, at int64) error {
		*got = append(*got, fmt.Sprint(*s, "@", at))
		return nil
	})
	g, err := j.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// shelves are what comes of items, and of their two sides, through vertices of many kinds.
func shelves(s operators.Stream[reading], left, right operators.Keyed[string, reading], w operators.Windows) []operators.Stream[string] {
	joined := operators.Map(operators.IntervalJoin(left, right, "join", -5, 5, pair), "joined", func(p *string) string { return *p })
	perKey := operators.Aggregate(operators.KeyBy(s, keyOf), "sum", w, sums, told)
	all := operators.Aggregate(operators.All(s), "all", operators.Cumulating(20, 100), sums, func(_ uint64, w operators.Span, acc *sum) string { return told("all", w, acc) })
	lists := operators.Process(operators.KeyBy(s, keyOf), "lists", operators.Sessions(25), listed)
	long := operators.Fold(operators.KeyBy(lists, func(s *string) int { return len(*s) }), "long", func(n int, seen *int, s *string, _ int64, emit func(string)) {
		*seen++
		emit(fmt.Sprint(n, " ", *seen, " ", *s))
	})
	return []operators.Stream[string]{joined, perKey, all, long}
}

// A plan that passes have changed at random comes to the same, in the same order.
func TestRandomPlans(t *testing.T) {
	items := draw(4, 600)
	var want []string
	if _, err := job.Run(context.Background(), shop(t, items, &want), job.Options{Passes: []plan.Pass{}}); err != nil || len(want) < 500 {
		t.Fatalf("%d results, %v", len(want), err)
	}
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		r := rng.New(seed, 1)
		passes := []plan.Pass{job.Batch(1 + r.IntN(600))}
		for step := range 1 + r.IntN(30) {
			passes = append(passes, randomly(r, step))
		}
		var got []string
		o := job.Options{Workers: 1 + r.IntN(3), Passes: passes, Env: operators.Env{FS: &vfs.Memory{}, Dir: "w", MemoryLimit: 1 << 20}}
		m, err := job.Run(context.Background(), shop(t, items, &got), o)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("seed %d: %d results, want %d: %s, %v\n%v", seed, len(got), len(want), firstDifference(got, want), err, m.Plan)
		}
	}
}

// Transactions behind transactions: what one application puts out is what the other one gets.
func TestTransactionsBehindTransactions(t *testing.T) {
	tally := func(name string) (*txn.App, *txn.Event[reading, reading]) {
		app := txn.New(name)
		totals := txn.NewTable[string, int64](app, "totals")
		add := txn.Upsert(totals, "add", func(_ txn.Ctx, n int64, total *int64, _ bool) txn.Verdict { *total += n; return txn.OK })
		return app, txn.On(app, "add", func(p *txn.Plan, r reading) { add.At(p, r.Key[:1+len(r.Key)/3], r.Value) }, func(out txn.Outcome, r reading) reading {
			total, _ := add.After(out)
			return reading{r.Key, r.At, total}
		})
	}
	items := draw(6, 2000)
	kept := onTime(items, 15)
	slices.SortStableFunc(kept, func(a, b reading) int { return int(a.At - b.At) })
	var want []string
	first, second := map[string]int64{}, map[string]int64{}
	for _, r := range kept {
		k := r.Key[:1+len(r.Key)/3]
		first[k] += r.Value
		second[k] += first[k]
		want = append(want, fmt.Sprint(r.Key, second[k], "@", r.At))
	}
	for _, batch := range []int{2000, 30} {
		one, ones := tally("one")
		two, twos := tally("two")
		a, err := job.NewTransactions(one, ones, engine.Options{Workers: 2, Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		b, err := job.NewTransactions(two, twos, engine.Options{Workers: 2, Strategy: "ns-op-eager"})
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := run(t, items, 15, func(s operators.Stream[reading]) operators.Stream[string] {
			return operators.Map(operators.Transact("second", b, operators.Transact("first", a, s)), "text", func(r *reading) string { return fmt.Sprint(r.Key, r.Value) })
		}, job.Options{}, batch)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("batch %d: %d results, want %d: %s, %v", batch, len(got), len(want), firstDifference(got, want), err)
		}
		for _, x := range []*job.Transactions[reading, reading]{a, b} {
			if m, err := x.Close(); err != nil || m.Events != len(kept) {
				t.Errorf("%d transactions, %v", m.Events, err)
			}
		}
	}
}
