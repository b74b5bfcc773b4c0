package ycsb

import (
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Program is the workload.
var Program = program.Program{
	Name:   "ycsb",
	About:  "YCSB A to F with transactions over several keys",
	Events: 500_000,
	Params: []program.Param{
		{Name: "mix", Kind: program.Text, Default: "a", Usage: "workload: a, b, c, d, e or f"},
		{Name: "keys", Kind: program.Int, Default: "100000", Min: 32, Max: 50_000_000, Usage: "rows at the start"},
		{Name: "skew", Kind: program.Float, Default: "0.99", Min: 0, Max: 2, Usage: "zipf exponent of the keys"},
		{Name: "accesses", Kind: program.Int, Default: "4", Min: 1, Max: accessesMax, Usage: "keys of a transaction"},
		{Name: "reads", Kind: program.Float, Default: "-1", Min: -1, Max: 100, Usage: "reads or scans among the accesses, in percent; below 0 as the mix has it"},
		{Name: "scan", Kind: program.Int, Default: "10", Min: 1, Max: 1000, Usage: "longest scan, in rows of the start"},
		{Name: "abort", Kind: program.Float, Default: "0", Min: 0, Max: 100, Usage: "transactions that abort, in percent"},
		program.Complexity,
	},
	New: newInstance,
}

// mix is what the accesses of a workload do.
type mix struct {
	reads float64 // in percent
	read  Kind
	write Kind
	// latest: reads are of keys that were inserted lately.
	latest bool
}

var mixes = map[string]mix{
	"a": {reads: 50, read: Read, write: Update},
	"b": {reads: 95, read: Read, write: Update},
	"c": {reads: 100, read: Read, write: Update},
	"d": {reads: 95, read: Read, write: Insert, latest: true},
	"e": {reads: 95, read: Scan, write: Insert},
	"f": {reads: 50, read: Read, write: Modify},
}

func (m mix) ordered() bool { return m.read == Scan }

// generator makes the events, the same for equal parameters and seed.
type generator struct {
	r                    *rng.RNG
	zipf                 *rng.Zipf
	scatter              rng.Scatter
	mix                  mix
	keys, accesses, scan int
	inserts              int // so far
	reads, abort         float64
}

func newGenerator(c *program.Config) *generator {
	keys, mix := c.Int("keys"), mixes[c.Text("mix")]
	reads := c.Float("reads")
	if reads < 0 {
		reads = mix.reads
	}
	return &generator{
		r: rng.New(c.Seed, 1), zipf: rng.NewZipf(keys, c.Float("skew")), scatter: rng.NewScatter(keys), mix: mix, keys: keys,
		accesses: c.Int("accesses"), scan: c.Int("scan"), reads: reads / 100, abort: c.Float("abort") / 100,
	}
}

func (g *generator) next() Request {
	e := Request{N: uint8(g.accesses)}
	for i := range e.Accesses[:e.N] {
		a := &e.Accesses[i]
		a.Kind = g.mix.write
		if g.r.Float64() < g.reads {
			a.Kind = g.mix.read
		}
		if a.Kind == Insert {
			a.Key = g.insert()
			continue
		}
		a.Key = g.another(e.Accesses[:i])
		switch a.Kind {
		case Update, Modify:
			a.Field, a.Value = uint8(g.r.IntN(fields)), g.r.Uint32()
		case Scan:
			a.Value = uint32(1 + g.r.IntN(g.scan))
		case Read, Insert:
		}
	}
	e.Accesses[e.N-1].Refuse = g.r.Float64() < g.abort
	return e
}

// insert returns a new key: the next one, or in an ordered table one behind a
// row of the start, each of them in turn.
func (g *generator) insert() uint64 {
	n := g.inserts
	g.inserts++
	if !g.mix.ordered() {
		return uint64(g.keys + n)
	}
	return place(g.scatter.Index(n%g.keys), true) + 1 + uint64(n/g.keys)
}

// another draws a key that is not among the transaction's. When the draws are
// too skewed to find one soon, it takes the next free rank.
func (g *generator) another(drawn []Access) uint64 {
	rank := g.zipf.Draw(g.r)
	for tries := 0; contains(drawn, g.key(rank)); tries++ {
		if tries < 8 {
			rank = g.zipf.Draw(g.r)
		} else {
			rank = (rank + 1) % g.keys
		}
	}
	return g.key(rank)
}

func (g *generator) key(rank int) uint64 {
	if g.mix.latest {
		return uint64(g.keys + g.inserts - 1 - rank)
	}
	return place(g.scatter.Index(rank), g.mix.ordered())
}

func contains(accesses []Access, key uint64) bool {
	for i := range accesses {
		if accesses[i].Key == key {
			return true
		}
	}
	return false
}

func newInstance(c *program.Config) (*program.Instance, error) {
	m, ok := mixes[c.Text("mix")]
	if !ok {
		return nil, &program.ParamError{Param: "mix", Value: c.Text("mix"), Allowed: "one of a, b, c, d, e, f is allowed"}
	}
	a := New(c.Int("keys"), m.ordered(), c.Cost("complexity"))
	g := newGenerator(c)
	var sum totals
	a.Requests.Each(sum.add)
	loop := program.Loop{Name: "go maps", Prepare: func() func() { return overMap(c) }}
	if m.ordered() {
		loop = program.Loop{Name: "btree", Prepare: func() func() { return overTree(c) }}
	}
	return &program.Instance{
		App:    a.App,
		Total:  c.Events,
		Source: program.Generated(c.Events, func(f *txn.Feed) { a.Requests.Push(f, g.next()) }),
		Check:  func() error { return a.check(c.Int("keys"), &sum) },
		Loops:  []program.Loop{loop},
	}, nil
}
