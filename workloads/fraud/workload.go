package fraud

import (
	"fmt"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Program is the workload.
var Program = program.Program{
	Name:   "fraud",
	About:  "refuse card payments by a decision tree, which can be exchanged",
	Events: 400_000,
	Params: []program.Param{
		{Name: "cards", Kind: program.Int, Default: "50000", Min: 1, Max: 50_000_000, Usage: "cards"},
		{Name: "merchants", Kind: program.Int, Default: "1000", Min: 1, Max: 50_000_000, Usage: "merchants"},
		{Name: "drift", Kind: program.Int, Default: "100000", Min: 0, Max: 1e12, Usage: "payments after which fraudsters pay little and often instead of much"},
		{Name: "tree", Kind: program.Text, Default: "amounts", OneOf: []string{"amounts", "bursts"}, Usage: "decision tree at the start"},
		program.Complexity,
	},
	New: newInstance,
}

const (
	fraudShare = 0.04 // of payments
	perMinute  = 200  // payments
	thieves    = 4    // cards in the hands of fraudsters at a time
	robbed     = 400  // frauds after which these are other cards
)

// generator makes the events, the same for equal parameters and seed.
type generator struct {
	r                *rng.RNG
	seed             uint64
	cards, merchants int
	drift            int
	made, frauds     int
}

func newGenerator(c *program.Config) *generator {
	return &generator{r: rng.New(c.Seed, 1), seed: c.Seed, cards: c.Int("cards"), merchants: c.Int("merchants"), drift: c.Int("drift")}
}

func (g *generator) next() Payment {
	p := Payment{
		Card: uint32(g.r.IntN(g.cards)), Merchant: uint32(g.r.IntN(g.merchants)), Minute: uint32(g.made / perMinute),
		Cents: uint32(newMean/2 + g.r.IntN(newMean)), Fraud: g.r.Float64() < fraudShare,
	}
	if p.Fraud && g.made < g.drift {
		p.Cents = uint32(newMean * (8 + g.r.IntN(20)))
	} else if p.Fraud {
		p.Card = uint32(rng.Mix(g.seed^uint64(g.frauds/robbed)<<8^uint64(g.r.IntN(thieves))) % uint64(g.cards))
		p.Cents = uint32(100 + g.r.IntN(400))
		g.frauds++
	}
	g.made++
	return p
}

func newInstance(c *program.Config) (*program.Instance, error) {
	a := New(c.Int("cards"), c.Int("merchants"), c.Cost("complexity"))
	g := newGenerator(c)
	return &program.Instance{
		App:    a.App,
		Total:  c.Events,
		Source: program.Generated(c.Events, func(f *txn.Feed) { a.Payments.Push(f, g.next()) }),
		Check:  a.check,
		Score:  score,
		Loops:  loops(c),
	}, a.App.SetLogic("tree", c.Text("tree"))
}

// score tells how right an answer is: of frauds and refused payments those that are both.
func score(result []byte) (right, of int) {
	if len(result) != 2 || result[0] == 0 && result[1] == 0 {
		return 0, 0
	}
	return int(result[0] & result[1]), 1
}

// check verifies that cards paid as often as merchants were paid: nothing of a payment that was refused is left.
func (a *App) check() error {
	paid, got := uint64(0), uint64(0)
	for _, c := range a.Cards.All() {
		paid += uint64(c.Paid)
	}
	for k, m := range a.Merchants.All() {
		got += uint64(m.Payments)
		if m.Frauds > m.Payments {
			return fmt.Errorf("merchant %d had %d frauds among %d payments", k, m.Frauds, m.Payments)
		}
	}
	if paid != got {
		return fmt.Errorf("cards paid %d times, and merchants were paid %d times", paid, got)
	}
	return nil
}

// loops are serial programs over the same events.
func loops(c *program.Config) []program.Loop {
	cost := c.Cost("complexity")
	tree := map[string]Tree{"amounts": amounts, "bursts": bursts}[c.Text("tree")]
	return []program.Loop{{Name: "go maps", Prepare: func() func() {
		cards, merchants := map[uint32]Card{}, map[uint32]Merchant{}
		for k := range uint32(c.Int("cards")) {
			cards[k] = Card{Mean: newMean}
		}
		for k := range uint32(c.Int("merchants")) {
			merchants[k] = Merchant{}
		}
		g, events := newGenerator(c), make([]Payment, c.Events)
		for i := range events {
			events[i] = g.next()
		}
		return func() {
			for _, p := range events {
				cost.SpendTimes(1)
				card, m := cards[p.Card], merchants[p.Merchant]
				next := card.after(p)
				if tree.refuses(card.features(p, m, next)) {
					continue
				}
				m.Payments++
				if p.Fraud {
					m.Frauds++
				}
				cards[p.Card], merchants[p.Merchant] = next, m
			}
		}
	}}}
}
