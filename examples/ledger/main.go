// Command ledger is a whole application in 40 lines: `go run ./examples/ledger
// run --verify`.
package main

import (
	"math/rand/v2"

	"github.com/heddle-stream/heddle/cli"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

type transfer struct {
	From, To uint32
	Cents    int64
}

func main() {
	cli.Main(program.Program{Name: "ledger", About: "transfers between accounts", Events: 100_000, New: newLedger})
}

func newLedger(c *program.Config) (*program.Instance, error) {
	app := txn.New("ledger")
	accounts := txn.NewTable[uint32, int64](app, "accounts")
	poor := app.Reason("insufficient funds")
	debit := txn.Update(accounts, "debit", func(_ txn.Ctx, cents int64, balance *int64) txn.Verdict {
		if *balance < cents {
			return poor
		}
		*balance -= cents
		return txn.OK
	})
	credit := txn.Update(accounts, "credit", func(_ txn.Ctx, cents int64, balance *int64) txn.Verdict {
		*balance += cents
		return txn.OK
	})
	transfers := txn.On(app, "transfer", func(p *txn.Plan, t transfer) {
		debit.At(p, t.From, t.Cents)
		credit.At(p, t.To, t.Cents)
	}, func(out txn.Outcome, _ transfer) bool { return out.Committed() })
	for account := range uint32(1000) {
		accounts.Load(account, 500)
	}
	r := rand.New(rand.NewPCG(c.Seed, 1))
	source := program.Generated(c.Events, func(f *txn.Feed) {
		transfers.Push(f, transfer{r.Uint32N(1000), r.Uint32N(1000), r.Int64N(200)})
	})
	return &program.Instance{App: app, Source: source, Total: c.Events}, nil
}
