package metamorphic

import "github.com/heddle-stream/heddle/txn"

// watched is a table with windows of all sorts.
type watched struct {
	note, forget *txn.Op[int16, int64, Op]
	last, within *txn.Window[int16, int64]
	long, timed  *txn.Fold[int16, int64, total]
}

// total is what a fold adds up to.
type total struct{ n, sum int64 }

func newWatched(app *txn.App) *watched {
	t := txn.NewTable[int16, int64](app, "watched")
	low := app.Reason("noted below zero")
	add := func(s *total, v int64) { s.n, s.sum = s.n+1, s.sum+v }
	sub := func(a, b total) total { return total{a.n - b.n, a.sum - b.sum} }
	return &watched{
		note: txn.Upsert(t, "note", func(_ txn.Ctx, o Op, v *int64, _ bool) txn.Verdict {
			if *v = *v/2 + o.Arg; *v < -10 {
				return low
			}
			return txn.OK
		}),
		forget: txn.Delete(t, "forget", func(txn.Ctx, Op, int64) txn.Verdict { return txn.OK }).Lenient(),
		last:   txn.NewWindow(t, "last 5 events", txn.LastEvents(5)),
		within: txn.NewWindow(t, "within 12", txn.Within(12)).WithInForce(),
		long:   txn.NewFold(t, "total of 90 events", txn.LastEvents(90), add, sub),
		timed:  txn.NewFold(t, "total within 30", txn.Within(30), add, sub),
	}
}

func (x *watched) reads(p *txn.Plan, key int16) []txn.Arg {
	return []txn.Arg{x.last.Of(p, key), x.within.Of(p, key), x.long.Of(p, key), x.timed.Of(p, key)}
}

// look digests what the windows show.
func (x *watched) look(c txn.Ctx) int64 {
	h := int64(0)
	mix := func(v int64) { h = (h*31 + v) % 1_000_003 }
	for at, v := range x.last.All(c) {
		mix(at)
		mix(v)
	}
	for at, v := range x.within.All(c) {
		mix(at)
		mix(v)
	}
	if v, ok := x.within.InForce(c); ok {
		mix(v)
	}
	for _, s := range []total{x.long.Get(c), x.timed.Get(c)} {
		mix(s.n)
		mix(s.sum)
	}
	return h
}
