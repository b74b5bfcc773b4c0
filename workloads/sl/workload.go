package sl

import (
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Program is the workload.
var Program = program.Program{
	Name:   "sl",
	About:  "streaming ledger: deposits and conditional transfers between accounts and book entries",
	Events: 1_000_000,
	Params: []program.Param{
		{Name: "keys", Kind: program.Int, Default: "100000", Min: 2, Max: 50_000_000, Usage: "accounts and book entries, each"},
		{Name: "skew", Kind: program.Float, Default: "0", Min: 0, Max: 2, Usage: "zipf exponent of the keys"},
		{Name: "deposit", Kind: program.Float, Default: "25", Min: 0, Max: 100, Usage: "deposits among the events, in percent"},
		{Name: "abort", Kind: program.Float, Default: "0", Min: 0, Max: 100, Usage: "transfers that cannot be covered, in percent"},
		{Name: "hot", Kind: program.Float, Default: "0", Min: 0, Max: 100, Usage: "events among a few keys of their own, in percent"},
		{Name: "hot-keys", Kind: program.Int, Default: "16", Min: 2, Max: 1_000_000, Usage: "how many keys those are, of each table"},
		{Name: "hot-abort", Kind: program.Float, Default: "0", Min: 0, Max: 100, Usage: "transfers among them that cannot be covered, in percent"},
		fees,
		program.Complexity,
	},
	New: newInstance,
}

// fees is the flag that both forms of the ledger have.
var fees = program.Param{
	Name: "fee", Kind: program.Text, Default: "none", OneOf: []string{"none", "update", "merge"},
	Usage: "what a transfer does to one account for all fees: none, update (orders all transfers), merge (commutative)",
}

const (
	amount   = 100
	tooLarge = 1 << 40 // more than any balance will ever be
)

// maker makes the next event, a deposit or a transfer.
type maker interface {
	next() Event
}

// generator makes the events, the same for equal parameters and seed.
type generator struct {
	r              *rng.RNG
	zipf           *rng.Zipf
	scatter        rng.Scatter
	keys           int
	offset         uint32 // of the first key
	deposit, abort float64

	hot      *generator // of the events among a few keys of their own, or nil
	hotShare float64
}

func newGenerator(c *program.Config) maker {
	keys := c.Int("keys")
	g := &generator{
		r: rng.New(c.Seed, 1), zipf: rng.NewZipf(keys, c.Float("skew")), scatter: rng.NewScatter(keys), keys: keys,
		deposit: c.Float("deposit") / 100, abort: c.Float("abort") / 100, hotShare: c.Float("hot") / 100,
	}
	if hot := hotKeys(c); hot > 0 {
		g.hot = &generator{
			r: g.r, zipf: rng.NewZipf(hot, 0), scatter: rng.NewScatter(hot), keys: hot, offset: uint32(keys),
			deposit: g.deposit, abort: c.Float("hot-abort") / 100,
		}
	}
	return g
}

// rows returns the number of keys of each table.
func rows(c *program.Config) int { return c.Int("keys") + hotKeys(c) }

// hotKeys returns how many keys each table has beyond those that all events draw.
func hotKeys(c *program.Config) int {
	if !c.Has("hot") || c.Float("hot") == 0 {
		return 0
	}
	return c.Int("hot-keys")
}

func (g *generator) key() uint32 { return g.offset + uint32(g.scatter.Index(g.zipf.Draw(g.r))) }

// two returns two different keys.
func (g *generator) two() (a, b uint32) {
	a, b = g.key(), g.key()
	if a == b {
		b = g.offset + (b-g.offset+1)%uint32(g.keys)
	}
	return a, b
}

func (g *generator) next() (e Event) {
	if g.hot != nil && g.r.Float64() < g.hotShare {
		return g.hot.next()
	}
	if g.r.Float64() < g.deposit {
		return Event{IsDeposit: true, Deposit: Deposit{g.key(), g.key(), amount}}
	}
	t := &e.Transfer
	t.From, t.To = g.two()
	t.FromBook, t.ToBook = g.two()
	t.Amount, t.BookAmount = amount, amount
	if g.r.Float64() < g.abort {
		t.Amount, t.BookAmount = tooLarge, tooLarge
	}
	return e
}

func newInstance(c *program.Config) (*program.Instance, error) {
	return instance("sl", c, newGenerator), nil
}

// instance is a ledger over the events that makers from newMaker make, each the same.
func instance(name string, c *program.Config, newMaker func(*program.Config) maker) *program.Instance {
	keys := rows(c)
	a := declare(name, keys, c.Cost("complexity"), c.Text("fee"))
	g := newMaker(c)
	deposited := int64(0)
	a.Deposits.Each(func(amount int64) { deposited += amount })
	if c.Has("work") && c.Text("work") == oddPhases {
		a.declareIdle()
		a.idleDeposits.Each(func(amount int64) { deposited += amount })
	}
	return &program.Instance{
		App:   a.App,
		Total: c.Events,
		Source: program.Generated(c.Events, func(f *txn.Feed) {
			switch e := g.next(); {
			case e.Idle && e.IsDeposit:
				a.idleDeposits.Push(f, e.Deposit)
			case e.Idle:
				a.idleTransfers.Push(f, e.Transfer)
			case e.IsDeposit:
				a.Deposits.Push(f, e.Deposit)
			default:
				a.Transfers.Push(f, e.Transfer)
			}
		}),
		Check: func() error { return a.check(keys, deposited) },
		Loops: loops(c, newMaker),
	}
}
