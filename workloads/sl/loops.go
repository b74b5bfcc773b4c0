package sl

import (
	"github.com/heddle-stream/heddle/internal/flat"
	"github.com/heddle-stream/heddle/program"
)

// Event is a deposit or a transfer, as a program without an engine would keep it.
type Event struct {
	IsDeposit bool
	Idle      bool // spends no work
	Deposit   Deposit
	Transfer  Transfer
}

// loops are serial programs over the same events.
func loops(c *program.Config, newMaker func(*program.Config) maker) []program.Loop {
	cost := c.Cost("complexity")
	return []program.Loop{
		{Name: "go maps", Prepare: func() func() {
			accounts, books := map[uint32]int64{}, map[uint32]int64{}
			for k := range uint32(rows(c)) {
				accounts[k], books[k] = Opening, Opening
			}
			events := list(c, newMaker)
			return func() { overMaps(events, accounts, books, cost, newFees(c)) }
		}},
		{Name: "flat open addressing", Prepare: func() func() {
			accounts, books := flat.New(rows(c)), flat.New(rows(c))
			for k := range uint32(rows(c)) {
				*accounts.At(k), *books.At(k) = Opening, Opening
			}
			events := list(c, newMaker)
			return func() { overRows(events, accounts.At, books.At, cost, newFees(c)) }
		}},
		{Name: "dense slots", Prepare: func() func() {
			accounts, books := make([]int64, rows(c)), make([]int64, rows(c))
			for k := range accounts {
				accounts[k], books[k] = Opening, Opening
			}
			events := list(c, newMaker)
			return func() { overSlots(events, accounts, books, cost, newFees(c)) }
		}},
	}
}

func (e *Event) spend(cost program.Cost, operations int) {
	if !e.Idle {
		cost.SpendTimes(operations)
	}
}

// feeAccount is the account for fees; a fee is one unit and one operation.
type feeAccount struct{ charge, sum int64 }

func newFees(c *program.Config) *feeAccount {
	if c.Text("fee") == "none" {
		return &feeAccount{}
	}
	return &feeAccount{charge: fee}
}

// Events returns the events that the configuration makes. Those of a smaller
// number are the first of those of a larger one.
func Events(c *program.Config) []Event { return list(c, newGenerator) }

// OverMaps runs the events on Go maps, one after the other. No fees are taken.
func OverMaps(events []Event, accounts, books map[uint32]int64, cost program.Cost) {
	overMaps(events, accounts, books, cost, &feeAccount{})
}

func list(c *program.Config, newMaker func(*program.Config) maker) []Event {
	g := newMaker(c)
	out := make([]Event, c.Events)
	for i := range out {
		out[i] = g.next()
	}
	return out
}

func overMaps(events []Event, accounts, books map[uint32]int64, cost program.Cost, fees *feeAccount) {
	for i := range events {
		e := &events[i]
		if e.IsDeposit {
			e.spend(cost, 2)
			accounts[e.Deposit.Account] += e.Deposit.Amount
			books[e.Deposit.Book] += e.Deposit.Amount
			continue
		}
		t := &e.Transfer
		e.spend(cost, 4+int(fees.charge))
		if accounts[t.From] < t.Amount+fees.charge || books[t.FromBook] < t.BookAmount {
			continue
		}
		accounts[t.From] -= t.Amount + fees.charge
		fees.sum += fees.charge
		books[t.FromBook] -= t.BookAmount
		accounts[t.To] += t.Amount
		books[t.ToBook] += t.BookAmount
	}
}

func overRows(events []Event, accounts, books func(uint32) *int64, cost program.Cost, fees *feeAccount) {
	for i := range events {
		e := &events[i]
		if e.IsDeposit {
			e.spend(cost, 2)
			*accounts(e.Deposit.Account) += e.Deposit.Amount
			*books(e.Deposit.Book) += e.Deposit.Amount
			continue
		}
		t := &e.Transfer
		e.spend(cost, 4+int(fees.charge))
		from, book := accounts(t.From), books(t.FromBook)
		if *from < t.Amount+fees.charge || *book < t.BookAmount {
			continue
		}
		*from -= t.Amount + fees.charge
		fees.sum += fees.charge
		*book -= t.BookAmount
		*accounts(t.To) += t.Amount
		*books(t.ToBook) += t.BookAmount
	}
}

func overSlots(events []Event, accounts, books []int64, cost program.Cost, fees *feeAccount) {
	for i := range events {
		e := &events[i]
		if e.IsDeposit {
			e.spend(cost, 2)
			accounts[e.Deposit.Account] += e.Deposit.Amount
			books[e.Deposit.Book] += e.Deposit.Amount
			continue
		}
		t := &e.Transfer
		e.spend(cost, 4+int(fees.charge))
		if accounts[t.From] < t.Amount+fees.charge || books[t.FromBook] < t.BookAmount {
			continue
		}
		accounts[t.From] -= t.Amount + fees.charge
		fees.sum += fees.charge
		books[t.FromBook] -= t.BookAmount
		accounts[t.To] += t.Amount
		books[t.ToBook] += t.BookAmount
	}
}
