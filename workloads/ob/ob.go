package ob

import (
	"fmt"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Program is the workload.
var Program = program.Program{
	Name:   "ob",
	About:  "online bidding: bids on goods, price alerts and top-ups of many goods at once",
	Events: 200_000,
	Params: []program.Param{
		{Name: "keys", Kind: program.Int, Default: "100000", Min: 32, Max: 50_000_000, Usage: "goods"},
		{Name: "skew", Kind: program.Float, Default: "0", Min: 0, Max: 2, Usage: "zipf exponent of the goods"},
		{Name: "buying", Kind: program.Float, Default: "25", Min: 0, Max: 100, Usage: "bids among the events, in percent; alerts and top-ups share the rest"},
		{Name: "abort", Kind: program.Float, Default: "0", Min: 0, Max: 100, Usage: "bids below any price, in percent"},
		program.Complexity,
	},
	New: newInstance,
}

const (
	openingQty   = 100
	openingPrice = 50
	manyItems    = 20 // goods of an alert or a top-up
)

// Good is what is for sale.
type Good struct{ Price, Qty int64 }

// Bid offers a price for a number of pieces of one good.
type Bid struct {
	Item       uint32
	Price, Qty int64
}

// Alert sets the prices of goods.
type Alert struct {
	Items  [manyItems]uint32
	Prices [manyItems]int64
}

// TopUp adds to the stock of goods.
type TopUp struct {
	Items [manyItems]uint32
	Qty   int64 // to each
}

// Sale is the result of a bid.
type Sale struct {
	Bought int64
	Left   int64
	Why    string
}

// App is the declared application.
type App struct {
	App    *txn.App
	Goods  *txn.Table[uint32, Good]
	Bids   *txn.Event[Bid, Sale]
	Alerts *txn.Event[Alert, bool]
	TopUps *txn.Event[TopUp, int64]
}

// New declares the application with goods 0 to goods-1.
func New(goods int, cost program.Cost) *App {
	app := txn.New("ob")
	a := &App{App: app, Goods: txn.NewTable[uint32, Good](app, "goods")}
	for k := range uint32(goods) {
		a.Goods.Load(k, Good{openingPrice, openingQty})
	}
	low, scarce := app.Reason("bid below the price"), app.Reason("not enough in stock")
	buy := txn.Update(a.Goods, "buy", func(c txn.Ctx, b Bid, g *Good) txn.Verdict {
		cost.Spend(c)
		switch {
		case b.Price < g.Price:
			return low
		case b.Qty > g.Qty:
			return scarce
		}
		g.Qty -= b.Qty
		return txn.OK
	})
	price := txn.Update(a.Goods, "set price", func(c txn.Ctx, to int64, g *Good) txn.Verdict {
		cost.Spend(c)
		g.Price = to
		return txn.OK
	})
	add := txn.Update(a.Goods, "top up", func(c txn.Ctx, qty int64, g *Good) txn.Verdict {
		cost.Spend(c)
		g.Qty += qty
		return txn.OK
	})
	a.Bids = txn.On(app, "bid", func(p *txn.Plan, b Bid) { buy.At(p, b.Item, b) },
		func(out txn.Outcome, b Bid) Sale {
			if !out.Committed() {
				return Sale{Why: out.Reason()}
			}
			left, _ := buy.After(out)
			return Sale{Bought: b.Qty, Left: left.Qty}
		})
	a.Alerts = txn.On(app, "alert", func(p *txn.Plan, e Alert) {
		for i, item := range e.Items {
			price.At(p, item, e.Prices[i])
		}
	}, func(out txn.Outcome, _ Alert) bool { return out.Committed() })
	a.TopUps = txn.On(app, "top up", func(p *txn.Plan, e TopUp) {
		for _, item := range e.Items {
			add.At(p, item, e.Qty)
		}
	}, func(out txn.Outcome, e TopUp) int64 {
		if !out.Committed() {
			return 0
		}
		return e.Qty * manyItems
	})
	return a
}

// check verifies that no stock is negative and that what is left is what there
// was, plus what was added, less what was bought.
func (a *App) check(goods int, added, bought int64) error {
	sum := int64(0)
	for k, g := range a.Goods.All() {
		if g.Qty < 0 {
			return fmt.Errorf("goods[%d] has a stock of %d", k, g.Qty)
		}
		sum += g.Qty
	}
	if want := int64(goods)*openingQty + added - bought; sum != want {
		return fmt.Errorf("the goods' stocks sum to %d; opening, top-ups and sales make %d", sum, want)
	}
	return nil
}

// generator makes the events, the same for equal parameters and seed.
type generator struct {
	r             *rng.RNG
	zipf          *rng.Zipf
	scatter       rng.Scatter
	keys          int
	buying, abort float64
}

func newGenerator(c *program.Config) *generator {
	keys := c.Int("keys")
	return &generator{
		r: rng.New(c.Seed, 1), zipf: rng.NewZipf(keys, c.Float("skew")), scatter: rng.NewScatter(keys),
		keys: keys, buying: c.Float("buying") / 100, abort: c.Float("abort") / 100,
	}
}

func (g *generator) item() uint32 { return uint32(g.scatter.Index(g.zipf.Draw(g.r))) }

func (g *generator) bid() Bid {
	b := Bid{Item: g.item(), Price: int64(openingPrice + g.r.IntN(50)), Qty: int64(1 + g.r.IntN(5))}
	if g.r.Float64() < g.abort {
		b.Price = -1
	}
	return b
}

// event returns one of the three kinds of events, the others nil.
func (g *generator) event() (b *Bid, a *Alert, t *TopUp) {
	x := g.r.Float64()
	switch {
	case x < g.buying:
		bid := g.bid()
		return &bid, nil, nil
	case x < g.buying+(1-g.buying)/2:
		a = &Alert{}
		for i := range a.Items {
			a.Items[i], a.Prices[i] = g.item(), int64(openingPrice/2+g.r.IntN(openingPrice))
		}
		return nil, a, nil
	default:
		t = &TopUp{Qty: int64(1 + g.r.IntN(3))}
		for i := range t.Items {
			t.Items[i] = g.item()
		}
		return nil, nil, t
	}
}

func newInstance(c *program.Config) (*program.Instance, error) {
	a := New(c.Int("keys"), c.Cost("complexity"))
	g := newGenerator(c)
	var added, bought int64
	a.Bids.Each(func(s Sale) { bought += s.Bought })
	a.TopUps.Each(func(n int64) { added += n })
	return &program.Instance{
		App:   a.App,
		Total: c.Events,
		Source: program.Generated(c.Events, func(f *txn.Feed) {
			switch b, e, t := g.event(); {
			case b != nil:
				a.Bids.Push(f, *b)
			case e != nil:
				a.Alerts.Push(f, *e)
			default:
				a.TopUps.Push(f, *t)
			}
		}),
		Check: func() error { return a.check(c.Int("keys"), added, bought) },
		Loops: []program.Loop{{Name: "go maps", Prepare: func() func() { return overMap(c) }}},
	}, nil
}

func overMap(c *program.Config) func() {
	cost := c.Cost("complexity")
	goods := map[uint32]Good{}
	for k := range uint32(c.Int("keys")) {
		goods[k] = Good{openingPrice, openingQty}
	}
	g := newGenerator(c)
	var events []func() // what each event does; made before the clock starts
	for range c.Events {
		b, a, t := g.event()
		events = append(events, func() { apply(goods, b, a, t, cost) })
	}
	return func() {
		for _, e := range events {
			e()
		}
	}
}

func apply(goods map[uint32]Good, b *Bid, a *Alert, t *TopUp, cost program.Cost) {
	switch {
	case b != nil:
		cost.SpendTimes(1)
		if g := goods[b.Item]; b.Price >= g.Price && b.Qty <= g.Qty {
			g.Qty -= b.Qty
			goods[b.Item] = g
		}
	case a != nil:
		cost.SpendTimes(manyItems)
		for i, item := range a.Items {
			g := goods[item]
			g.Price = a.Prices[i]
			goods[item] = g
		}
	default:
		cost.SpendTimes(manyItems)
		for _, item := range t.Items {
			g := goods[item]
			g.Qty += t.Qty
			goods[item] = g
		}
	}
}
