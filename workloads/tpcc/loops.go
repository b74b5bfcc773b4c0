package tpcc

import "github.com/heddle-stream/heddle/program"

// loops are serial programs over the same events.
func loops(c *program.Config) []program.Loop {
	cost := c.Cost("complexity")
	return []program.Loop{{Name: "go maps", Prepare: func() func() {
		s, events := newState(c), list(c)
		return func() { s.run(events, cost) }
	}}}
}

func list(c *program.Config) []event {
	g := newGenerator(c)
	out := make([]event, c.Events)
	for i := range out {
		out[i] = g.next()
	}
	return out
}

// run does the events one after the other. It adds up the answers, so that
// looking for them is not for nothing.
func (s *state) run(events []event, cost program.Cost) {
	for i := range events {
		switch e := &events[i]; e.kind {
		case NewOrderKind:
			cost.SpendTimes(7 + len(e.order.Lines))
			s.newOrder(&e.order)
		case PaymentKind:
			cost.SpendTimes(4)
			s.payment(&e.payment)
		case DeliveryKind:
			cost.SpendTimes(5 * districts)
			s.delivery(&e.delivery)
		case OrderStatusKind:
			cost.SpendTimes(3)
			s.orderStatus(e.status.Who)
		default:
			cost.SpendTimes(1)
			s.stockLevel(&e.level)
		}
	}
}

func (s *state) newOrder(e *NewOrder) {
	w, d := e.District/districts, s.districts[e.District]
	o := key(e.District, d.Next)
	lines, local := Lines{N: uint8(len(e.Lines))}, true
	for i, l := range e.Lines {
		price, found := s.items[l.Item]
		if !found {
			s.rollback++
			return
		}
		lines.Line[i] = Line{l.Item, l.Warehouse, l.Quantity, l.Quantity * price}
	}
	for _, l := range e.Lines {
		at := key(l.Warehouse, l.Item)
		row := s.stock[at]
		row.take(l.Quantity, l.Warehouse != w)
		s.stock[at] = row
		local = local && l.Warehouse == w
	}
	s.orders[o] = Order{Customer: e.Customer, Lines: lines.N, Local: local, Entered: e.Time}
	s.lines[o] = lines
	s.newOrders[o] = true
	s.lastOrders[key(e.District, e.Customer)] = d.Next
	s.cents += total(lines.cents(), s.customers[key(e.District, e.Customer)].Discount, s.warehouses[w], d.Tax)
	d.Next++
	s.districts[e.District] = d
}

func (s *state) customer(who Who) uint64 {
	if who.Customer != 0 {
		return key(who.District, who.Customer)
	}
	return key(who.District, s.names[key(who.District, who.Name)])
}

func (s *state) payment(e *Payment) {
	s.warehouseYTD[e.District/districts] += e.Cents
	s.districtYTD[e.District] += e.Cents
	at := s.customer(e.Who)
	c := s.customers[at]
	c.pay(e.District, e.Cents)
	s.customers[at] = c
	s.history[e.Number] = History{Customer: at, District: e.District, Cents: e.Cents, Time: e.Time}
}

func (s *state) delivery(e *Delivery) {
	for i := range uint32(districts) {
		d := e.Warehouse*districts + i
		o := key(d, s.oldest[d])
		order, found := s.orders[o]
		if !found {
			continue
		}
		lines := s.lines[o]
		order.Carrier, lines.Delivered = e.Carrier, e.Time
		s.orders[o], s.lines[o] = order, lines
		at := key(d, order.Customer)
		c := s.customers[at]
		c.credit(lines.cents())
		s.customers[at] = c
		delete(s.newOrders, o)
		s.oldest[d]++
	}
}

func (s *state) orderStatus(who Who) {
	at := s.customer(who)
	o := key(who.District, s.lastOrders[at])
	lines := s.lines[o]
	s.status += s.customers[at].Balance + int64(s.orders[o].Carrier) + lines.cents()
}

func (s *state) stockLevel(e *StockLevel) {
	next := s.districts[e.District].Next
	var lines [recent]Lines
	var quantities [recent * linesMax]int64
	for i := range lines {
		if o, ok := slotOrder(next, uint32(i)); ok {
			lines[i] = s.lines[key(e.District, o)]
		}
		for j := range linesMax {
			at := i*linesMax + j
			quantities[at] = -1
			if j < int(lines[i].N) {
				quantities[at] = s.stock[key(e.District/districts, lines[i].Line[j].Item)].Quantity
			}
		}
	}
	s.levels[e.District] = lowStock(&lines, &quantities, e.Threshold)
}
