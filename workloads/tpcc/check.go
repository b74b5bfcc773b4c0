package tpcc

import "fmt"

// sums adds up what results tell.
type sums struct{ orders, pieces, paid, delivered, deliveredCents int64 }

func (a *App) tell(s *sums) {
	a.NewOrder.Each(func(r Ordered) {
		if r.Done {
			s.orders++
		}
		s.pieces += r.Pieces
	})
	a.Payment.Each(func(r Paid) { s.paid += r.Cents })
	a.Delivery.Each(func(r Delivered) {
		s.delivered += int64(r.Orders)
		s.deliveredCents += r.Cents
	})
}

// check verifies the consistency conditions, and that the results tell of what
// was done. The numbers are those of the standard's clause 3.3.2.
func (a *App) check(z size, told *sums) error {
	for _, f := range []func(size, *sums) error{a.checkMoney, a.checkNumbers, a.checkLines, a.checkCustomers, a.checkStock} {
		if err := f(z, told); err != nil {
			return err
		}
	}
	return nil
}

// checkMoney verifies conditions 1, 8 and 9.
func (a *App) checkMoney(z size, told *sums) error {
	warehouses, byDistrict, paid := map[uint32]int64{}, map[uint32]int64{}, int64(0)
	for _, h := range a.History.All() {
		byDistrict[h.District] += h.Cents
		paid += h.Cents
	}
	for d, ytd := range a.DistrictYTD.All() {
		if want := int64(z.customers)*openingPaid + byDistrict[d]; ytd != want {
			return fmt.Errorf("the sum of district %d is %d; opening and history make %d", d, ytd, want)
		}
		warehouses[d/districts] += ytd
	}
	for w, ytd := range a.WarehouseYTD.All() {
		if ytd != warehouses[w] {
			return fmt.Errorf("the sum of warehouse %d is %d, those of its districts are %d", w, ytd, warehouses[w])
		}
	}
	if paid != told.paid {
		return fmt.Errorf("history holds %d cents; payments tell of %d", paid, told.paid)
	}
	return nil
}

// span is the numbers that rows of a district have.
type span struct{ first, last, n uint32 }

func (s *span) add(n uint32) {
	if s.n == 0 || n < s.first {
		s.first = n
	}
	s.last = max(s.last, n)
	s.n++
}

// checkNumbers verifies conditions 2, 3 and 5.
func (a *App) checkNumbers(z size, told *sums) error {
	orders, isNew := map[uint32]*span{}, map[uint32]*span{}
	for d := range uint32(z.districts()) {
		orders[d], isNew[d] = &span{}, &span{}
	}
	for k := range a.NewOrders.All() {
		d, n := split(k)
		isNew[d].add(n)
	}
	for k, o := range a.Orders.All() {
		d, n := split(k)
		orders[d].add(n)
		if _, found := a.NewOrders.Peek(k); found != (o.Carrier == 0) {
			return fmt.Errorf("order %d of district %d has carrier %d; that it is new is %v", n, d, o.Carrier, found)
		}
	}
	entered, delivered := int64(0), int64(0)
	for d, row := range a.Districts.All() {
		o, n := orders[d], isNew[d]
		oldest, _ := a.Oldest.Peek(d)
		if o.first != 1 || o.last != row.Next-1 || o.n != o.last {
			return fmt.Errorf("district %d has %d orders from %d to %d; the next one is %d", d, o.n, o.first, o.last, row.Next)
		}
		if n.n != row.Next-oldest || n.n > 0 && (n.first != oldest || n.last != o.last) {
			return fmt.Errorf("district %d has %d new orders from %d to %d; the oldest is %d, the next order %d", d, n.n, n.first, n.last, oldest, row.Next)
		}
		entered += int64(row.Next) - 1 - int64(z.customers)
		delivered += int64(oldest) - 1 - int64(z.delivered())
	}
	if entered != told.orders || delivered != told.delivered {
		return fmt.Errorf("%d orders were entered and %d delivered; results tell of %d and %d", entered, delivered, told.orders, told.delivered)
	}
	return nil
}

// checkLines verifies conditions 4, 6 and 7.
func (a *App) checkLines(z size, _ *sums) error {
	ordered, have := make([]int64, z.districts()), make([]int64, z.districts())
	for k, o := range a.Orders.All() {
		d, n := split(k)
		l, _ := a.Lines.Peek(k)
		ordered[d] += int64(o.Lines)
		if l.N != o.Lines || (l.Delivered == 0) != (o.Carrier == 0) {
			return fmt.Errorf("order %d of district %d is of %d lines with carrier %d; there are %d, delivered at %d", n, d, o.Lines, o.Carrier, l.N, l.Delivered)
		}
	}
	for k, l := range a.Lines.All() {
		d, _ := split(k)
		have[d] += int64(l.N)
	}
	for d, n := range ordered {
		if n != have[d] {
			return fmt.Errorf("the orders of district %d have %d lines; there are %d", d, n, have[d])
		}
	}
	return nil
}

// checkCustomers verifies conditions 10 and 12, and who has the last order.
func (a *App) checkCustomers(z size, told *sums) error {
	paid, delivered, last := map[uint64]int64{}, map[uint64]int64{}, map[uint64]uint32{}
	for _, h := range a.History.All() {
		paid[h.Customer] += h.Cents
	}
	sum := int64(0)
	for k, o := range a.Orders.All() {
		d, n := split(k)
		customer := key(d, o.Customer)
		last[customer] = max(last[customer], n)
		if o.Carrier != 0 {
			l, _ := a.Lines.Peek(k)
			delivered[customer] += l.cents()
			sum += l.cents()
		}
	}
	for k, c := range a.Customers.All() {
		d, n := split(k)
		if want := openingPaid + paid[k]; c.Paid != want || c.Balance+c.Paid != delivered[k] {
			return fmt.Errorf("customer %d of district %d has paid %d of %d and has a balance of %d; %d were delivered", n, d, c.Paid, want, c.Balance, delivered[k])
		}
		if o, _ := a.LastOrders.Peek(k); o != last[k] {
			return fmt.Errorf("the last order of customer %d of district %d is %d, not %d", n, d, last[k], o)
		}
	}
	if n := a.Customers.Len(); n != z.districts()*z.customers || sum != told.deliveredCents {
		return fmt.Errorf("%d customers, to whom %d cents were delivered; deliveries tell of %d", n, sum, told.deliveredCents)
	}
	return nil
}

// checkStock verifies that what left the stock is what was ordered.
func (a *App) checkStock(_ size, told *sums) error {
	sold := int64(0)
	for k, s := range a.Stock.All() {
		if w, item := split(k); s.Quantity < 0 || s.Quantity > 100 {
			return fmt.Errorf("warehouse %d has %d pieces of item %d", w, s.Quantity, item)
		}
		sold += s.Sold
	}
	if sold != told.pieces {
		return fmt.Errorf("%d pieces left the stock; orders tell of %d", sold, told.pieces)
	}
	return nil
}
