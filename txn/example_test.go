package txn_test

import (
	"context"
	"fmt"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/txn"
)

// Transfer moves money if the payer has it and the payee has an account.
type Transfer struct {
	From, To string
	Cents    int64
}

// Receipt is what becomes of a transfer.
type Receipt struct {
	Done bool
	Left int64 // of the payer
	Why  string
}

// A transfer with a condition on another account, and an abort with a reason.
func Example() {
	app := txn.New("ledger")
	accounts := txn.NewTable[string, int64](app, "accounts")
	accounts.Load("ann", 100)
	accounts.Load("bob", 0)
	poor, closed := app.Reason("insufficient funds"), app.Reason("no such payee")

	payee := txn.NewParam(accounts, "payee") // another key that debit looks at
	debit := txn.Update(accounts, "debit", func(c txn.Ctx, cents int64, balance *int64) txn.Verdict {
		if _, found := payee.Get(c); !found {
			return closed
		}
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
	transfers := txn.On(app, "transfer", func(p *txn.Plan, t Transfer) {
		debit.At(p, t.From, t.Cents, payee.Of(p, t.To))
		credit.At(p, t.To, t.Cents)
	}, func(out txn.Outcome, _ Transfer) Receipt {
		left, _ := debit.After(out)
		return Receipt{out.Committed(), left, out.Reason()}
	})
	transfers.Each(func(r Receipt) { fmt.Printf("%+v\n", r) })

	source := transfers.Slice([]Transfer{{"ann", "bob", 70}, {"ann", "bob", 70}, {"bob", "eve", 1}})
	if _, err := engine.Run(context.Background(), app, source, engine.Options{}); err != nil {
		fmt.Println(err)
	}
	bob, _ := accounts.Peek("bob")
	fmt.Println("bob has", bob)
	// Output:
	// {Done:true Left:30 Why:}
	// {Done:false Left:0 Why:insufficient funds}
	// {Done:false Left:0 Why:no such payee}
	// bob has 70
}

// Insert and delete: a name belongs to one owner until it is given up.
func ExampleInsert() {
	app := txn.New("names")
	names := txn.NewTable[string, string](app, "names")
	other := app.Reason("belongs to somebody else")
	claim := txn.Insert(names, "claim", func(_ txn.Ctx, who string, owner *string) txn.Verdict {
		*owner = who
		return txn.OK
	})
	release := txn.Delete(names, "release", func(_ txn.Ctx, who string, owner string) txn.Verdict {
		if owner != who {
			return other
		}
		return txn.OK
	})
	type request struct{ Verb, Name, Who string }
	requests := txn.On(app, "request", func(p *txn.Plan, r request) {
		if r.Verb == "claim" {
			claim.At(p, r.Name, r.Who)
		} else {
			release.At(p, r.Name, r.Who)
		}
	}, func(out txn.Outcome, r request) string { return r.Who + " " + r.Verb + "s: " + out.Reason() })
	requests.Each(func(s string) { fmt.Printf("%q\n", s) })

	source := requests.Slice([]request{
		{"claim", "moon", "ann"}, {"claim", "moon", "bob"}, {"release", "moon", "bob"}, {"release", "moon", "ann"}, {"claim", "moon", "bob"},
	})
	if _, err := engine.Run(context.Background(), app, source, engine.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// "ann claims: "
	// "bob claims: exists"
	// "bob releases: belongs to somebody else"
	// "ann releases: "
	// "bob claims: "
}

// Several operations of one transaction on one key act in order.
func ExampleOp_All() {
	app := txn.New("stock")
	stock := txn.NewTable[string, int](app, "stock")
	stock.Load("pen", 10)
	take := txn.Update(stock, "take", func(_ txn.Ctx, n int, left *int) txn.Verdict {
		*left -= n
		return txn.OK
	})
	type order struct{ Lines []int }
	orders := txn.On(app, "order", func(p *txn.Plan, o order) {
		for _, n := range o.Lines {
			take.At(p, "pen", n)
		}
	}, func(out txn.Outcome, _ order) string {
		s := ""
		for n, left := range take.All(out) {
			s += fmt.Sprintf("%d taken, %d left; ", n, left)
		}
		return s
	})
	orders.Each(func(s string) { fmt.Println(s) })
	if _, err := engine.Run(context.Background(), app, orders.Slice([]order{{[]int{1, 2, 3}}}), engine.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output: 1 taken, 9 left; 2 taken, 7 left; 3 taken, 4 left;
}
