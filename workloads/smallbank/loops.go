package smallbank

import "github.com/heddle-stream/heddle/program"

// event is what a program without an engine would keep of a request.
type event struct {
	kind Kind
	r    Request
}

// loops are serial programs over the same events.
func loops(c *program.Config) []program.Loop {
	cost := c.Cost("complexity")
	return []program.Loop{
		{Name: "go maps", Prepare: func() func() {
			savings, checking := map[uint32]int64{}, map[uint32]int64{}
			for k := range uint32(c.Int("customers")) {
				savings[k], checking[k] = opening, opening
			}
			events := list(c)
			return func() { overMaps(events, savings, checking, cost) }
		}},
		{Name: "dense slots", Prepare: func() func() {
			savings, checking := make([]int64, c.Int("customers")), make([]int64, c.Int("customers"))
			for k := range savings {
				savings[k], checking[k] = opening, opening
			}
			events := list(c)
			return func() { overSlots(events, savings, checking, cost) }
		}},
	}
}

func list(c *program.Config) []event {
	g := newGenerator(c)
	out := make([]event, c.Events)
	for i := range out {
		out[i].kind, out[i].r = g.next()
	}
	return out
}

// overMaps returns the sum of all balances that were asked for, so that looking
// at them is not for nothing.
func overMaps(events []event, savings, checking map[uint32]int64, cost program.Cost) (seen int64) {
	for i := range events {
		r := &events[i].r
		switch events[i].kind {
		case Balance:
			cost.SpendTimes(2)
			seen += savings[r.Customer] + checking[r.Customer]
		case DepositChecking:
			cost.SpendTimes(1)
			if r.Amount >= 0 {
				checking[r.Customer] += r.Amount
			}
		case TransactSavings:
			cost.SpendTimes(1)
			if b := savings[r.Customer] + r.Amount; b >= 0 {
				savings[r.Customer] = b
			}
		case Amalgamate:
			cost.SpendTimes(3)
			checking[r.Other] += savings[r.Customer] + checking[r.Customer]
			savings[r.Customer], checking[r.Customer] = 0, 0
		case WriteCheck:
			cost.SpendTimes(1)
			b := checking[r.Customer]
			checking[r.Customer] = b - paid(r.Amount, savings[r.Customer]+b)
		case SendPayment:
			cost.SpendTimes(2)
			if b := checking[r.Customer]; b >= r.Amount {
				checking[r.Customer] = b - r.Amount
				checking[r.Other] += r.Amount
			}
		}
	}
	return seen
}

// overSlots is written out again, since a call per access, which one loop over both
// would need, is most of what this loop takes.
func overSlots(events []event, savings, checking []int64, cost program.Cost) (seen int64) {
	for i := range events {
		r := &events[i].r
		switch events[i].kind {
		case Balance:
			cost.SpendTimes(2)
			seen += savings[r.Customer] + checking[r.Customer]
		case DepositChecking:
			cost.SpendTimes(1)
			if r.Amount >= 0 {
				checking[r.Customer] += r.Amount
			}
		case TransactSavings:
			cost.SpendTimes(1)
			if b := savings[r.Customer] + r.Amount; b >= 0 {
				savings[r.Customer] = b
			}
		case Amalgamate:
			cost.SpendTimes(3)
			checking[r.Other] += savings[r.Customer] + checking[r.Customer]
			savings[r.Customer], checking[r.Customer] = 0, 0
		case WriteCheck:
			cost.SpendTimes(1)
			b := checking[r.Customer]
			checking[r.Customer] = b - paid(r.Amount, savings[r.Customer]+b)
		case SendPayment:
			cost.SpendTimes(2)
			if b := checking[r.Customer]; b >= r.Amount {
				checking[r.Customer] = b - r.Amount
				checking[r.Other] += r.Amount
			}
		}
	}
	return seen
}

// paid is what a check costs a customer who has the given funds.
func paid(amount, funds int64) int64 {
	if funds < amount {
		return amount + penalty
	}
	return amount
}
