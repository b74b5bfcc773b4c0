package tpcc

const (
	districts = 10 // of a warehouse
	linesMin  = 5  // of an order
	linesMax  = 15
	recent    = 20 // orders that a stock level looks at
)

// key is the key of a row that belongs to a district or a warehouse.
func key(of, n uint32) uint64 { return uint64(of)<<32 | uint64(n) }

// split is what key was made of.
func split(key uint64) (of, n uint32) { return uint32(key >> 32), uint32(key) }

// District is the row of a district. Taxes are in 1/100 of a percent.
type District struct {
	Tax  int64
	Next uint32 // number of its next order, from 1
}

// Customer is the row of a customer; amounts are in cents.
type Customer struct {
	Balance, Paid        int64
	Payments, Deliveries uint32
	Discount             int64 // in 1/100 of a percent
	Bad                  bool  // credit
	Data                 uint64
}

// pay takes a payment. With bad credit the data tells of each payment in order.
func (c *Customer) pay(district uint32, amount int64) {
	c.Balance -= amount
	c.Paid += amount
	c.Payments++
	if c.Bad {
		c.Data = c.Data*1_000_003 + uint64(district)<<32 + uint64(amount)
	}
}

// credit books the amount of an order that was delivered.
func (c *Customer) credit(amount int64) {
	c.Balance += amount
	c.Deliveries++
}

// Stock is the row of an item in a warehouse.
type Stock struct {
	Quantity       int64
	Sold           int64
	Orders, Remote uint32
}

// take takes a line's pieces, and refills a stock that gets low.
func (s *Stock) take(quantity int64, remote bool) {
	if s.Quantity >= quantity+10 {
		s.Quantity -= quantity
	} else {
		s.Quantity += 91 - quantity
	}
	s.Sold += quantity
	s.Orders++
	if remote {
		s.Remote++
	}
}

// Order is the row of an order. It has no carrier, 0, until it is delivered.
type Order struct {
	Customer uint32
	Carrier  uint8
	Lines    uint8
	Local    bool // all lines are from the district's own warehouse
	Entered  int64
}

// Line is a line of an order.
type Line struct {
	Item, Warehouse uint32
	Quantity        int64
	Cents           int64
}

// Lines are the lines of an order, in one row.
type Lines struct {
	N         uint8
	Delivered int64 // when, 0 if not yet
	Line      [linesMax]Line
}

// cents returns the sum of the lines.
func (l *Lines) cents() int64 {
	sum := int64(0)
	for i := range l.Line[:l.N] {
		sum += l.Line[i].Cents
	}
	return sum
}

// slotOrder is the order in a place of the recent ones: the last one with that
// remainder. Most places keep their order when the district takes a new one.
func slotOrder(next, slot uint32) (number uint32, ok bool) {
	last := next - 1
	back := (last%recent + recent - slot) % recent
	return last - back, last > back
}

// History is the row of a payment.
type History struct {
	Customer uint64
	District uint32 // that took it
	Cents    int64
	Time     int64
}

// total is what a customer has to pay for lines with discount and taxes.
func total(cents, discount, warehouse, district int64) int64 {
	return cents * (10_000 - discount) / 10_000 * (10_000 + warehouse + district) / 10_000
}

// lowStock counts the different items of the lines of which less than the
// threshold is left. Quantities are by place of order and line, -1 for no line.
func lowStock(lines *[recent]Lines, quantities *[recent * linesMax]int64, threshold int64) int64 {
	var items [recent * linesMax]uint32
	n := int64(0)
	for i, q := range quantities {
		if q < 0 || q >= threshold {
			continue
		}
		item, again := lines[i/linesMax].Line[i%linesMax].Item, false
		for _, other := range items[:n] {
			again = again || other == item
		}
		if !again {
			items[n] = item
			n++
		}
	}
	return n
}
