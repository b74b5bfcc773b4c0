package gs

import (
	"fmt"

	"github.com/heddle-stream/heddle/internal/flat"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Program is the workload.
var Program = program.Program{
	Name:   "gs",
	About:  "grep and sum: read keys, write their mean to the first",
	Events: 1_000_000,
	Params: []program.Param{
		{Name: "keys", Kind: program.Int, Default: "100000", Min: 32, Max: 50_000_000, Usage: "keys of the table"},
		{Name: "skew", Kind: program.Float, Default: "0", Min: 0, Max: 2, Usage: "zipf exponent of the keys"},
		{Name: "accesses", Kind: program.Int, Default: "10", Min: 1, Max: accessesMax, Usage: "keys that an event reads, the written one included"},
		{Name: "multiple", Kind: program.Float, Default: "100", Min: 0, Max: 100, Usage: "events that read more than the written key, in percent"},
		{Name: "abort", Kind: program.Float, Default: "0", Min: 0, Max: 100, Usage: "events that abort, in percent"},
		program.Complexity,
	},
	New: newInstance,
}

const accessesMax = 16

// Sum asks for the mean of the first N keys.
type Sum struct {
	Keys  [accessesMax]uint32
	N     uint8
	Abort bool
}

// App is the declared application.
type App struct {
	App  *txn.App
	Vals *txn.Table[uint32, int64]
	Sums *txn.Event[Sum, int64]
}

// request is what the operation needs of its event.
type request struct {
	n     int64
	abort bool
}

// New declares the application with keys 0 to keys-1, each holding its number.
func New(keys int, cost program.Cost) *App {
	app := txn.New("gs")
	a := &App{App: app, Vals: txn.NewTable[uint32, int64](app, "values")}
	a.Sums = declareSums(app, a.Vals, keys, app.Reason("refused"), cost)
	return a
}

// declareSums fills the values and declares the transaction that sums them.
func declareSums(app *txn.App, values *txn.Table[uint32, int64], keys int, refused txn.Verdict, cost program.Cost) *txn.Event[Sum, int64] {
	for k := range uint32(keys) {
		values.Load(k, int64(k))
	}
	others := txn.NewParam(values, "others")
	sum := txn.Update(values, "sum", func(c txn.Ctx, r request, v *int64) txn.Verdict {
		cost.Spend(c)
		total := *v
		for x := range others.All(c) {
			total += x
		}
		if r.abort {
			return refused
		}
		*v = total / r.n
		return txn.OK
	})
	return txn.On(app, "sum", func(p *txn.Plan, e Sum) {
		var reads [accessesMax]txn.Arg
		n := int(e.N)
		for i := 1; i < n; i++ {
			reads[i] = others.Of(p, e.Keys[i])
		}
		sum.At(p, e.Keys[0], request{int64(n), e.Abort}, reads[1:n]...)
	}, func(out txn.Outcome, _ Sum) int64 {
		mean, _ := sum.After(out)
		return mean
	})
}

// check verifies that no mean lies outside of what the table held at the start.
func (a *App) check(keys int) error {
	for k, v := range a.Vals.All() {
		if v < 0 || v >= int64(keys) {
			return fmt.Errorf("values[%d] is %d; means of 0 to %d stay within", k, v, keys-1)
		}
	}
	if n := a.Vals.Len(); n != keys {
		return fmt.Errorf("%d keys of %d are left", n, keys)
	}
	return nil
}

// generator makes the events, the same for equal parameters and seed.
type generator struct {
	r               *rng.RNG
	zipf            *rng.Zipf
	scatter         rng.Scatter
	keys, accesses  int
	multiple, abort float64
}

func newGenerator(c *program.Config) *generator {
	g := drawsOf(c)
	g.multiple = c.Float("multiple") / 100
	return g
}

// drawsOf returns a generator from what all forms of the workload have in common.
func drawsOf(c *program.Config) *generator {
	keys := c.Int("keys")
	return &generator{
		r: rng.New(c.Seed, 1), zipf: rng.NewZipf(keys, c.Float("skew")), scatter: rng.NewScatter(keys),
		keys: keys, accesses: c.Int("accesses"), abort: c.Float("abort") / 100,
	}
}

func (g *generator) next() Sum {
	e := Sum{N: 1}
	if g.r.Float64() < g.multiple {
		e.N = uint8(g.accesses)
	}
	for i := range e.Keys[:e.N] {
		e.Keys[i] = g.another(e.Keys[:i])
	}
	e.Abort = g.r.Float64() < g.abort
	return e
}

// another draws a key that is not among those drawn. When the draws are too
// skewed to find one soon, it takes the next free one.
func (g *generator) another(drawn []uint32) uint32 {
	k := uint32(g.scatter.Index(g.zipf.Draw(g.r)))
	for tries := 0; contains(drawn, k); tries++ {
		if tries < 8 {
			k = uint32(g.scatter.Index(g.zipf.Draw(g.r)))
		} else {
			k = (k + 1) % uint32(g.keys)
		}
	}
	return k
}

func contains(keys []uint32, k uint32) bool {
	for _, x := range keys {
		if x == k {
			return true
		}
	}
	return false
}

func newInstance(c *program.Config) (*program.Instance, error) {
	a := New(c.Int("keys"), c.Cost("complexity"))
	g := newGenerator(c)
	return &program.Instance{
		App:    a.App,
		Total:  c.Events,
		Source: program.Generated(c.Events, func(f *txn.Feed) { a.Sums.Push(f, g.next()) }),
		Check:  func() error { return a.check(c.Int("keys")) },
		Loops:  loops(c),
	}, nil
}

// loops are serial programs over the same events.
func loops(c *program.Config) []program.Loop {
	keys, cost := c.Int("keys"), c.Cost("complexity")
	return []program.Loop{
		{Name: "go maps", Prepare: func() func() {
			vals := map[uint32]int64{}
			for k := range uint32(keys) {
				vals[k] = int64(k)
			}
			events := list(c)
			return func() { overMap(events, vals, cost) }
		}},
		{Name: "flat open addressing", Prepare: func() func() {
			vals := flat.New(keys)
			for k := range uint32(keys) {
				*vals.At(k) = int64(k)
			}
			events := list(c)
			return func() { overRows(events, vals.At, cost) }
		}},
		{Name: "dense slots", Prepare: func() func() {
			vals := make([]int64, keys)
			for k := range vals {
				vals[k] = int64(k)
			}
			events := list(c)
			return func() { overRows(events, func(k uint32) *int64 { return &vals[k] }, cost) }
		}},
	}
}

func list(c *program.Config) []Sum {
	g := newGenerator(c)
	out := make([]Sum, c.Events)
	for i := range out {
		out[i] = g.next()
	}
	return out
}

func overMap(events []Sum, vals map[uint32]int64, cost program.Cost) {
	for i := range events {
		e := &events[i]
		cost.SpendTimes(1)
		total := int64(0)
		for _, k := range e.Keys[:e.N] {
			total += vals[k]
		}
		if !e.Abort {
			vals[e.Keys[0]] = total / int64(e.N)
		}
	}
}

func overRows(events []Sum, at func(uint32) *int64, cost program.Cost) {
	for i := range events {
		e := &events[i]
		cost.SpendTimes(1)
		first := at(e.Keys[0])
		total := *first
		for _, k := range e.Keys[1:e.N] {
			total += *at(k)
		}
		if !e.Abort {
			*first = total / int64(e.N)
		}
	}
}
