package tpcc

import (
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/program"
)

// size is how large the warehouses are.
type size struct{ warehouses, customers, items, names int }

func sizeOf(c *program.Config) size {
	s := size{warehouses: c.Int("warehouses"), customers: c.Int("customers"), items: c.Int("items")}
	s.names = s.customers / 3
	return s
}

func (s size) districts() int { return s.warehouses * districts }

// delivered is how many of the orders of the start are delivered.
func (s size) delivered() int { return s.customers - s.customers*3/10 }

// state holds the tables as maps: what the application starts with, and what a
// hand-written loop works on. Keys are those of the application's tables.
type state struct {
	warehouses              map[uint32]int64 // taxes
	warehouseYTD            map[uint32]int64
	districts               map[uint32]District
	districtYTD             map[uint32]int64
	names                   map[uint64]uint32 // district and name to customer
	customers               map[uint64]Customer
	lastOrders              map[uint64]uint32
	items                   map[uint32]int64 // prices
	stock                   map[uint64]Stock
	orders                  map[uint64]Order
	lines                   map[uint64]Lines
	newOrders               map[uint64]bool
	oldest                  map[uint32]uint32
	history                 map[uint64]History
	levels                  map[uint32]int64
	cents, status, rollback int64 // what questions and orders came to, of a loop only
}

// newState makes what the warehouses are like at the start.
func newState(c *program.Config) *state {
	r, z := rng.New(c.Seed, 2), sizeOf(c)
	s := &state{
		warehouses: map[uint32]int64{}, warehouseYTD: map[uint32]int64{}, districts: map[uint32]District{}, districtYTD: map[uint32]int64{},
		names: map[uint64]uint32{}, customers: map[uint64]Customer{}, lastOrders: map[uint64]uint32{}, items: map[uint32]int64{},
		stock: map[uint64]Stock{}, orders: map[uint64]Order{}, lines: map[uint64]Lines{}, newOrders: map[uint64]bool{},
		oldest: map[uint32]uint32{}, history: map[uint64]History{}, levels: map[uint32]int64{},
	}
	for i := range uint32(z.items) {
		s.items[i+1] = int64(100 + r.IntN(9901))
	}
	for w := range uint32(z.warehouses) {
		s.warehouses[w] = int64(r.IntN(2001))
		s.warehouseYTD[w] = int64(districts*z.customers) * openingPaid
		for i := range uint32(z.items) {
			s.stock[key(w, i+1)] = Stock{Quantity: int64(10 + r.IntN(91))}
		}
	}
	for d := range uint32(z.districts()) {
		s.districts[d] = District{Tax: int64(r.IntN(2001)), Next: uint32(z.customers) + 1}
		s.districtYTD[d] = int64(z.customers) * openingPaid
		s.levels[d] = 0
		s.addCustomers(d, z, r)
		s.addOrders(d, z, r)
	}
	return s
}

const openingPaid = 1000 // cents that each customer has paid at the start

// addCustomers gives each name a customer, and those that are left any name.
// First names being random, the one in the middle of a name is any of it.
func (s *state) addCustomers(d uint32, z size, r *rng.RNG) {
	name := nonUniform(r, z.names, 1000, 255)
	have := make([][]uint32, z.names)
	for c := range z.customers {
		n := c
		if n >= z.names {
			n = name.draw(r)
		}
		have[n] = append(have[n], uint32(c+1))
		s.customers[key(d, uint32(c+1))] = Customer{
			Balance: -openingPaid, Paid: openingPaid, Payments: 1, Discount: int64(r.IntN(5001)), Bad: r.IntN(10) == 0,
		}
	}
	for n, list := range have {
		s.names[key(d, uint32(n))] = list[r.IntN(len(list))]
	}
}

// addOrders gives each customer an order, of which the last ones are new.
func (s *state) addOrders(d uint32, z size, r *rng.RNG) {
	w, delivered := d/districts, z.delivered()
	for i, c := range r.Perm(z.customers) {
		o, isNew := key(d, uint32(i+1)), i >= delivered
		order := Order{Customer: uint32(c + 1), Lines: uint8(linesMin + r.IntN(linesMax-linesMin+1)), Local: true}
		lines := Lines{N: order.Lines}
		for j := range lines.Line[:lines.N] {
			l := &lines.Line[j]
			*l = Line{Item: uint32(1 + r.IntN(z.items)), Warehouse: w, Quantity: 5}
			if isNew {
				l.Cents = int64(1 + r.IntN(999_999))
			}
		}
		if isNew {
			s.newOrders[o] = true
		} else {
			order.Carrier, lines.Delivered = uint8(1+r.IntN(10)), openingTime
		}
		order.Entered = openingTime
		s.orders[o], s.lines[o] = order, lines
		s.lastOrders[key(d, order.Customer)] = uint32(i + 1)
	}
	s.oldest[d] = uint32(delivered + 1)
}

const openingTime = 1 // events come after it
