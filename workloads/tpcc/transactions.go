package tpcc

import (
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// sum declares the operation that adds to a sum of the year, and returns what
// lists it. As an update it puts all payments of a warehouse in one chain.
func sum(table *txn.Table[uint32, int64], name string, cost program.Cost, ytd string) func(p *txn.Plan, k uint32, cents int64) {
	if ytd == "merge" {
		op := txn.Merge(table, name, func(c txn.Ctx, cents int64) (int64, txn.Verdict) {
			cost.Spend(c)
			return cents, txn.OK
		}, func(sum *int64, cents int64) { *sum += cents })
		return func(p *txn.Plan, k uint32, cents int64) { op.At(p, k, cents) }
	}
	op := txn.Update(table, name, func(c txn.Ctx, cents int64, sum *int64) txn.Verdict {
		cost.Spend(c)
		*sum += cents
		return txn.OK
	})
	return func(p *txn.Plan, k uint32, cents int64) { op.At(p, k, cents) }
}

// namedKey is the key of a customer that an event names.
func (a *App) namedKey(c txn.Ctx, district uint32) (uint64, txn.Verdict) {
	customer, found := a.named.Get(c)
	if !found {
		return 0, txn.Missing
	}
	return key(district, customer), txn.OK
}

func (a *App) declarePayment(cost program.Cost, ytd string) {
	toWarehouse, toDistrict := sum(a.WarehouseYTD, "add to warehouse", cost, ytd), sum(a.DistrictYTD, "add to district", cost, ytd)
	pay := txn.Update(a.Customers, "pay", func(c txn.Ctx, e Payment, row *Customer) txn.Verdict {
		cost.Spend(c)
		row.pay(e.District, e.Cents)
		return txn.OK
	})
	payNamed := txn.Late(pay, func(c txn.Ctx, e Payment) (uint64, txn.Verdict) { return a.namedKey(c, e.Who.District) })
	note := txn.Insert(a.History, "note payment", func(c txn.Ctx, e Payment, h *History) txn.Verdict {
		cost.Spend(c)
		customer := key(e.Who.District, e.Who.Customer)
		if e.Who.Customer == 0 {
			customer, _ = a.namedKey(c, e.Who.District)
		}
		*h = History{Customer: customer, District: e.District, Cents: e.Cents, Time: e.Time}
		return txn.OK
	})
	a.Payment = txn.On(a.App, "payment", func(p *txn.Plan, e Payment) {
		toWarehouse(p, e.District/districts, e.Cents)
		toDistrict(p, e.District, e.Cents)
		if e.Who.Customer != 0 {
			pay.At(p, key(e.Who.District, e.Who.Customer), e)
			note.At(p, e.Number, e)
			return
		}
		name := a.named.AtStart(p, key(e.Who.District, e.Who.Name))
		payNamed.Then(p, e, name)
		note.At(p, e.Number, e, name)
	}, func(out txn.Outcome, e Payment) Paid {
		if !out.Committed() {
			return Paid{}
		}
		c, ok := pay.After(out)
		if !ok {
			c, _ = payNamed.After(out)
		}
		return Paid{e.Cents, c.Balance}
	})
}

// delivery is what the operations of a delivery need in one of its districts.
type delivery struct {
	district uint32
	carrier  uint8
	time     int64
}

// declareDelivery declares the delivery of the oldest new order of each district
// of a warehouse. Where there is none, its number is one that no order has, and
// the lenient operations do nothing.
func (a *App) declareDelivery(cost program.Cost) {
	oldest := txn.NewParam(a.Oldest, "oldest new order")
	oldestKey := func(c txn.Ctx, e delivery) (uint64, txn.Verdict) {
		o, _ := oldest.Get(c)
		return key(e.district, o), txn.OK
	}
	oldestRead := func(c txn.Ctx, district uint32) (uint64, bool) {
		o, found := oldest.Get(c)
		return key(district, o), found
	}
	order := txn.NewLateParam(a.Orders, "order to deliver", oldestRead)
	lines := txn.NewLateParam(a.Lines, "lines to deliver", oldestRead)
	carry := txn.Late(txn.Update(a.Orders, "carry", func(c txn.Ctx, e delivery, o *Order) txn.Verdict {
		cost.Spend(c)
		o.Carrier = e.carrier
		return txn.OK
	}).Lenient(), oldestKey)
	stamp := txn.Late(txn.Update(a.Lines, "stamp lines", func(c txn.Ctx, e delivery, l *Lines) txn.Verdict {
		cost.Spend(c)
		l.Delivered = e.time
		return txn.OK
	}).Lenient(), oldestKey)
	credit := txn.Late(txn.Update(a.Customers, "credit", func(c txn.Ctx, _ delivery, row *Customer) txn.Verdict {
		cost.Spend(c)
		l, _ := lines.Get(c)
		row.credit(l.cents())
		return txn.OK
	}).Lenient(), func(c txn.Ctx, e delivery) (uint64, txn.Verdict) {
		o, _ := order.Get(c) // nobody is customer 0
		return key(e.district, o.Customer), txn.OK
	})
	done := txn.Late(txn.Delete(a.NewOrders, "no new order any more", func(c txn.Ctx, _ delivery, _ bool) txn.Verdict {
		cost.Spend(c)
		return txn.OK
	}).Lenient(), oldestKey)
	next := txn.Update(a.Oldest, "next new order", func(c txn.Ctx, _ delivery, o *uint32) txn.Verdict {
		cost.Spend(c)
		if _, found := order.Get(c); found {
			*o++
		}
		return txn.OK
	})
	a.Delivery = txn.On(a.App, "delivery", func(p *txn.Plan, e Delivery) {
		for i := range uint32(districts) {
			d := delivery{e.Warehouse*districts + i, e.Carrier, e.Time}
			start := oldest.AtStart(p, d.district)
			carry.Then(p, d, start)
			stamp.Then(p, d, start)
			credit.Then(p, d, order.Then(p, d.district, start), lines.Then(p, d.district, start))
			done.Then(p, d, start)
			next.At(p, d.district, d, order.Then(p, d.district, start))
		}
	}, func(out txn.Outcome, _ Delivery) Delivered {
		var sum Delivered
		for _, l := range stamp.All(out) {
			if l.N > 0 {
				sum.Orders++
			}
			sum.Cents += l.cents()
		}
		return sum
	})
}

func (a *App) declareOrderStatus(cost program.Cost) {
	last := txn.NewParam(a.LastOrders, "last order of a customer")
	lastNamed := txn.NewLateParam(a.LastOrders, "last order of a name", func(c txn.Ctx, district uint32) (uint64, bool) {
		k, v := a.namedKey(c, district)
		return k, v == txn.OK
	})
	customer := look(a.Customers, "look at customer", cost)
	customerNamed := txn.Late(txn.Get(a.Customers, "look at customer of a name", func(c txn.Ctx, _ uint32, _ Customer, found bool) txn.Verdict {
		cost.Spend(c)
		if !found {
			return txn.Missing
		}
		return txn.OK
	}), a.namedKey)
	lastKey := func(c txn.Ctx, who Who) (uint64, txn.Verdict) {
		var o uint32
		if who.Customer != 0 {
			o, _ = last.Get(c)
		} else {
			o, _ = lastNamed.Get(c)
		}
		return key(who.District, o), txn.OK
	}
	order := txn.Late(txn.Get(a.Orders, "look at order", func(c txn.Ctx, _ Who, _ Order, _ bool) txn.Verdict {
		cost.Spend(c)
		return txn.OK
	}), lastKey)
	lines := txn.Late(txn.Get(a.Lines, "look at lines", func(c txn.Ctx, _ Who, _ Lines, _ bool) txn.Verdict {
		cost.Spend(c)
		return txn.OK
	}), lastKey)
	a.OrderStatus = txn.On(a.App, "order status", func(p *txn.Plan, e OrderStatus) {
		who := e.Who
		if who.Customer != 0 {
			k := key(who.District, who.Customer)
			customer.At(p, k, 0)
			number := last.AtStart(p, k)
			order.Then(p, who, number)
			lines.Then(p, who, number)
			return
		}
		name := a.named.AtStart(p, key(who.District, who.Name))
		customerNamed.Then(p, who.District, name)
		order.Then(p, who, lastNamed.Then(p, who.District, name))
		lines.Then(p, who, lastNamed.Then(p, who.District, name))
	}, func(out txn.Outcome, _ OrderStatus) Status {
		c, ok := customer.Before(out)
		if !ok {
			c, _ = customerNamed.Before(out)
		}
		o, _ := order.Before(out)
		l, _ := lines.Before(out)
		return Status{c.Balance, o.Carrier, l}
	})
}

// place is the place of a line among the recent ones of a district.
type place struct{ of, n uint32 }

// declareStockLevel declares the question for low stock: the district's next
// number tells the recent orders, their lines tell the items.
func (a *App) declareStockLevel(cost program.Cost) {
	sold := txn.NewLateParam(a.Lines, "recent lines", func(c txn.Ctx, slot place) (uint64, bool) {
		o, ok := slotOrder(a.number(c), slot.n)
		return key(slot.of, o), ok
	})
	left := txn.NewLateParam(a.Stock, "stock of a recent item", func(c txn.Ctx, line place) (uint64, bool) {
		l, _ := sold.Get(c)
		return key(line.of, l.Line[line.n].Item), line.n < uint32(l.N)
	})
	count := txn.Upsert(a.Levels, "count low stock", func(c txn.Ctx, threshold int64, level *int64, _ bool) txn.Verdict {
		cost.Spend(c)
		var lines [recent]Lines
		i := 0
		for l := range sold.All(c) {
			lines[i] = l
			i++
		}
		var quantities [recent * linesMax]int64
		i = 0
		for s, found := range left.All(c) {
			if quantities[i] = s.Quantity; !found {
				quantities[i] = -1
			}
			i++
		}
		*level = lowStock(&lines, &quantities, threshold)
		return txn.OK
	})
	a.StockLevel = txn.On(a.App, "stock level", func(p *txn.Plan, e StockLevel) {
		var reads [recent + recent*linesMax]txn.Arg
		start := a.district.AtStart(p, e.District)
		for i := range uint32(recent) {
			lines := sold.Then(p, place{e.District, i}, start)
			reads[i] = lines
			for j := range uint32(linesMax) {
				reads[recent+i*linesMax+j] = left.Then(p, place{e.District / districts, j}, lines)
			}
		}
		count.At(p, e.District, e.Threshold, reads[:]...)
	}, func(out txn.Outcome, _ StockLevel) int64 {
		level, _ := count.After(out)
		return level
	})
}
