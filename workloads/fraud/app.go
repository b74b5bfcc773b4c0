package fraud

import (
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Payment is one with a card at a merchant. Whether it is fraud is known later, and recorded with it here.
type Payment struct {
	Card, Merchant uint32
	Cents          uint32
	Minute         uint32
	Fraud          bool
}

// Card is what payments that were accepted tell of a card.
type Card struct {
	Paid  uint32 // how many
	Mean  uint32 // cents, of the last ones
	Last  uint32 // minute
	Burst uint32 // payments lately, in sixteenths: half of them are forgotten each ten minutes
}

// Merchant counts payments that were accepted and those of them that were fraud.
type Merchant struct{ Payments, Frauds uint32 }

// Answer is what became of a payment.
type Answer struct{ Refused, Fraud bool }

// features are what a tree looks at.
type features [3]uint32

const (
	ratio = iota // amount over the mean of the card, in percent
	burst        // payments of the card lately, this one included, in sixteenths
	risk         // payments of the merchant that were fraud, in thousandths
)

// Node is a place in a tree: features below the limit go on at Less, others at More.
type Node struct {
	Feature    int
	Limit      uint32
	Less, More int // places in the tree, or accept or refuse
}

const (
	accept = -1
	refuse = -2
)

// Tree decides about payments, from its first node on.
type Tree []Node

func (t Tree) refuses(f features) bool {
	at := 0
	for at >= 0 {
		if n := &t[at]; f[n.Feature] < n.Limit {
			at = n.Less
		} else {
			at = n.More
		}
	}
	return at == refuse
}

// The trees, by what they look for.
var (
	// amounts refuses payments that are far larger than usual.
	amounts = Tree{{ratio, 400, accept, refuse}}
	// bursts refuses many payments in a row, too, however small.
	bursts = Tree{{ratio, 400, 1, refuse}, {burst, 40, accept, refuse}}
)

const newMean = 3000 // cents, of cards that nobody used

// App is the declared application.
type App struct {
	App       *txn.App
	Cards     *txn.Table[uint32, Card]
	Merchants *txn.Table[uint32, Merchant]
	Payments  *txn.Event[Payment, Answer]
}

// New declares the application with cards 0 to cards-1 and merchants 0 to merchants-1.
func New(cards, merchants int, cost program.Cost) *App {
	app := txn.New("fraud")
	a := &App{App: app, Cards: txn.NewTable[uint32, Card](app, "cards"), Merchants: txn.NewTable[uint32, Merchant](app, "merchants")}
	for k := range uint32(cards) {
		a.Cards.Load(k, Card{Mean: newMean})
	}
	for k := range uint32(merchants) {
		a.Merchants.Load(k, Merchant{})
	}
	tree := txn.NewLogic(app, "tree", txn.Variant[Tree]{Name: "amounts", Value: amounts}, txn.Variant[Tree]{Name: "bursts", Value: bursts})
	suspicious := app.Reason("suspicious")
	at := txn.NewParam(a.Merchants, "merchant")
	pay := txn.Update(a.Cards, "pay", func(c txn.Ctx, p Payment, card *Card) txn.Verdict {
		cost.Spend(c)
		m, _ := at.Get(c)
		next := card.after(p)
		if tree.Now().refuses(card.features(p, m, next)) {
			return suspicious
		}
		*card = next
		return txn.OK
	})
	tally := txn.Update(a.Merchants, "tally", func(_ txn.Ctx, p Payment, m *Merchant) txn.Verdict {
		m.Payments++
		if p.Fraud {
			m.Frauds++
		}
		return txn.OK
	})
	a.Payments = txn.On(app, "payment", func(plan *txn.Plan, p Payment) {
		pay.At(plan, p.Card, p, at.Of(plan, p.Merchant))
		tally.At(plan, p.Merchant, p)
	}, func(out txn.Outcome, p Payment) Answer { return Answer{!out.Committed(), p.Fraud} })
	return a
}

// after returns the card after a payment.
func (c Card) after(p Payment) Card {
	halved := min((p.Minute-c.Last)/10, 16)
	return Card{Paid: c.Paid + 1, Mean: (7*c.Mean + p.Cents) / 8, Last: p.Minute, Burst: min(c.Burst>>halved+16, 1<<16)}
}

func (c Card) features(p Payment, m Merchant, next Card) (f features) {
	f[ratio] = uint32(min(uint64(p.Cents)*100/uint64(max(c.Mean, 1)), 1<<20))
	f[burst] = next.Burst
	f[risk] = uint32(uint64(m.Frauds) * 1000 / uint64(max(m.Payments, 1)))
	return f
}
