package tpcc

import (
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/program"
)

// Kind is one of the five transactions.
type Kind uint8

// The kinds of transactions.
const (
	NewOrderKind Kind = iota
	PaymentKind
	DeliveryKind
	OrderStatusKind
	StockLevelKind
	kinds
)

// mix is the share of each kind, in percent.
var mix = [kinds]int{NewOrderKind: 45, PaymentKind: 43, DeliveryKind: 4, OrderStatusKind: 4, StockLevelKind: 4}

// Request is a line that is ordered.
type Request struct {
	Item, Warehouse uint32
	Quantity        int64
}

// NewOrder is an order of a customer.
type NewOrder struct {
	District, Customer uint32
	Time               int64
	Lines              []Request
}

// Who is a customer, by number or, where that is 0, by name.
type Who struct{ District, Customer, Name uint32 }

// Payment is money that a customer pays at a district.
type Payment struct {
	Number   uint64 // of the payment
	District uint32
	Who      Who
	Cents    int64
	Time     int64
}

// Delivery takes the oldest new order of each district.
type Delivery struct {
	Warehouse uint32
	Carrier   uint8
	Time      int64
}

// OrderStatus asks for a customer's last order.
type OrderStatus struct{ Who Who }

// StockLevel asks how many recently sold items are low.
type StockLevel struct {
	District  uint32
	Threshold int64
}

// event is an event of any kind.
type event struct {
	kind     Kind
	order    NewOrder
	payment  Payment
	delivery Delivery
	status   OrderStatus
	level    StockLevel
}

// skewed draws from 0 to n-1, some numbers more often than others, as NURand does.
type skewed struct{ n, mask, shift int }

// nonUniform scales the standard's A, which is for a number of values, to n.
func nonUniform(r *rng.RNG, n, standard, a int) skewed {
	mask := a
	for mask > 1 && mask*standard > a*n {
		mask >>= 1
	}
	return skewed{n, mask, r.IntN(mask + 1)}
}

func (s skewed) draw(r *rng.RNG) int {
	return ((r.IntN(s.mask+1) | r.IntN(s.n)) + s.shift) % s.n
}

// generator makes the events, the same for equal parameters and seed.
type generator struct {
	r                                    *rng.RNG
	size                                 size
	customer, name, item                 skewed
	remoteLine, remotePayment, rolledOut float64
	made                                 int64
	payments                             uint64
}

func newGenerator(c *program.Config) *generator {
	r, z := rng.New(c.Seed, 1), sizeOf(c)
	return &generator{
		r: r, size: z, customer: nonUniform(r, z.customers, 3000, 1023), name: nonUniform(r, z.names, 1000, 255),
		item: nonUniform(r, z.items, 100_000, 8191), remoteLine: c.Float("remote-lines") / 100,
		remotePayment: c.Float("remote-payments") / 100, rolledOut: c.Float("rollback") / 100, made: openingTime,
	}
}

func (g *generator) next() event {
	g.made++
	e := event{kind: g.kind()}
	d := uint32(g.r.IntN(g.size.districts()))
	switch e.kind {
	case NewOrderKind:
		e.order = g.newOrder(d)
	case PaymentKind:
		e.payment = g.payment(d)
	case DeliveryKind:
		e.delivery = Delivery{Warehouse: d / districts, Carrier: uint8(1 + g.r.IntN(10)), Time: g.made}
	case OrderStatusKind:
		e.status = OrderStatus{g.who(d)}
	default:
		e.level = StockLevel{District: d, Threshold: int64(10 + g.r.IntN(11))}
	}
	return e
}

func (g *generator) kind() Kind {
	x := g.r.IntN(100)
	for k, share := range mix[:StockLevelKind] {
		if x < share {
			return Kind(k)
		}
		x -= share
	}
	return StockLevelKind
}

// other returns another warehouse than the given one, if there is one.
func (g *generator) other(w uint32) uint32 {
	if g.size.warehouses == 1 {
		return w
	}
	return (w + 1 + uint32(g.r.IntN(g.size.warehouses-1))) % uint32(g.size.warehouses)
}

func (g *generator) newOrder(d uint32) NewOrder {
	e := NewOrder{District: d, Customer: uint32(1 + g.customer.draw(g.r)), Time: g.made}
	e.Lines = make([]Request, linesMin+g.r.IntN(linesMax-linesMin+1))
	for i := range e.Lines {
		l := Request{Item: uint32(1 + g.item.draw(g.r)), Warehouse: d / districts, Quantity: int64(1 + g.r.IntN(10))}
		if g.r.Float64() < g.remoteLine {
			l.Warehouse = g.other(l.Warehouse)
		}
		e.Lines[i] = l
	}
	if g.r.Float64() < g.rolledOut {
		e.Lines[len(e.Lines)-1].Item = uint32(g.size.items + 1)
	}
	return e
}

// who draws a customer of a district, 60 % of them by name.
func (g *generator) who(d uint32) Who {
	if g.r.IntN(100) < 60 {
		return Who{District: d, Name: uint32(g.name.draw(g.r))}
	}
	return Who{District: d, Customer: uint32(1 + g.customer.draw(g.r))}
}

func (g *generator) payment(d uint32) Payment {
	g.payments++
	home := d
	if g.r.Float64() < g.remotePayment {
		home = g.other(d/districts)*districts + uint32(g.r.IntN(districts))
	}
	return Payment{Number: g.payments, District: d, Who: g.who(home), Cents: int64(100 + g.r.IntN(499_901)), Time: g.made}
}
