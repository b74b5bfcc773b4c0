package auction

import "github.com/heddle-stream/heddle/txn"

// Kind is what an action does.
type Kind uint8

// The kinds of actions.
const (
	Join Kind = iota
	Open
	Bid
	Close
)

// Action is an event of the transactions.
type Action struct {
	Kind    Kind
	Auction int64
	Person  int64 // who joins, sells or bids
	Price   int64 // the reserve of what is opened, or what is bid, in cents
}

// Result is what became of an action.
type Result struct {
	Kind    Kind
	Auction int64
	Person  int64 // who acted; of what was closed, the winner, or 0
	Price   int64 // that was bid, or paid
	Why     string
}

// Account is the money of a person in cents.
type Account struct{ Free, Held int64 }

// Lot is an auction that is open.
type Lot struct {
	Seller, Reserve int64
	Bidder, Price   int64 // of the highest bid, or 0
}

// What somebody who joins gets.
const (
	moneyAtStart = 100_000_000 // cents
	goodsAtStart = 20
)

// House is the tables of an auction house and the events that change them.
type House struct {
	App      *txn.App
	Accounts *txn.Table[int64, Account]
	Lots     *txn.Table[int64, Lot]
	Goods    *txn.Table[int64, int64]
	Actions  *txn.Event[Action, Result]
}

// NewHouse declares an empty auction house.
func NewHouse() *House {
	app := txn.New("auction")
	h := &House{
		App: app, Accounts: txn.NewTable[int64, Account](app, "accounts"),
		Lots: txn.NewTable[int64, Lot](app, "lots"), Goods: txn.NewTable[int64, int64](app, "goods"),
	}
	join, open, bid, closing := h.joins(), h.opens(), h.bids(), h.closes()
	h.Actions = txn.On(app, "action", func(p *txn.Plan, a Action) {
		switch a.Kind {
		case Join:
			join.plan(p, a)
		case Open:
			open.plan(p, a)
		case Bid:
			bid.plan(p, a)
		case Close:
			closing.plan(p, a)
		}
	}, func(out txn.Outcome, a Action) Result {
		r := Result{a.Kind, a.Auction, a.Person, a.Price, out.Reason()}
		if a.Kind == Close {
			r.Person, r.Price = 0, 0
			if lot, ok := closing.take.Before(out); ok {
				r.Person, r.Price = lot.Bidder, lot.Price
			}
		}
		return r
	})
	return h
}

type joins struct {
	enter *txn.Op[int64, Account, Action]
	stock *txn.Op[int64, int64, Action]
}

func (h *House) joins() joins {
	return joins{
		enter: txn.Insert(h.Accounts, "enter", func(_ txn.Ctx, _ Action, a *Account) txn.Verdict {
			a.Free = moneyAtStart
			return txn.OK
		}),
		stock: txn.Upsert(h.Goods, "stock", func(_ txn.Ctx, _ Action, n *int64, _ bool) txn.Verdict {
			*n += goodsAtStart
			return txn.OK
		}),
	}
}

func (o *joins) plan(p *txn.Plan, a Action) {
	o.enter.At(p, a.Person, a)
	o.stock.At(p, a.Person, a)
}

type opens struct {
	give *txn.Op[int64, int64, Action]
	show *txn.Op[int64, Lot, Action]
}

func (h *House) opens() opens {
	nothing := h.App.Reason("nothing to sell")
	return opens{
		give: txn.Upsert(h.Goods, "give", func(_ txn.Ctx, _ Action, n *int64, _ bool) txn.Verdict {
			if *n == 0 {
				return nothing
			}
			*n--
			return txn.OK
		}),
		show: txn.Insert(h.Lots, "show", func(_ txn.Ctx, a Action, l *Lot) txn.Verdict {
			*l = Lot{Seller: a.Person, Reserve: a.Price}
			return txn.OK
		}),
	}
}

func (o *opens) plan(p *txn.Plan, a Action) {
	o.give.At(p, a.Person, a)
	o.show.At(p, a.Auction, a)
}

type bids struct {
	before  *txn.Param[int64, Lot]
	outbid  *txn.Op[int64, Lot, Action]
	release *txn.LateOp[int64, Account, Action]
	hold    *txn.Op[int64, Account, Action]
}

func (h *House) bids() bids {
	low, poor, nobody := h.App.Reason("too low"), h.App.Reason("insufficient funds"), h.App.Reason("no account")
	b := bids{before: txn.NewParam(h.Lots, "lot before the bid")}
	b.outbid = txn.Update(h.Lots, "outbid", func(_ txn.Ctx, a Action, l *Lot) txn.Verdict {
		if a.Price <= l.Price || a.Price < l.Reserve {
			return low
		}
		l.Bidder, l.Price = a.Person, a.Price
		return txn.OK
	})
	// Whose money is held is known when the lot is: without a bid before, the bidder's own
	// account is looked at.
	b.release = txn.Late(txn.Upsert(h.Accounts, "release", func(c txn.Ctx, _ Action, acc *Account, found bool) txn.Verdict {
		if !found {
			return nobody
		}
		lot, _ := b.before.Get(c)
		acc.Free, acc.Held = acc.Free+lot.Price, acc.Held-lot.Price
		return txn.OK
	}), func(c txn.Ctx, a Action) (int64, txn.Verdict) {
		if lot, _ := b.before.Get(c); lot.Bidder != 0 {
			return lot.Bidder, txn.OK
		}
		return a.Person, txn.OK
	})
	b.hold = txn.Upsert(h.Accounts, "hold", func(_ txn.Ctx, a Action, acc *Account, found bool) txn.Verdict {
		switch {
		case !found:
			return nobody
		case acc.Free < a.Price:
			return poor
		}
		acc.Free, acc.Held = acc.Free-a.Price, acc.Held+a.Price
		return txn.OK
	})
	return b
}

func (o *bids) plan(p *txn.Plan, a Action) {
	o.outbid.At(p, a.Auction, a)
	o.release.Then(p, a, o.before.AtStart(p, a.Auction))
	o.hold.At(p, a.Person, a)
}

type closes struct {
	before  *txn.Param[int64, Lot]
	take    *txn.Op[int64, Lot, Action]
	pay     *txn.LateOp[int64, Account, Action]
	earn    *txn.LateOp[int64, Account, Action]
	receive *txn.LateOp[int64, int64, Action]
}

func (h *House) closes() closes {
	c := closes{before: txn.NewParam(h.Lots, "lot at its end")}
	winner := func(ctx txn.Ctx, _ Action) (int64, txn.Verdict) {
		lot, _ := c.before.Get(ctx)
		if lot.Bidder == 0 { // goods and no money go back to the seller
			return lot.Seller, txn.OK
		}
		return lot.Bidder, txn.OK
	}
	seller := func(ctx txn.Ctx, _ Action) (int64, txn.Verdict) {
		lot, _ := c.before.Get(ctx)
		return lot.Seller, txn.OK
	}
	c.take = txn.Delete(h.Lots, "take", func(txn.Ctx, Action, Lot) txn.Verdict { return txn.OK })
	c.pay = txn.Late(txn.Update(h.Accounts, "pay", func(ctx txn.Ctx, _ Action, acc *Account) txn.Verdict {
		lot, _ := c.before.Get(ctx)
		acc.Held -= lot.Price
		return txn.OK
	}), winner)
	c.earn = txn.Late(txn.Update(h.Accounts, "earn", func(ctx txn.Ctx, _ Action, acc *Account) txn.Verdict {
		lot, _ := c.before.Get(ctx)
		acc.Free += lot.Price
		return txn.OK
	}), seller)
	c.receive = txn.Late(txn.Upsert(h.Goods, "receive", func(_ txn.Ctx, _ Action, n *int64, _ bool) txn.Verdict {
		*n++
		return txn.OK
	}), winner)
	return c
}

func (o *closes) plan(p *txn.Plan, a Action) {
	lot := o.before.AtStart(p, a.Auction)
	o.take.At(p, a.Auction, a)
	o.pay.Then(p, a, lot)
	o.earn.Then(p, a, lot)
	o.receive.Then(p, a, lot)
}
