package txn_test

import (
	"context"
	"fmt"
	"io"

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

// A commutative operation: everybody adds to one counter, and nobody waits for
// anybody. Who reads the counter sees all that was added before.
func ExampleMerge() {
	app := txn.New("shop")
	totals := txn.NewTable[string, int](app, "totals")
	add := txn.Merge(totals, "add", func(_ txn.Ctx, cents int) (int, txn.Verdict) { return cents, txn.OK },
		func(total *int, cents int) { *total += cents })
	look := txn.Get(totals, "look", func(txn.Ctx, int, int, bool) txn.Verdict { return txn.OK })
	sales := txn.On(app, "sale", func(p *txn.Plan, cents int) { add.At(p, "today", cents) }, func(txn.Outcome, int) string { return "sold" })
	questions := txn.On(app, "question", func(p *txn.Plan, _ int) { look.At(p, "today", 0) }, func(out txn.Outcome, _ int) string {
		total, _ := look.Before(out)
		return fmt.Sprint("total ", total)
	})
	sales.Each(func(s string) { fmt.Println(s) })
	questions.Each(func(s string) { fmt.Println(s) })

	feed := func(_ context.Context, f *txn.Feed, _ int) error {
		sales.Push(f, 5)
		sales.Push(f, 7)
		questions.Push(f, 0)
		sales.Push(f, 9)
		questions.Push(f, 0)
		return io.EOF
	}
	if _, err := engine.Run(context.Background(), app, txn.SourceFunc(feed), engine.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// sold
	// sold
	// total 12
	// sold
	// total 21
}

// A computed key: rent goes to whoever owns the house at that moment.
func ExampleLate() {
	app := txn.New("rents")
	houses := txn.NewTable[int, string](app, "houses") // who owns them
	purses := txn.NewTable[string, int](app, "purses")
	vacant := app.Reason("vacant")
	owner := txn.NewParam(houses, "owner")
	sell := txn.Upsert(houses, "sell", func(_ txn.Ctx, to string, who *string, _ bool) txn.Verdict {
		*who = to
		return txn.OK
	})
	pay := txn.Upsert(purses, "pay", func(_ txn.Ctx, n int, purse *int, _ bool) txn.Verdict {
		*purse += n
		return txn.OK
	})
	rent := txn.Late(pay, func(c txn.Ctx, _ int) (string, txn.Verdict) {
		who, found := owner.Get(c)
		if !found {
			return "", vacant
		}
		return who, txn.OK
	})
	type event struct {
		House int
		To    string // who buys it; "" for rent of 5
	}
	events := txn.On(app, "event", func(p *txn.Plan, e event) {
		if e.To != "" {
			sell.At(p, e.House, e.To)
			return
		}
		rent.Then(p, 5, owner.Of(p, e.House))
	}, func(out txn.Outcome, e event) string {
		if who, ok := rent.Key(out); ok {
			now, _ := rent.After(out)
			return fmt.Sprintf("%s has %d", who, now)
		}
		return "house " + fmt.Sprint(e.House) + ": " + out.Reason() + e.To
	})
	events.Each(func(s string) { fmt.Println(s) })
	source := events.Slice([]event{{1, ""}, {1, "ann"}, {1, ""}, {1, "bob"}, {1, ""}, {1, ""}})
	if _, err := engine.Run(context.Background(), app, source, engine.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// house 1: vacant
	// house 1: ann
	// ann has 5
	// house 1: bob
	// bob has 5
	// bob has 10
}

// A window: at most two failed attempts within ten seconds.
func ExampleNewFold() {
	app := txn.New("door")
	attempts := txn.NewTable[string, int](app, "attempts")
	blocked := app.Reason("too many attempts")
	recent := txn.NewFold(attempts, "recent", txn.Within(10),
		func(n *int, _ int) { *n++ }, func(later, earlier int) int { return later - earlier })
	try := txn.Upsert(attempts, "try", func(c txn.Ctx, _ int, total *int, _ bool) txn.Verdict {
		if recent.Get(c) >= 2 {
			return blocked
		}
		*total++
		return txn.OK
	})
	type attempt struct {
		Second int64
		Who    string
	}
	tries := txn.On(app, "attempt", func(p *txn.Plan, a attempt) { try.At(p, a.Who, 0, recent.Of(p, a.Who)) },
		func(out txn.Outcome, a attempt) string { return fmt.Sprint(a.Second, " ", a.Who, " ", out.Reason()) },
		txn.EventTime[attempt, string](func(a attempt) int64 { return a.Second }))
	tries.Each(func(s string) { fmt.Printf("%q\n", s) })
	source := tries.Slice([]attempt{{1, "eve"}, {2, "eve"}, {3, "eve"}, {4, "ann"}, {12, "eve"}, {12, "eve"}})
	if _, err := engine.Run(context.Background(), app, source, engine.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// "1 eve "
	// "2 eve "
	// "3 eve too many attempts"
	// "4 ann "
	// "12 eve "
	// "12 eve too many attempts"
}
