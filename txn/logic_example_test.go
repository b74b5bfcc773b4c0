package txn_test

import (
	"fmt"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/txn"
)

// A fee that is exchanged between two batches. Jobs on nodes do that at a punctuation: see `heddle ctl logic`.
func ExampleLogic() {
	app := txn.New("fees")
	paid := txn.NewTable[string, int](app, "paid")
	fee := txn.NewLogic(app, "fee",
		txn.Variant[func(cents int) int]{Name: "flat", Value: func(int) int { return 30 }},
		txn.Variant[func(cents int) int]{Name: "percent", Value: func(cents int) int { return cents / 50 }},
	)
	pay := txn.Upsert(paid, "pay", func(_ txn.Ctx, cents int, sum *int, _ bool) txn.Verdict {
		*sum += cents + fee.Now()(cents)
		return txn.OK
	})
	payments := txn.On(app, "payment", func(p *txn.Plan, cents int) { pay.At(p, "ann", cents) },
		func(out txn.Outcome, _ int) int { sum, _ := pay.After(out); return sum })
	payments.Each(func(sum int) { fmt.Println(sum) })

	s, err := engine.NewSession(app, engine.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	for _, variant := range []string{"flat", "percent"} {
		if err := app.SetLogic("fee", variant); err != nil {
			fmt.Println(err)
		}
		payments.Push(s.Feed(), 1000)
		if err := s.Run(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 1030
	// 2050
}
