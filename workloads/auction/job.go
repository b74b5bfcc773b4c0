package auction

import (
	"errors"
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/operators"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/workloads/nexmark"
)

// Program is the auction house for a command line.
var Program = job.Program{
	Program: program.Program{
		Name: "auction", About: "an auction house whose bids settle through transactions on money and goods", Events: 500_000,
		Params: []program.Param{
			{Name: "rate", Usage: "events per second of event time", Default: "10000", Kind: program.Int, Min: 1, Max: 1e9},
			{Name: "stream", Usage: "inorder, or adversarial: bursts, 10 % of the events out of order, 1 % late", Default: "inorder", Kind: program.Text, OneOf: []string{"inorder", "adversarial"}},
		},
	},
	Jobs: []job.Named{{Name: "house", About: "bids hold and release money, windows of auctions settle, and sales are summed up"}},
	Open: open,
}

// Turnover is what was sold in ten seconds.
type Turnover struct{ Start, Sales, Cents int64 }

const shortWindow = 10 * time.Second

// sourceOf returns the events and by how much they are out of order.
func sourceOf(c *program.Config) operators.Input[nexmark.Event] {
	adversarial := c.Text("stream") == "adversarial"
	in := operators.Input[nexmark.Event]{
		Total: int64(c.Events), Fill: nexmark.NewGenerator(c.Seed, int64(c.Int("rate")), adversarial).Fill,
		Time: func(e *nexmark.Event) int64 { return e.Time },
	}
	if adversarial {
		in.Disorder = nexmark.DisorderMax
	}
	return in
}

// open makes the job. To be verified, the transactions are compared with the serial model as they run.
func open(_ string, c *program.Config, wanted job.Wanted) (*job.Instance, error) {
	h, in := NewHouse(), sourceOf(c)
	settle, err := job.NewTransactions(h.App, h.Actions, engine.Options{Verify: wanted.Verify})
	if err != nil {
		return nil, err
	}
	j := operators.New("auction/house")
	events := operators.From(j, "events", in)
	actions := operators.Map(events, "action", actionOf)
	auctions := operators.Filter(events, "auctions", func(e *nexmark.Event) bool { return e.Kind == nexmark.KindAuction })
	results := operators.Transact("settle", settle, actions, closings(auctions))
	sold := operators.Filter(results, "sold", func(r *Result) bool { return r.Kind == Close && r.Why == "" && r.Person != 0 })
	told := operators.Digest(results, "results")
	told.Keep = wanted.Verify
	if wanted.Output != "" {
		operators.Lines(results, "output", wanted.Output, operators.JSON[Result])
	}
	turnover := operators.Digest(operators.Aggregate(operators.All(sold), "turnover", operators.Tumbling(shortWindow), sales, turnoverOf), "turnovers")
	turnover.Keep = wanted.Verify
	g, err := j.Plan()
	if err != nil {
		return nil, err
	}
	var m engine.Metrics
	return &job.Instance{
		Plan: g,
		Results: func() (int64, string) {
			return told.Count() + turnover.Count(), told.Hash()
		},
		Close: func() ([]string, error) {
			var err error
			if m, err = settle.Close(); err == nil {
				err = h.Check()
			}
			return []string{fmt.Sprintf("%d transactions committed, %d aborted; batches by strategy %v", m.Committed, m.Aborted, m.Strategies)}, err
		},
		Verify: func() (int64, error) {
			if !m.Verified {
				return 0, errors.New("the transactions were not compared with the serial model")
			}
			all := eventsOf(in)
			began := clock.NowNanos()
			model := newModel(all, in.Disorder)
			return clock.NowNanos() - began, model.compare(h, told.Items(), turnover.Items())
		},
	}, nil
}

func actionOf(e *nexmark.Event) Action {
	switch e.Kind {
	case nexmark.KindPerson:
		return Action{Kind: Join, Person: e.Person().ID}
	case nexmark.KindAuction:
		a := e.Auction()
		return Action{Kind: Open, Auction: a.ID, Person: a.Seller, Price: a.Reserve}
	case nexmark.KindBid:
	}
	b := e.Bid()
	return Action{Kind: Bid, Auction: b.Auction, Person: b.Bidder, Price: b.Price}
}

// closings returns an action for each auction at the end of its window.
func closings(auctions operators.Stream[nexmark.Event]) operators.Stream[Action] {
	byID := operators.KeyBy(auctions, func(e *nexmark.Event) int64 { return e.Auction().ID })
	return operators.Until(byID, "closing", func(_ int64, _ *struct{}, e *nexmark.Event, _ int64) int64 {
		return e.Auction().Expires
	}, func(id int64, _ *struct{}, emit func(Action)) { emit(Action{Kind: Close, Auction: id}) })
}

type sale struct{ n, cents int64 }

var sales = operators.Aggregator[Result, sale]{
	Add:   func(acc *sale, r *Result) { acc.n, acc.cents = acc.n+1, acc.cents+r.Price },
	Merge: func(into, from *sale) { into.n, into.cents = into.n+from.n, into.cents+from.cents },
}

func turnoverOf(_ uint64, w operators.Span, acc *sale) Turnover {
	return Turnover{w.Start, acc.n, acc.cents}
}

// Check verifies that no money and no goods came or went.
func (h *House) Check() error {
	money, held, goods, persons, lots, bid := int64(0), int64(0), int64(0), int64(0), int64(0), int64(0)
	for id, a := range h.Accounts.All() {
		if a.Free < 0 || a.Held < 0 {
			return fmt.Errorf("account %d has %d cents, and %d held", id, a.Free, a.Held)
		}
		money, held, persons = money+a.Free+a.Held, held+a.Held, persons+1
	}
	for _, n := range h.Goods.All() {
		goods += n
	}
	for _, l := range h.Lots.All() {
		lots, bid = lots+1, bid+l.Price
	}
	switch {
	case money != persons*moneyAtStart:
		return fmt.Errorf("%d persons have %d cents: each came with %d", persons, money, int64(moneyAtStart))
	case held != bid:
		return fmt.Errorf("%d cents are held, the bids for open lots are %d", held, bid)
	case goods+lots != persons*goodsAtStart:
		return fmt.Errorf("%d persons have %d goods and %d are in lots: each came with %d", persons, goods, lots, goodsAtStart)
	}
	return nil
}
