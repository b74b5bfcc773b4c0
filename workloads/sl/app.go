package sl

import (
	"fmt"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Opening is the balance of each row of both tables at the start.
const Opening = 1_000_000

const fee = 1 // of a transfer, where fees are taken

// Deposit adds an amount to an account and to a book entry.
type Deposit struct {
	Account, Book uint32
	Amount        int64
}

// Transfer moves an amount between accounts and one between book entries.
type Transfer struct {
	From, FromBook, To, ToBook uint32
	Amount, BookAmount         int64
}

// leg is one of the four changes of a transfer, with what the source must have.
type leg struct{ change, account, book int64 }

// App is the declared application.
type App struct {
	App       *txn.App
	Accounts  *txn.Table[uint32, int64]
	Books     *txn.Table[uint32, int64]
	Fees      *txn.Table[uint32, int64] // one row for all fees, if any are taken
	Deposits  *txn.Event[Deposit, int64]
	Transfers *txn.Event[Transfer, bool]

	idleDeposits  *txn.Event[Deposit, int64] // that spend no work, where there are any
	idleTransfers *txn.Event[Transfer, bool]
	fromAccount   *txn.Param[uint32, int64]
	fromBook      *txn.Param[uint32, int64]
	poor          txn.Verdict
}

// New declares the ledger with keys 0 to keys-1 in both tables. fees says how
// they are taken: "none", "update" or "merge".
func New(keys int, cost program.Cost, fees string) *App { return declare("sl", keys, cost, fees) }

func declare(name string, keys int, cost program.Cost, fees string) *App {
	app := txn.New(name)
	a := &App{
		App: app, Accounts: txn.NewTable[uint32, int64](app, "accounts"), Books: txn.NewTable[uint32, int64](app, "books"),
	}
	for k := range uint32(keys) {
		a.Accounts.Load(k, Opening)
		a.Books.Load(k, Opening)
	}
	a.poor = app.Reason("insufficient funds")
	a.fromAccount, a.fromBook = txn.NewParam(a.Accounts, "account at start"), txn.NewParam(a.Books, "book at start")
	a.Deposits = a.deposits("", cost)
	a.Transfers = a.transfers("", cost, fees)
	return a
}

// declareIdle declares deposits and transfers that spend no work, beside those
// that do.
func (a *App) declareIdle() {
	a.idleDeposits = a.deposits("idle ", program.Cost{})
	a.idleTransfers = a.transfers("idle ", program.Cost{}, "none")
}

func (a *App) deposits(prefix string, cost program.Cost) *txn.Event[Deposit, int64] {
	deposit := func(table *txn.Table[uint32, int64], name string) *txn.Op[uint32, int64, int64] {
		return txn.Update(table, prefix+name, func(c txn.Ctx, amount int64, balance *int64) txn.Verdict {
			cost.Spend(c)
			*balance += amount
			return txn.OK
		})
	}
	account, book := deposit(a.Accounts, "deposit account"), deposit(a.Books, "deposit book")
	return txn.On(a.App, prefix+"deposit", func(p *txn.Plan, d Deposit) {
		account.At(p, d.Account, d.Amount)
		book.At(p, d.Book, d.Amount)
	}, func(out txn.Outcome, d Deposit) int64 {
		if !out.Committed() {
			return 0
		}
		return d.Amount
	})
}

func (a *App) transfers(prefix string, cost program.Cost, fees string) *txn.Event[Transfer, bool] {
	poor, fromAccount, fromBook := a.poor, a.fromAccount, a.fromBook
	// A leg takes effect if both of the source's balances, as they stood at the
	// start, cover the transfer.
	move := func(table *txn.Table[uint32, int64], name string) *txn.Op[uint32, int64, leg] {
		return txn.Update(table, prefix+name, func(c txn.Ctx, l leg, balance *int64) txn.Verdict {
			cost.Spend(c)
			account, _ := fromAccount.Get(c)
			book, _ := fromBook.Get(c)
			if account < l.account || book < l.book {
				return poor
			}
			*balance += l.change
			return txn.OK
		})
	}
	debitAccount, debitBook := move(a.Accounts, "debit account"), move(a.Books, "debit book")
	creditAccount, creditBook := move(a.Accounts, "credit account"), move(a.Books, "credit book")
	takeFee := a.takeFee(cost, fees)
	charge := int64(0)
	if takeFee != nil {
		charge = fee
	}
	return txn.On(a.App, prefix+"transfer", func(p *txn.Plan, t Transfer) {
		account, book := fromAccount.AtStart(p, t.From), fromBook.AtStart(p, t.FromBook)
		needs := t.Amount + charge
		debitAccount.At(p, t.From, leg{-needs, needs, t.BookAmount}, account, book)
		debitBook.At(p, t.FromBook, leg{-t.BookAmount, needs, t.BookAmount}, account, book)
		creditAccount.At(p, t.To, leg{t.Amount, needs, t.BookAmount}, account, book)
		creditBook.At(p, t.ToBook, leg{t.BookAmount, needs, t.BookAmount}, account, book)
		if takeFee != nil {
			takeFee(p)
		}
	}, func(out txn.Outcome, _ Transfer) bool { return out.Committed() })
}

// takeFee declares the account for fees and returns what lists its operation, or
// nil. As an update it puts all transfers in one chain, as a commutative
// operation it orders nothing.
func (a *App) takeFee(cost program.Cost, how string) func(p *txn.Plan) {
	if how == "none" {
		return nil
	}
	a.Fees = txn.NewTable[uint32, int64](a.App, "fees")
	a.Fees.Load(0, 0)
	if how == "merge" {
		take := txn.Merge(a.Fees, "take fee", func(c txn.Ctx, amount int64) (int64, txn.Verdict) {
			cost.Spend(c)
			return amount, txn.OK
		}, func(sum *int64, amount int64) { *sum += amount })
		return func(p *txn.Plan) { take.At(p, 0, fee) }
	}
	take := txn.Update(a.Fees, "take fee", func(c txn.Ctx, amount int64, sum *int64) txn.Verdict {
		cost.Spend(c)
		*sum += amount
		return txn.OK
	})
	return func(p *txn.Plan) { take.At(p, 0, fee) }
}

// check verifies that money is conserved: what the tables hold is what they
// held plus what was deposited, and no balance is negative.
func (a *App) check(keys int, deposited int64) error {
	want := int64(keys)*Opening + deposited
	for _, t := range []*txn.Table[uint32, int64]{a.Accounts, a.Books} {
		sum := int64(0)
		if t == a.Accounts && a.Fees != nil {
			sum, _ = a.Fees.Peek(0)
		}
		for k, v := range t.All() {
			if v < 0 {
				return fmt.Errorf("%s[%d] is negative: %d", t.Name(), k, v)
			}
			sum += v
		}
		if sum != want {
			return fmt.Errorf("%s hold %d; the opening balances and deposits are %d", t.Name(), sum, want)
		}
	}
	return nil
}
