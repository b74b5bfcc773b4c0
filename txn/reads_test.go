package txn_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/txn"
)

// Reads that a plan passes out of the order in which it made them, twice, and after
// operations on their keys show the same under each strategy, with and without
// somebody looking at the fingerprints.
func TestReadsInAnyOrder(t *testing.T) {
	const events = 40
	var want []string
	for _, s := range []string{"serial", "ns-op-eager", "bfs-chain-lazy"} {
		for _, verify := range []bool{false, true} {
			app := txn.New("reads")
			table := txn.NewTable[int, int](app, "t")
			for k := range 6 {
				table.Load(k, 10*k)
			}
			left, right := txn.NewParam(table, "left"), txn.NewParam(table, "right")
			odd := app.Reason("odd")
			mix := txn.Update(table, "mix", func(c txn.Ctx, n int, v *int) txn.Verdict {
				l, _ := left.Get(c)
				r, _ := right.Get(c)
				*v += 3*l - 2*r + n
				for x := range left.All(c) {
					*v += x
				}
				if *v%7 == 3 {
					return odd
				}
				return txn.OK
			})
			mixes := txn.On(app, "mix", func(p *txn.Plan, n int) {
				key := func(i int) int { return (n + i) % 6 }
				a, b := left.AtStart(p, key(0)), right.AtStart(p, key(1))
				c := left.Of(p, key(2))
				mix.At(p, key(0), n, c, b, a)
				mix.At(p, key(1), n, a, b)
				d, e := right.Of(p, key(0)), left.Of(p, key(1))
				f := left.AtStart(p, key(0))
				mix.At(p, key(0), n, d, e, f)
				mix.At(p, key(3), n, b, a, b)
				mix.At(p, key(4), n, a, b, f)
			}, func(out txn.Outcome, n int) string {
				text := fmt.Sprint(n, " ", out.Reason())
				for arg, v := range mix.All(out) {
					text += fmt.Sprint(" ", arg, ":", v%1000)
				}
				before, _ := mix.Before(out)
				return fmt.Sprint(text, " ", before%1000)
			})
			var got []string
			mixes.Each(func(s string) { got = append(got, s) })
			numbers := make([]int, events)
			for i := range numbers {
				numbers[i] = i
			}
			if _, err := engine.Run(context.Background(), app, mixes.Slice(numbers), engine.Options{Strategy: s, Verify: verify}); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, verify %v:\n%v\nbut serial:\n%v", s, verify, got, want)
			}
		}
	}
}
