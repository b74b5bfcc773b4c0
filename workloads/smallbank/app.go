package smallbank

import (
	"fmt"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

const (
	opening = 10_000 // of each account
	penalty = 1      // for a check that is not covered
)

// Kind is one of the six transactions.
type Kind uint8

// The kinds of transactions.
const (
	Balance Kind = iota
	DepositChecking
	TransactSavings
	Amalgamate
	WriteCheck
	SendPayment
	kinds
)

// Request is an event of any kind. Balance needs no amount, and only Amalgamate
// and SendPayment have another customer.
type Request struct {
	Customer, Other uint32
	Amount          int64
}

// App is the declared application. The result of an event is an amount: what
// was seen, brought in, moved or paid.
type App struct {
	App      *txn.App
	Savings  *txn.Table[uint32, int64]
	Checking *txn.Table[uint32, int64]
	Events   [kinds]*txn.Event[Request, int64]
}

// operation changes one account.
type operation = txn.Op[uint32, int64, int64]

// New declares the bank with customers 0 to customers-1.
func New(customers int, cost program.Cost) *App {
	app := txn.New("smallbank")
	a := &App{
		App: app, Savings: txn.NewTable[uint32, int64](app, "savings"), Checking: txn.NewTable[uint32, int64](app, "checking"),
	}
	for k := range uint32(customers) {
		a.Savings.Load(k, opening)
		a.Checking.Load(k, opening)
	}
	a.declareBalance(cost)
	a.declareSingle(cost)
	a.declareAmalgamate(cost)
	a.declareSendPayment(cost)
	return a
}

// change declares an operation that changes an account that exists.
func change(table *txn.Table[uint32, int64], name string, cost program.Cost, fn func(c txn.Ctx, amount int64, balance *int64) txn.Verdict) *operation {
	return txn.Update(table, name, func(c txn.Ctx, amount int64, balance *int64) txn.Verdict {
		cost.Spend(c)
		return fn(c, amount, balance)
	})
}

func (a *App) declareBalance(cost program.Cost) {
	look := func(table *txn.Table[uint32, int64], name string) *operation {
		return txn.Get(table, name, func(c txn.Ctx, _, _ int64, found bool) txn.Verdict {
			cost.Spend(c)
			if !found {
				return txn.Missing
			}
			return txn.OK
		})
	}
	savings, checking := look(a.Savings, "look at savings"), look(a.Checking, "look at checking")
	a.Events[Balance] = txn.On(a.App, "balance", func(p *txn.Plan, r Request) {
		savings.At(p, r.Customer, 0)
		checking.At(p, r.Customer, 0)
	}, func(out txn.Outcome, _ Request) int64 {
		s, _ := savings.Before(out)
		c, _ := checking.Before(out)
		return s + c
	})
}

// declareSingle declares the transactions that change one account.
func (a *App) declareSingle(cost program.Cost) {
	negative, short := a.App.Reason("negative deposit"), a.App.Reason("insufficient savings")
	deposit := change(a.Checking, "deposit", cost, func(_ txn.Ctx, amount int64, balance *int64) txn.Verdict {
		if amount < 0 {
			return negative
		}
		*balance += amount
		return txn.OK
	})
	transact := change(a.Savings, "transact", cost, func(_ txn.Ctx, amount int64, balance *int64) txn.Verdict {
		if *balance+amount < 0 {
			return short
		}
		*balance += amount
		return txn.OK
	})
	savings := txn.NewParam(a.Savings, "savings beside the check")
	check := change(a.Checking, "pay check", cost, func(c txn.Ctx, amount int64, balance *int64) txn.Verdict {
		if saved, _ := savings.Get(c); saved+*balance < amount {
			amount += penalty
		}
		*balance -= amount
		return txn.OK
	})
	brought := func(out txn.Outcome, r Request) int64 {
		if !out.Committed() {
			return 0
		}
		return r.Amount
	}
	a.Events[DepositChecking] = txn.On(a.App, "deposit checking", func(p *txn.Plan, r Request) { deposit.At(p, r.Customer, r.Amount) }, brought)
	a.Events[TransactSavings] = txn.On(a.App, "transact savings", func(p *txn.Plan, r Request) { transact.At(p, r.Customer, r.Amount) }, brought)
	a.Events[WriteCheck] = txn.On(a.App, "write check", func(p *txn.Plan, r Request) {
		check.At(p, r.Customer, r.Amount, savings.Of(p, r.Customer))
	}, func(out txn.Outcome, _ Request) int64 {
		before, _ := check.Before(out)
		after, _ := check.After(out)
		return before - after
	})
}

// declareAmalgamate declares the move of all that a customer has to another one.
// The receiver's account comes first: it sees what the emptied ones held.
func (a *App) declareAmalgamate(cost program.Cost) {
	savings, checking := txn.NewParam(a.Savings, "savings to take"), txn.NewParam(a.Checking, "checking to take")
	take := change(a.Checking, "take over", cost, func(c txn.Ctx, _ int64, balance *int64) txn.Verdict {
		s, _ := savings.Get(c)
		k, _ := checking.Get(c)
		*balance += s + k
		return txn.OK
	})
	empty := func(_ txn.Ctx, _ int64, balance *int64) txn.Verdict {
		*balance = 0
		return txn.OK
	}
	emptySavings, emptyChecking := change(a.Savings, "empty savings", cost, empty), change(a.Checking, "empty checking", cost, empty)
	a.Events[Amalgamate] = txn.On(a.App, "amalgamate", func(p *txn.Plan, r Request) {
		take.At(p, r.Other, 0, savings.Of(p, r.Customer), checking.Of(p, r.Customer))
		emptySavings.At(p, r.Customer, 0)
		emptyChecking.At(p, r.Customer, 0)
	}, func(out txn.Outcome, _ Request) int64 {
		before, _ := take.Before(out)
		after, _ := take.After(out)
		return after - before
	})
}

func (a *App) declareSendPayment(cost program.Cost) {
	poor := a.App.Reason("insufficient funds")
	debit := change(a.Checking, "debit", cost, func(_ txn.Ctx, amount int64, balance *int64) txn.Verdict {
		if *balance < amount {
			return poor
		}
		*balance -= amount
		return txn.OK
	})
	credit := change(a.Checking, "credit", cost, func(_ txn.Ctx, amount int64, balance *int64) txn.Verdict {
		*balance += amount
		return txn.OK
	})
	a.Events[SendPayment] = txn.On(a.App, "send payment", func(p *txn.Plan, r Request) {
		debit.At(p, r.Customer, r.Amount)
		credit.At(p, r.Other, r.Amount)
	}, func(out txn.Outcome, r Request) int64 {
		if !out.Committed() {
			return 0
		}
		return r.Amount
	})
}

// check verifies that money is conserved: the accounts hold what they held plus
// what the results say was brought in, and no savings are negative.
func (a *App) check(customers int, brought int64) error {
	sum := int64(0)
	for k, v := range a.Savings.All() {
		if v < 0 {
			return fmt.Errorf("savings[%d] is negative: %d", k, v)
		}
		sum += v
	}
	for _, v := range a.Checking.All() {
		sum += v
	}
	if want := int64(customers)*2*opening + brought; sum != want {
		return fmt.Errorf("the accounts hold %d; opening balances, deposits, savings and checks make %d", sum, want)
	}
	if s, c := a.Savings.Len(), a.Checking.Len(); s != customers || c != customers {
		return fmt.Errorf("%d customers have %d savings and %d checking accounts", customers, s, c)
	}
	return nil
}
