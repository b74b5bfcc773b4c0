package sl

import (
	"fmt"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Opening is the balance of each row of both tables at the start.
const Opening = 1_000_000

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
	Deposits  *txn.Event[Deposit, int64]
	Transfers *txn.Event[Transfer, bool]
}

// New declares the ledger with keys 0 to keys-1 in both tables.
func New(keys int, cost program.Cost) *App {
	app := txn.New("sl")
	a := &App{
		App: app, Accounts: txn.NewTable[uint32, int64](app, "accounts"), Books: txn.NewTable[uint32, int64](app, "books"),
	}
	for k := range uint32(keys) {
		a.Accounts.Load(k, Opening)
		a.Books.Load(k, Opening)
	}
	poor := app.Reason("insufficient funds")
	fromAccount, fromBook := txn.NewParam(a.Accounts, "account at start"), txn.NewParam(a.Books, "book at start")
	// A leg takes effect if both of the source's balances, as they stood at the
	// start, cover the transfer.
	move := func(table *txn.Table[uint32, int64], name string) *txn.Op[uint32, int64, leg] {
		return txn.Update(table, name, func(c txn.Ctx, l leg, balance *int64) txn.Verdict {
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
	deposit := func(table *txn.Table[uint32, int64], name string) *txn.Op[uint32, int64, int64] {
		return txn.Update(table, name, func(c txn.Ctx, amount int64, balance *int64) txn.Verdict {
			cost.Spend(c)
			*balance += amount
			return txn.OK
		})
	}
	depositAccount, depositBook := deposit(a.Accounts, "deposit account"), deposit(a.Books, "deposit book")

	a.Deposits = txn.On(app, "deposit", func(p *txn.Plan, d Deposit) {
		depositAccount.At(p, d.Account, d.Amount)
		depositBook.At(p, d.Book, d.Amount)
	}, func(out txn.Outcome, d Deposit) int64 {
		if !out.Committed() {
			return 0
		}
		return d.Amount
	})
	a.Transfers = txn.On(app, "transfer", func(p *txn.Plan, t Transfer) {
		account, book := fromAccount.AtStart(p, t.From), fromBook.AtStart(p, t.FromBook)
		debitAccount.At(p, t.From, leg{-t.Amount, t.Amount, t.BookAmount}, account, book)
		debitBook.At(p, t.FromBook, leg{-t.BookAmount, t.Amount, t.BookAmount}, account, book)
		creditAccount.At(p, t.To, leg{t.Amount, t.Amount, t.BookAmount}, account, book)
		creditBook.At(p, t.ToBook, leg{t.BookAmount, t.Amount, t.BookAmount}, account, book)
	}, func(out txn.Outcome, _ Transfer) bool { return out.Committed() })
	return a
}

// check verifies that money is conserved: what the tables hold is what they
// held plus what was deposited, and no balance is negative.
func (a *App) check(keys int, deposited int64) error {
	want := int64(keys)*Opening + deposited
	for _, t := range []*txn.Table[uint32, int64]{a.Accounts, a.Books} {
		sum := int64(0)
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
