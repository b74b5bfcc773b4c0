package smallbank

import (
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Program is the workload.
var Program = program.Program{
	Name:   "smallbank",
	About:  "SmallBank: six kinds of transactions on savings and checking accounts",
	Events: 1_000_000,
	Params: []program.Param{
		{Name: "customers", Kind: program.Int, Default: "100000", Min: 2, Max: 50_000_000, Usage: "customers, each with savings and a checking account"},
		{Name: "hot", Kind: program.Int, Default: "0", Min: 0, Max: 50_000_000, Usage: "customers of the hot spot, fewer than all; 0 for no hot spot"},
		{Name: "hot-share", Kind: program.Float, Default: "90", Min: 0, Max: 100, Usage: "draws that go to the hot spot, in percent"},
		{Name: "skew", Kind: program.Float, Default: "0", Min: 0, Max: 2, Usage: "zipf exponent of the customers outside of the hot spot"},
		{Name: "abort", Kind: program.Float, Default: "0", Min: 0, Max: 100, Usage: "deposits, savings and payments that cannot succeed, in percent"},
		program.Complexity,
	},
	New: newInstance,
}

// mix is the usual share of each kind, in percent.
var mix = [kinds]float64{Balance: 15, DepositChecking: 15, TransactSavings: 15, Amalgamate: 15, WriteCheck: 15, SendPayment: 25}

const (
	amountMax = 100
	tooLarge  = 1 << 50 // more than any balance will ever be
)

// generator makes the events, the same for equal parameters and seed.
type generator struct {
	r               *rng.RNG
	zipf            *rng.Zipf // of those outside of the hot spot
	scatter         rng.Scatter
	customers, hot  int
	hotShare, abort float64
}

func newGenerator(c *program.Config) *generator {
	customers, hot := c.Int("customers"), c.Int("hot")
	g := &generator{
		r: rng.New(c.Seed, 1), zipf: rng.NewZipf(customers-hot, c.Float("skew")), scatter: rng.NewScatter(customers),
		customers: customers, hot: hot, abort: c.Float("abort") / 100,
	}
	if hot > 0 {
		g.hotShare = c.Float("hot-share") / 100
	}
	return g
}

func (g *generator) customer() uint32 {
	if g.hotShare > 0 && g.r.Float64() < g.hotShare {
		return uint32(g.scatter.Index(g.r.IntN(g.hot)))
	}
	return uint32(g.scatter.Index(g.hot + g.zipf.Draw(g.r)))
}

func (g *generator) kind() Kind {
	x := g.r.Float64() * 100
	for k, share := range mix[:SendPayment] {
		if x < share {
			return Kind(k)
		}
		x -= share
	}
	return SendPayment
}

func (g *generator) next() (Kind, Request) {
	k := g.kind()
	r := Request{Customer: g.customer()}
	if k == Amalgamate || k == SendPayment {
		if r.Other = g.customer(); r.Other == r.Customer {
			r.Other = (r.Other + 1) % uint32(g.customers)
		}
	}
	if k == Balance || k == Amalgamate {
		return k, r
	}
	r.Amount = int64(1 + g.r.IntN(amountMax))
	if k == TransactSavings && g.r.IntN(2) == 0 {
		r.Amount = -r.Amount
	}
	if k != WriteCheck && g.r.Float64() < g.abort {
		r.Amount = tooLarge
		if k != SendPayment {
			r.Amount = -tooLarge
		}
	}
	return k, r
}

func newInstance(c *program.Config) (*program.Instance, error) {
	customers := c.Int("customers")
	if c.Int("hot") >= customers {
		return nil, &program.ParamError{Param: "hot", Value: c.Text("hot"), Allowed: "a hot spot has fewer customers than there are"}
	}
	a := New(customers, c.Cost("complexity"))
	g := newGenerator(c)
	brought := int64(0)
	a.Events[DepositChecking].Each(func(amount int64) { brought += amount })
	a.Events[TransactSavings].Each(func(amount int64) { brought += amount })
	a.Events[WriteCheck].Each(func(amount int64) { brought -= amount })
	return &program.Instance{
		App:   a.App,
		Total: c.Events,
		Source: program.Generated(c.Events, func(f *txn.Feed) {
			k, r := g.next()
			a.Events[k].Push(f, r)
		}),
		Check: func() error { return a.check(customers, brought) },
		Loops: loops(c),
	}, nil
}
