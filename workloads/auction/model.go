package auction

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-stream/heddle/operators"
	"github.com/heddle-stream/heddle/txn"
	"github.com/heddle-stream/heddle/workloads/nexmark"
)

// model is the auction house as maps and a loop.
type model struct {
	accounts map[int64]Account
	lots     map[int64]Lot
	goods    map[int64]int64
	results  []Result
	turnover map[int64]Turnover
}

// dated is an action with when it happens; those of events come before those of windows.
type dated struct {
	at     int64
	window bool
	Action
}

// eventsOf returns all events of an input.
func eventsOf(in operators.Input[nexmark.Event]) []nexmark.Event {
	all := make([]nexmark.Event, in.Total)
	in.Fill(all, 0)
	return all
}

// newModel takes all actions one by one, in the order of their times.
func newModel(events []nexmark.Event, disorder int64) *model {
	var all []dated
	latest := int64(0)
	for i := range events {
		e := &events[i]
		if e.Time < latest-disorder {
			continue
		}
		latest = max(latest, e.Time)
		all = append(all, dated{e.Time, false, actionOf(e)})
		if e.Kind == nexmark.KindAuction {
			a := e.Auction()
			all = append(all, dated{a.Expires, true, Action{Kind: Close, Auction: a.ID}})
		}
	}
	slices.SortStableFunc(all, func(a, b dated) int {
		if d := cmp.Compare(a.at, b.at); d != 0 || !a.window && !b.window {
			return d
		}
		if a.window != b.window {
			if b.window {
				return -1
			}
			return 1
		}
		return cmp.Compare(operators.HashOf(a.Auction), operators.HashOf(b.Auction))
	})
	m := &model{map[int64]Account{}, map[int64]Lot{}, map[int64]int64{}, nil, map[int64]Turnover{}}
	for _, d := range all {
		r := m.act(d.Action)
		m.results = append(m.results, r)
		if r.Kind == Close && r.Why == "" && r.Person != 0 {
			start := d.at - d.at%int64(shortWindow)
			t := m.turnover[start]
			m.turnover[start] = Turnover{start, t.Sales + 1, t.Cents + r.Price}
		}
	}
	return m
}

func (m *model) act(a Action) Result {
	r := Result{a.Kind, a.Auction, a.Person, a.Price, ""}
	lot, shown := m.lots[a.Auction]
	switch a.Kind {
	case Join:
		if _, ok := m.accounts[a.Person]; ok {
			r.Why = "exists"
			return r
		}
		m.accounts[a.Person] = Account{Free: moneyAtStart}
		m.goods[a.Person] += goodsAtStart
	case Open:
		switch {
		case m.goods[a.Person] == 0:
			r.Why = "nothing to sell"
		case shown:
			r.Why = "exists"
		default:
			m.goods[a.Person]--
			m.lots[a.Auction] = Lot{Seller: a.Person, Reserve: a.Price}
		}
	case Bid:
		r.Why = m.bid(a, lot, shown)
	case Close:
		r.Person, r.Price = 0, 0
		if !shown {
			r.Why = "missing"
			return r
		}
		r.Person, r.Price = lot.Bidder, lot.Price
		delete(m.lots, a.Auction)
		if lot.Bidder == 0 {
			m.goods[lot.Seller]++
			return r
		}
		winner := m.accounts[lot.Bidder]
		winner.Held -= lot.Price
		m.accounts[lot.Bidder] = winner
		seller := m.accounts[lot.Seller]
		seller.Free += lot.Price
		m.accounts[lot.Seller] = seller
		m.goods[lot.Bidder]++
	}
	return r
}

// bid returns why a bid fails, if it does.
func (m *model) bid(a Action, lot Lot, shown bool) string {
	bidder, known := m.accounts[a.Person]
	free := bidder.Free
	if lot.Bidder == a.Person {
		free += lot.Price
	}
	switch {
	case !shown:
		return "missing"
	case a.Price <= lot.Price || a.Price < lot.Reserve:
		return "too low"
	case !known:
		return "no account"
	case free < a.Price:
		return "insufficient funds"
	}
	if lot.Bidder != 0 {
		before := m.accounts[lot.Bidder]
		before.Free, before.Held = before.Free+lot.Price, before.Held-lot.Price
		m.accounts[lot.Bidder] = before
	}
	bidder = m.accounts[a.Person]
	bidder.Free, bidder.Held = bidder.Free-a.Price, bidder.Held+a.Price
	m.accounts[a.Person] = bidder
	lot.Bidder, lot.Price = a.Person, a.Price
	m.lots[a.Auction] = lot
	return ""
}

// compare tells the first difference between what the job came to and the model.
func (m *model) compare(h *House, results []Result, turnovers []Turnover) error {
	for i := range min(len(results), len(m.results)) {
		if results[i] != m.results[i] {
			return fmt.Errorf("result %d is %+v, the model has %+v", i, results[i], m.results[i])
		}
	}
	if len(results) != len(m.results) {
		return fmt.Errorf("%d results, the model has %d", len(results), len(m.results))
	}
	want := slices.SortedFunc(maps.Values(m.turnover), func(a, b Turnover) int { return cmp.Compare(a.Start, b.Start) })
	if !slices.Equal(turnovers, want) {
		return fmt.Errorf("turnovers are %v, the model has %v", turnovers, want)
	}
	return errors.Join(same("account", h.Accounts, m.accounts), same("lot", h.Lots, m.lots), same("goods of", h.Goods, m.goods))
}

// same compares a table with a map.
func same[V comparable](what string, t *txn.Table[int64, V], want map[int64]V) error {
	n := 0
	for k, v := range t.All() {
		if w, ok := want[k]; !ok || v != w {
			return fmt.Errorf("%s %d is %+v, the model has %+v", what, k, v, w)
		}
		n++
	}
	if n != len(want) {
		return fmt.Errorf("%d times %s, the model has %d", n, what, len(want))
	}
	return nil
}
