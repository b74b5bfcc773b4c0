package txn_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/invariants"
	"github.com/heddle-stream/heddle/txn"
)

// lists is an application whose values share memory when copied.
func lists(clone func([]int) []int) (*txn.App, *txn.Event[int, int], *txn.Table[string, []int]) {
	app := txn.New("lists")
	table := txn.NewTable[string, []int](app, "lists", txn.Clone[string](clone))
	table.Load("a", []int{0})
	odd := app.Reason("odd")
	first := txn.Update(table, "set first", func(_ txn.Ctx, n int, v *[]int) txn.Verdict {
		(*v)[0] = n
		if n%2 != 0 {
			return odd // after the change, which must not be seen
		}
		return txn.OK
	})
	sets := txn.On(app, "set", func(p *txn.Plan, n int) { first.At(p, "a", n) }, func(out txn.Outcome, _ int) int {
		v, _ := first.Before(out)
		return v[0]
	})
	return app, sets, table
}

func TestCloneKeepsVersionsApart(t *testing.T) {
	for _, s := range []string{"serial", "ns-op-eager", "bfs-chain-lazy"} {
		app, sets, table := lists(slices.Clone[[]int])
		if _, err := engine.Run(context.Background(), app, sets.Slice([]int{2, 3, 4, 5}), engine.Options{Strategy: s, Verify: true}); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if v, _ := table.Peek("a"); v[0] != 4 {
			t.Errorf("%s: the list starts with %d, expected 4", s, v[0])
		}
	}
}

// Checked builds find a Clone that does not copy.
func TestShallowCloneIsFound(t *testing.T) {
	if !invariants.Enabled {
		t.Log("needs -tags invariants")
		return
	}
	app, sets, _ := lists(func(v []int) []int { return v })
	_, err := engine.Run(context.Background(), app, sets.Slice([]int{2}), engine.Options{Strategy: "ns-op-eager"})
	var p *engine.PanicError
	if !errors.As(err, &p) || !strings.Contains(err.Error(), `table "lists" needs a txn.Clone`) {
		t.Fatalf("got %v", err)
	}
}

func TestDeclarationMistakesAreListed(t *testing.T) {
	app := txn.New("wrong")
	txn.NewTable[float64, int](app, "by float")
	txn.NewTable[string, []int](app, "shared")
	table := txn.NewTable[string, int](app, "")
	txn.Update[string, int, int](table, "nothing", nil)
	txn.Get(table, "nothing", func(txn.Ctx, int, int, bool) txn.Verdict { return txn.OK })
	err := app.Err()
	for _, want := range []string{
		"holds a float, and NaN", "give txn.Clone", "table without a name", `operation "nothing" has a nil function`,
		`operation "nothing" is declared already at clone_test.go:`, "has no event type", "clone_test.go:",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

// A plan that misuses reads panics with a message that names what is wrong, and
// stops the run at its event.
func TestPlanMistakesAreNamed(t *testing.T) {
	for want, plan := range map[string]func(p *txn.Plan, get *txn.Op[int, int, int], param *txn.Param[int, int]){
		"read that it passed to no operation": func(p *txn.Plan, _ *txn.Op[int, int, int], param *txn.Param[int, int]) {
			param.Of(p, 1)
		},
		"read other was made before another operation was listed": func(p *txn.Plan, get *txn.Op[int, int, int], param *txn.Param[int, int]) {
			read := param.Of(p, 1)
			get.At(p, 1, 0)
			get.At(p, 2, 0, read)
		},
		"read other was passed to two operations": func(p *txn.Plan, get *txn.Op[int, int, int], param *txn.Param[int, int]) {
			r := param.Of(p, 1)
			get.At(p, 1, 0, r)
			get.At(p, 2, 0, r)
		},
		"read other was not passed to operation look": func(p *txn.Plan, get *txn.Op[int, int, int], _ *txn.Param[int, int]) {
			get.At(p, 1, 0)
		},
	} {
		for _, s := range []string{"serial", "ns-op-eager"} {
			app := txn.New("plans")
			table := txn.NewTable[int, int](app, "t")
			param := txn.NewParam(table, "other")
			look := txn.Get(table, "look", func(c txn.Ctx, _, _ int, _ bool) txn.Verdict {
				param.Get(c)
				return txn.OK
			})
			ev := txn.On(app, "e", func(p *txn.Plan, _ int) { plan(p, look, param) }, func(txn.Outcome, int) bool { return true })
			_, err := engine.Run(context.Background(), app, ev.Slice([]int{1}), engine.Options{Strategy: s})
			var p *engine.PanicError
			if !errors.As(err, &p) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in %v", s, want, err)
			}
		}
	}
}
