package txn_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/txn"
)

// A logic that is exchanged between batches holds from the next one on: in plans, operations and results.
func TestLogic(t *testing.T) {
	app := txn.New("rates")
	table := txn.NewTable[string, int](app, "sums")
	rate := txn.NewLogic(app, "rate", txn.Variant[int]{"low", 1}, txn.Variant[int]{"high", 10})
	into := txn.NewLogic(app, "into", txn.Variant[func(string) string]{"one", func(string) string { return "all" }},
		txn.Variant[func(string) string]{"each", func(k string) string { return k }})
	add := txn.Upsert(table, "add", func(_ txn.Ctx, n int, v *int, _ bool) txn.Verdict { *v += n * rate.Now(); return txn.OK })
	event := txn.On(app, "event", func(p *txn.Plan, k string) { add.At(p, into.Now()(k), 1) }, func(_ txn.Outcome, _ string) int { return rate.Now() })
	var got []int
	event.Each(func(r int) { got = append(got, r) })
	s, err := engine.NewSession(app, engine.Options{Workers: 2, Strategy: "ns-op-eager", Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	run := func() {
		t.Helper()
		for _, k := range []string{"a", "b"} {
			event.Push(s.Feed(), k)
		}
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
	}
	set := func(name, variant string) {
		t.Helper()
		if err := app.SetLogic(name, variant); err != nil {
			t.Fatal(err)
		}
	}
	run()
	set("rate", "high")
	run()
	set("into", "each")
	run()
	set("rate", "low")
	run()
	if m, err := s.Close(); err != nil || !m.Verified {
		t.Errorf("%v, %+v", err, m)
	}
	for k, want := range map[string]int{"all": 22, "a": 11, "b": 11} {
		if v, _ := table.Peek(k); v != want {
			t.Errorf("%s: %d, want %d", k, v, want)
		}
	}
	if want := []int{1, 1, 10, 10, 10, 10, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("results %v, want %v", got, want)
	}
	if all := app.Logic(); all["rate"] != "low" || all["into"] != "each" || len(all) != 2 {
		t.Errorf("%v", all)
	}
	for _, bad := range [][2]string{{"rat", "low"}, {"rate", "none"}} {
		if err := app.SetLogic(bad[0], bad[1]); err == nil || !strings.Contains(err.Error(), "one of") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestLogicDeclaredWrong(t *testing.T) {
	app := txn.New("wrong")
	txn.NewLogic[int](app, "empty")
	txn.NewLogic(app, "twice", txn.Variant[int]{"a", 1}, txn.Variant[int]{"a", 2})
	txn.NewLogic(app, "twice", txn.Variant[int]{"a", 1})
	txn.NewLogic(app, "", txn.Variant[int]{"", 1})
	err := app.Err()
	for _, want := range []string{`"empty" has no variant`, `has two variants "a"`, `"twice" is declared already`, "logic without a name", "one without a name"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: does not say %q", err, want)
		}
	}
}
