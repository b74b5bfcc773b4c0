package osed

import (
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Found is the outcome of a text, all 0 but the id if it was dropped.
type Found struct {
	ID      uint32
	Done    bool
	Words   uint8
	Burst   uint16
	Cluster uint32
	Size    uint32 // of the cluster, with this text
	Rate    int64
	Started bool // an event
}

// App is the declared application.
type App struct {
	App        *txn.App
	Seen       *txn.Table[string, int64] // contents of texts and when they came last
	Texts      *txn.Table[uint32, Place]
	Statistics *txn.Table[string, Statistic]
	Trends     *txn.Table[string, Trend]
	Index      *txn.Table[string, uint32] // word to the cluster that it burst in last
	Clusters   *txn.Table[uint32, Cluster]
	Events     *txn.Event[Text, Found]
}

// New declares the application.
func New(r rules, cost program.Cost) *App {
	app := txn.New("osed")
	a := &App{
		App: app, Seen: txn.NewTable[string, int64](app, "contents"), Texts: txn.NewTable[uint32, Place](app, "texts"),
		Statistics: txn.NewTable[string, Statistic](app, "statistics"), Trends: txn.NewTable[string, Trend](app, "trends"),
		Index: txn.NewTable[string, uint32](app, "index"), Clusters: txn.NewTable[uint32, Cluster](app, "clusters"),
	}
	register := a.declareRegister(&r, cost)
	count := a.declareCount(&r, cost)
	match, choose := a.declareMatch(&r, cost)
	update, join, grow := a.declareClusters(&r, cost)
	a.Events = txn.On(app, "text", func(p *txn.Plan, t Text) {
		register(p, &t)
		count(p, &t)
		choose(p, &t)
		update(p, &t)
	}, func(out txn.Outcome, t Text) Found {
		if !out.Committed() {
			return Found{ID: t.ID}
		}
		place, _ := match.After(out)
		before, _ := join.Before(out)
		after, _ := grow.After(out)
		return Found{t.ID, true, place.Words, place.Burst, place.Cluster, after.Size, after.Rate, after.Event && !before.Event}
	})
	return a
}

// declareRegister declares the first step: a text that says nothing, or the same
// as one shortly before, is dropped.
func (a *App) declareRegister(r *rules, cost program.Cost) func(*txn.Plan, *Text) {
	empty, again := a.App.Reason("no words"), a.App.Reason("repetition")
	see := txn.Upsert(a.Seen, "see content", func(c txn.Ctx, now int64, last *int64, found bool) txn.Verdict {
		cost.Spend(c)
		if found && now-*last < r.repeat {
			return again
		}
		*last = now
		return txn.OK
	})
	register := txn.Insert(a.Texts, "register", func(c txn.Ctx, t Text, place *Place) txn.Verdict {
		cost.Spend(c)
		if len(t.Words) == 0 {
			return empty
		}
		*place = Place{Time: t.Time, Words: uint8(len(t.Words))}
		return txn.OK
	})
	return func(p *txn.Plan, t *Text) {
		register.At(p, t.ID, *t)
		see.At(p, t.content(), t.Time)
	}
}

// declareCount declares the second and third step, of each word.
func (a *App) declareCount(r *rules, cost program.Cost) func(*txn.Plan, *Text) {
	count := txn.Upsert(a.Statistics, "count word", func(c txn.Ctx, window int64, s *Statistic, _ bool) txn.Verdict {
		cost.Spend(c)
		s.count(window)
		return txn.OK
	})
	type occurrence struct{ id, n uint32 }
	statistic := txn.NewParam(a.Statistics, "statistic of a word")
	look := txn.Upsert(a.Trends, "look for burst", func(c txn.Ctx, o occurrence, t *Trend, _ bool) txn.Verdict {
		cost.Spend(c)
		s, _ := statistic.Get(c)
		t.look(r, s, o.id, o.n)
		return txn.OK
	})
	return func(p *txn.Plan, t *Text) {
		for _, w := range t.Words {
			count.At(p, w.Text, t.Window)
		}
		for _, w := range t.Words {
			look.At(p, w.Text, occurrence{t.ID, w.N}, statistic.Of(p, w.Text))
		}
	}
}

// declareMatch declares the fourth step: words that burst lead to the clusters
// that they burst in last.
func (a *App) declareMatch(r *rules, cost program.Cost) (*txn.Op[uint32, Place, Text], func(*txn.Plan, *Text)) {
	trend, indexed := txn.NewParam(a.Trends, "trend of a word"), txn.NewParam(a.Index, "cluster of a word")
	candidate := txn.NewLateParam(a.Clusters, "candidate", func(c txn.Ctx, _ uint8) (uint32, bool) {
		t, _ := trend.Get(c)
		cluster, _ := indexed.Get(c)
		return cluster, t.Weight > 0 && cluster != 0
	})
	match := txn.Update(a.Texts, "find cluster", func(c txn.Ctx, t Text, place *Place) txn.Verdict {
		cost.Spend(c)
		best := choice{rules: r, text: &t}
		i := 0
		for w := range trend.All(c) {
			best.weigh(i, w.Weight)
			i++
		}
		for cluster, found := range candidate.All(c) {
			if found {
				best.offer(cluster.ID, &cluster)
			}
		}
		place.Burst, place.Cluster = best.result()
		return txn.OK
	})
	return match, func(p *txn.Plan, t *Text) {
		var reads [2 * wordsMax]txn.Arg
		n := len(t.Words)
		for i, w := range t.Words {
			reads[i] = trend.Of(p, w.Text)
			reads[n+i] = candidate.Then(p, 0, reads[i], indexed.Of(p, w.Text))
		}
		match.At(p, t.ID, *t, reads[:2*n]...)
	}
}

// declareClusters declares the last steps: the text goes into its cluster, the
// cluster may become an event, and its words will lead there.
func (a *App) declareClusters(r *rules, cost program.Cost) (update func(*txn.Plan, *Text), join, grow *txn.LateOp[uint32, Cluster, Text]) {
	place := txn.NewParam(a.Texts, "place of a text")
	chosen := func(c txn.Ctx, _ Text) (uint32, txn.Verdict) {
		at, _ := place.Get(c)
		return at.Cluster, txn.OK
	}
	join = txn.Late(txn.Upsert(a.Clusters, "join cluster", func(c txn.Ctx, t Text, cluster *Cluster, _ bool) txn.Verdict {
		cost.Spend(c)
		at, _ := place.Get(c)
		cluster.ID = at.Cluster
		cluster.join(&t, at.Burst)
		return txn.OK
	}), chosen)
	grow = txn.Late(txn.Update(a.Clusters, "grow", func(c txn.Ctx, t Text, cluster *Cluster) txn.Verdict {
		cost.Spend(c)
		cluster.grow(r, t.Time)
		return txn.OK
	}), chosen)
	lead := txn.Upsert(a.Index, "lead to cluster", func(c txn.Ctx, word uint8, cluster *uint32, _ bool) txn.Verdict {
		cost.Spend(c)
		if at, _ := place.Get(c); at.Burst>>word&1 != 0 {
			*cluster = at.Cluster
		}
		return txn.OK
	})
	return func(p *txn.Plan, t *Text) {
		join.Then(p, *t, place.Of(p, t.ID))
		grow.Then(p, *t, place.Of(p, t.ID))
		for i, w := range t.Words {
			lead.At(p, w.Text, uint8(i), place.Of(p, t.ID))
		}
	}, join, grow
}
