package retail

import (
	"fmt"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Line is a number of pieces of an article at a price; returned if negative.
type Line struct {
	Code  string
	Qty   int64
	Cents int64 // per piece
}

// Invoice is a purchase, or a cancellation: then its lines are returns.
type Invoice struct {
	Number   string
	Time     int64
	Customer uint32 // 0 if unknown
	Lines    []Line
}

// Cents returns what the customer has to pay.
func (v *Invoice) Cents() int64 {
	sum := int64(0)
	for _, l := range v.Lines {
		sum += l.Qty * l.Cents
	}
	return sum
}

// Pieces returns how many pieces leave the stock, less those that return.
func (v *Invoice) Pieces() int64 {
	sum := int64(0)
	for _, l := range v.Lines {
		sum += l.Qty
	}
	return sum
}

// Stock is the state of an article. Sold is net of returns and may be negative.
type Stock struct{ Left, Sold int64 }

// Result is the outcome of an invoice.
type Result struct {
	Number        string
	Done          bool
	Pieces, Cents int64 // 0 if it is not done
}

// App is the declared application.
type App struct {
	App       *txn.App
	Stock     *txn.Table[string, Stock]
	Customers *txn.Table[uint32, int64] // cents charged
	Invoices  *txn.Event[Invoice, Result]
}

// New declares the application with the opening stock of each article.
func New(opening map[string]int64, cost program.Cost) *App {
	app := txn.New("retail")
	a := &App{App: app, Stock: txn.NewTable[string, Stock](app, "stock"), Customers: txn.NewTable[uint32, int64](app, "customers")}
	for code, n := range opening {
		a.Stock.Load(code, Stock{Left: n})
	}
	out := app.Reason("out of stock")
	take := txn.Update(a.Stock, "take", func(c txn.Ctx, qty int64, s *Stock) txn.Verdict {
		cost.Spend(c)
		if s.Left < qty {
			return out
		}
		s.Left -= qty
		s.Sold += qty
		return txn.OK
	})
	giveBack := txn.Update(a.Stock, "give back", func(c txn.Ctx, qty int64, s *Stock) txn.Verdict {
		cost.Spend(c)
		s.Left += qty
		s.Sold -= qty
		return txn.OK
	})
	charge := txn.Upsert(a.Customers, "charge", func(c txn.Ctx, cents int64, balance *int64, _ bool) txn.Verdict {
		cost.Spend(c)
		*balance += cents
		return txn.OK
	})
	a.Invoices = txn.On(app, "invoice", func(p *txn.Plan, v Invoice) {
		for _, l := range v.Lines {
			if l.Qty < 0 {
				giveBack.At(p, l.Code, -l.Qty)
			} else {
				take.At(p, l.Code, l.Qty)
			}
		}
		charge.At(p, v.Customer, v.Cents())
	}, func(out txn.Outcome, v Invoice) Result {
		if !out.Committed() {
			return Result{Number: v.Number}
		}
		return Result{v.Number, true, v.Pieces(), v.Cents()}
	})
	return a
}

// sums adds up the results of invoices.
type sums struct{ done, pieces, cents int64 }

func (s *sums) add(r Result) {
	if r.Done {
		s.done++
	}
	s.pieces += r.Pieces
	s.cents += r.Cents
}

// check verifies that each article's stock is not negative and is, with what
// was sold, the opening stock; and that what was sold and charged is the sum of
// the invoices that were done.
func (a *App) check(opening map[string]int64, invoices sums) error {
	articles, pieces := 0, int64(0)
	for code, s := range a.Stock.All() {
		switch want, ok := opening[code]; {
		case !ok:
			return fmt.Errorf("article %s was not there at the start", code)
		case s.Left < 0:
			return fmt.Errorf("article %s has a stock of %d", code, s.Left)
		case s.Left+s.Sold != want:
			return fmt.Errorf("article %s has a stock of %d and sold %d; the opening stock was %d", code, s.Left, s.Sold, want)
		}
		articles++
		pieces += s.Sold
	}
	cents := int64(0)
	for _, balance := range a.Customers.All() {
		cents += balance
	}
	switch {
	case articles != len(opening):
		return fmt.Errorf("%d articles; at the start there were %d", articles, len(opening))
	case pieces != invoices.pieces:
		return fmt.Errorf("%d pieces were sold; invoices tell of %d", pieces, invoices.pieces)
	case cents != invoices.cents:
		return fmt.Errorf("customers were charged %d cents; invoices tell of %d", cents, invoices.cents)
	}
	return nil
}
