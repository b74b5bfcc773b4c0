package gs

import (
	"fmt"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// NonDet is grep and sum with computed keys: the key that an event writes is a
// function of a value that it reads, and may be new.
var NonDet = program.Program{
	Name:   "gsnd",
	About:  "grep and sum where some events compute the key to write from a value that they read",
	Events: 1_000_000,
	Params: []program.Param{
		{Name: "keys", Kind: program.Int, Default: "100000", Min: 32, Max: 50_000_000, Usage: "keys of the table at the start"},
		{Name: "skew", Kind: program.Float, Default: "0", Min: 0, Max: 2, Usage: "zipf exponent of the keys"},
		{Name: "accesses", Kind: program.Int, Default: "2", Min: 2, Max: accessesMax, Usage: "keys that an event reads, the written one included"},
		{Name: "nondet", Kind: program.Float, Default: "10", Min: 0, Max: 100, Usage: "events that compute the key, in percent"},
		{Name: "abort", Kind: program.Float, Default: "0", Min: 0, Max: 100, Usage: "events that abort, in percent"},
		program.Complexity,
	},
	New: newNonDet,
}

// Computed asks for the mean of the keys, to be written to the first of them or,
// if Salt is not 0, to the key that the value of the first one gives with it.
type Computed struct {
	Sum
	Salt uint32
}

// target is the key that a value gives: any of the table or of an eighth as many
// new ones.
func target(value int64, salt uint32, keys int) uint32 {
	h := (uint64(value) + uint64(salt)<<32) * 0x9e3779b97f4a7c15
	return uint32((h ^ h>>29) % uint64(keys+keys/8))
}

// destination is what the operation needs of its event.
type destination struct {
	request
	salt uint32
}

func newNonDet(c *program.Config) (*program.Instance, error) {
	keys, cost := c.Int("keys"), c.Cost("complexity")
	app := txn.New("gsnd")
	vals := txn.NewTable[uint32, int64](app, "values")
	for k := range uint32(keys) {
		vals.Load(k, int64(k))
	}
	refused := app.Reason("refused")
	first, others := txn.NewParam(vals, "first"), txn.NewParam(vals, "others")
	sum := txn.Upsert(vals, "sum", func(ctx txn.Ctx, d destination, v *int64, _ bool) txn.Verdict {
		cost.Spend(ctx)
		for x := range others.All(ctx) {
			*v += x
		}
		if d.abort {
			return refused
		}
		*v /= d.n
		return txn.OK
	})
	late := txn.Late(sum, func(ctx txn.Ctx, d destination) (uint32, txn.Verdict) {
		value, _ := first.Get(ctx)
		return target(value, d.salt, keys), txn.OK
	})
	events := txn.On(app, "sum", func(p *txn.Plan, e Computed) {
		var reads [accessesMax + 1]txn.Arg
		n := int(e.N)
		for i := 1; i < n; i++ {
			reads[i] = others.Of(p, e.Keys[i])
		}
		d := destination{request{int64(n), e.Abort}, e.Salt}
		if e.Salt == 0 {
			sum.At(p, e.Keys[0], d, reads[1:n]...)
			return
		}
		reads[n] = first.Of(p, e.Keys[0])
		late.Then(p, d, reads[1:n+1]...)
	}, func(out txn.Outcome, e Computed) int64 {
		if e.Salt == 0 {
			mean, _ := sum.After(out)
			return mean
		}
		mean, _ := late.After(out)
		return mean
	})
	g := newNonDetGenerator(c)
	return &program.Instance{
		App:    app,
		Total:  c.Events,
		Source: program.Generated(c.Events, func(f *txn.Feed) { events.Push(f, g.next()) }),
		Check:  func() error { return checkNonDet(vals, keys) },
		Loops:  []program.Loop{{Name: "go maps", Prepare: func() func() { return nonDetLoop(c) }}},
	}, nil
}

// checkNonDet verifies that no mean lies outside of what the table held.
func checkNonDet(vals *txn.Table[uint32, int64], keys int) error {
	for k, v := range vals.All() {
		if v < 0 || v >= int64(keys) {
			return fmt.Errorf("values[%d] is %d; means of 0 to %d stay within", k, v, keys-1)
		}
	}
	if n := vals.Len(); n < keys || n > keys+keys/8 {
		return fmt.Errorf("%d keys hold a value: %d did at the start, and %d can be new", n, keys, keys/8)
	}
	return nil
}

// nonDetGenerator makes the events, the same for equal parameters and seed.
type nonDetGenerator struct {
	generator
	nondet float64
}

func newNonDetGenerator(c *program.Config) *nonDetGenerator {
	g := &nonDetGenerator{generator: *drawsOf(c), nondet: c.Float("nondet") / 100}
	g.multiple = 1
	return g
}

func (g *nonDetGenerator) next() Computed {
	e := Computed{Sum: g.generator.next()}
	if g.r.Float64() < g.nondet {
		e.Salt = 1 + uint32(g.r.IntN(1<<31))
	}
	return e
}

func nonDetLoop(c *program.Config) (run func()) {
	keys, cost := c.Int("keys"), c.Cost("complexity")
	vals := map[uint32]int64{}
	for k := range uint32(keys) {
		vals[k] = int64(k)
	}
	g := newNonDetGenerator(c)
	events := make([]Computed, c.Events)
	for i := range events {
		events[i] = g.next()
	}
	return func() { overComputed(events, vals, keys, cost) }
}

func overComputed(events []Computed, vals map[uint32]int64, keys int, cost program.Cost) {
	for i := range events {
		e := &events[i]
		cost.SpendTimes(1)
		key := e.Keys[0]
		if e.Salt != 0 {
			key = target(vals[key], e.Salt, keys)
		}
		total := vals[key]
		for _, k := range e.Keys[1:e.N] {
			total += vals[k]
		}
		if !e.Abort {
			vals[key] = total / int64(e.N)
		}
	}
}
