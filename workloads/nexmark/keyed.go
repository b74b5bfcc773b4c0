package nexmark

import (
	"cmp"
	"slices"

	"github.com/heddle-stream/heddle/operators"
)

type local struct {
	Name, City, State string
	Auction           int64
}

// won is what an auction was sold for, and who had it.
type won struct {
	Auction, Seller, Category int64
	Bid                       Bid
}

// mean is an average so far: of Sum and N.
type mean struct{ Key, Sum, N int64 }

type ranked struct {
	Bid  Bid
	Rank int64
}

type wanted struct {
	Bid     Bid
	Auction Auction
}

type threefold struct {
	Bid     Bid
	Name    string
	Auction int64
}

const bestKept = 10

func keyedQueries() []Query {
	return []Query{
		query("q3", "auctions of a category by persons of three states", q3, q3Model),
		query("q4", "average price at which auctions of a category were sold, so far", func(events operators.Stream[Event]) operators.Stream[mean] {
			type sums struct{ sum, n int64 }
			return operators.Fold(operators.KeyBy(winners(events), func(w *won) int64 { return w.Category }), "average",
				func(category int64, s *sums, w *won, _ int64, emit func(mean)) {
					s.sum, s.n = s.sum+w.Bid.Price, s.n+1
					emit(mean{category, s.sum, s.n})
				})
		}, func(events []Event) (out []mean) {
			sums := map[int64]mean{}
			for _, w := range winnersModel(events) {
				m := sums[w.Category]
				m = mean{w.Category, m.Sum + w.Bid.Price, m.N + 1}
				sums[w.Category] = m
				out = append(out, m)
			}
			return out
		}),
		query("q6", "average price of the last ten auctions that each person sold", func(events operators.Stream[Event]) operators.Stream[mean] {
			return operators.Fold(operators.KeyBy(winners(events), func(w *won) int64 { return w.Seller }), "average",
				func(seller int64, last *[]int64, w *won, _ int64, emit func(mean)) {
					*last = append(*last, w.Bid.Price)
					*last = (*last)[max(0, len(*last)-bestKept):]
					m := mean{seller, 0, int64(len(*last))}
					for _, p := range *last {
						m.Sum += p
					}
					emit(m)
				})
		}, func(events []Event) (out []mean) {
			sold := map[int64][]int64{}
			for _, w := range winnersModel(events) {
				sold[w.Seller] = append(sold[w.Seller], w.Bid.Price)
				all := sold[w.Seller]
				m := mean{Key: w.Seller}
				for i := len(all) - 1; i >= 0 && m.N < bestKept; i-- {
					m.Sum, m.N = m.Sum+all[i], m.N+1
				}
				out = append(out, m)
			}
			return out
		}),
		query("q9", "the winning bid of each auction", winners, winnersModel),
		query("q18", "the last bid of each bidder for an auction, each time that there is a later one", func(events operators.Stream[Event]) operators.Stream[Bid] {
			return operators.Fold(operators.KeyBy(bids(events), func(b *Bid) [2]int64 { return [2]int64{b.Bidder, b.Auction} }), "last",
				func(_ [2]int64, last *int64, b *Bid, at int64, emit func(Bid)) {
					if at >= *last {
						*last = at
						emit(*b)
					}
				})
		}, func(events []Event) (out []Bid) {
			last := map[[2]int64]Bid{}
			eachBid(events, func(b Bid) {
				k := [2]int64{b.Bidder, b.Auction}
				if old, ok := last[k]; !ok || b.Time >= old.Time {
					last[k] = b
					out = append(out, b)
				}
			})
			return out
		}),
		query("q19", "the ten highest bids for each auction, each time that there is a new one", q19, q19Model),
		query("q20", "bids for auctions of a category, with the auction", q20, q20Model),
		query("q23", "bids of persons who joined and opened auctions, with these", q23, q23Model),
	}
}

// q3Category is the category that q3 and q20 ask for.
const q3Category = 10

func near(state string) bool { return state == "OR" || state == "ID" || state == "CA" }

// q3 keeps by person who that is, and the auctions that came before.
func q3(events operators.Stream[Event]) operators.Stream[local] {
	type seller struct {
		known   bool
		who     Person
		waiting []int64
	}
	some := operators.Filter(events, "some", func(e *Event) bool {
		p := e.Person()
		return e.Kind == KindPerson && near(p.State()) || e.Kind == KindAuction && e.Auction().Category == q3Category
	})
	byPerson := operators.KeyBy(some, func(e *Event) int64 {
		if e.Kind == KindPerson {
			return e.Person().ID
		}
		return e.Auction().Seller
	})
	return operators.Fold(byPerson, "join", func(_ int64, s *seller, e *Event, _ int64, emit func(local)) {
		if e.Kind == KindPerson {
			s.known, s.who = true, e.Person()
			for _, a := range s.waiting {
				emit(local{s.who.Name(), s.who.City(), s.who.State(), a})
			}
			s.waiting = nil
		} else if a := e.Auction(); s.known {
			emit(local{s.who.Name(), s.who.City(), s.who.State(), a.ID})
		} else {
			s.waiting = append(s.waiting, a.ID)
		}
	})
}

func q3Model(events []Event) (out []local) {
	persons := map[int64]Person{}
	for _, e := range events {
		if e.Kind == KindPerson {
			persons[e.Person().ID] = e.Person()
		}
	}
	for _, e := range events {
		if a := e.Auction(); e.Kind == KindAuction && a.Category == q3Category {
			if p, ok := persons[a.Seller]; ok && near(p.State()) {
				out = append(out, local{p.Name(), p.City(), p.State(), a.ID})
			}
		}
	}
	return out
}

// better reports whether a bid wins against another one.
func better(a, b *Bid) bool {
	return a.Price > b.Price || a.Price == b.Price && (a.Time < b.Time || a.Time == b.Time && a.Bidder < b.Bidder)
}

// winners returns the best bid of each auction that has one at or above its reserve, when it
// closes. Bids count from the time on at which it opens until it closes.
func winners(events operators.Stream[Event]) operators.Stream[won] {
	type sale struct {
		known   bool
		auction Auction
		best    Bid
		waiting []Bid // that came before the auction
	}
	offer := func(s *sale, b *Bid) {
		a := &s.auction
		if b.Time >= a.Time && b.Time < a.Expires && b.Price >= a.Reserve && (s.best.Price == 0 || better(b, &s.best)) {
			s.best = *b
		}
	}
	some := operators.Filter(events, "sales", func(e *Event) bool { return e.Kind != KindPerson })
	byID := operators.KeyBy(some, func(e *Event) int64 { return e.id })
	return operators.Until(byID, "winner", func(_ int64, s *sale, e *Event, at int64) int64 {
		switch {
		case e.Kind == KindAuction:
			s.known, s.auction = true, e.Auction()
			for i := range s.waiting {
				offer(s, &s.waiting[i])
			}
			s.waiting = nil
			return s.auction.Expires
		case s.known:
			b := e.Bid()
			offer(s, &b)
			return s.auction.Expires
		}
		s.waiting = append(s.waiting, e.Bid())
		return at + DisorderMax + second // nothing that old comes any more
	}, func(id int64, s *sale, emit func(won)) {
		if s.best.Price > 0 {
			emit(won{id, s.auction.Seller, s.auction.Category, s.best})
		}
	})
}

// winnersModel returns them in the order in which auctions close.
func winnersModel(events []Event) (out []won) {
	all := map[int64][]Bid{}
	eachBid(events, func(b Bid) { all[b.Auction] = append(all[b.Auction], b) })
	type closing struct {
		at int64
		w  won
	}
	var closed []closing
	for _, e := range events {
		if e.Kind != KindAuction {
			continue
		}
		a := e.Auction()
		var valid []Bid
		for _, b := range all[a.ID] {
			if b.Time >= a.Time && b.Time < a.Expires && b.Price >= a.Reserve {
				valid = append(valid, b)
			}
		}
		slices.SortFunc(valid, func(x, y Bid) int {
			return cmp.Or(cmp.Compare(y.Price, x.Price), cmp.Compare(x.Time, y.Time), cmp.Compare(x.Bidder, y.Bidder))
		})
		if len(valid) > 0 {
			closed = append(closed, closing{a.Expires, won{a.ID, a.Seller, a.Category, valid[0]}})
		}
	}
	slices.SortFunc(closed, func(x, y closing) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(operators.HashOf(x.w.Auction), operators.HashOf(y.w.Auction)))
	})
	for _, c := range closed {
		out = append(out, c.w)
	}
	return out
}

func q19(events operators.Stream[Event]) operators.Stream[ranked] {
	return operators.Fold(operators.KeyBy(bids(events), byAuction), "best", func(_ int64, best *[]Bid, b *Bid, _ int64, emit func(ranked)) {
		at, _ := slices.BinarySearchFunc(*best, b, func(have Bid, b *Bid) int {
			if have.Price >= b.Price {
				return -1
			}
			return 1
		})
		if at < bestKept {
			*best = slices.Insert(*best, at, *b)
			*best = (*best)[:min(len(*best), bestKept)]
			emit(ranked{*b, int64(at + 1)})
		}
	})
}

func q19Model(events []Event) (out []ranked) {
	before := map[int64][]Bid{}
	eachBid(events, func(b Bid) {
		rank := int64(1)
		for _, o := range before[b.Auction] {
			if o.Price >= b.Price {
				rank++
			}
		}
		before[b.Auction] = append(before[b.Auction], b)
		if rank <= bestKept {
			out = append(out, ranked{b, rank})
		}
	})
	return out
}

func q20(events operators.Stream[Event]) operators.Stream[wanted] {
	type sale struct {
		known, other bool
		auction      Auction
		waiting      []Bid
	}
	some := operators.Filter(events, "sales", func(e *Event) bool { return e.Kind != KindPerson })
	return operators.Fold(operators.KeyBy(some, func(e *Event) int64 { return e.id }), "join", func(_ int64, s *sale, e *Event, _ int64, emit func(wanted)) {
		switch {
		case e.Kind == KindAuction:
			s.auction = e.Auction()
			s.known, s.other = s.auction.Category == q3Category, s.auction.Category != q3Category
			for _, b := range s.waiting {
				if s.known {
					emit(wanted{b, s.auction})
				}
			}
			s.waiting = nil
		case s.known:
			emit(wanted{e.Bid(), s.auction})
		case !s.other:
			s.waiting = append(s.waiting, e.Bid())
		}
	})
}

func q20Model(events []Event) (out []wanted) {
	auctions := map[int64]Auction{}
	for _, e := range events {
		if a := e.Auction(); e.Kind == KindAuction && a.Category == q3Category {
			auctions[a.ID] = a
		}
	}
	eachBid(events, func(b Bid) {
		if a, ok := auctions[b.Auction]; ok {
			out = append(out, wanted{b, a})
		}
	})
	return out
}

// q23 keeps by person who that is, what they bid and what they sell.
func q23(events operators.Stream[Event]) operators.Stream[threefold] {
	type person struct {
		known    bool
		name     string
		bids     []Bid
		auctions []int64
	}
	byPerson := operators.KeyBy(events, func(e *Event) int64 {
		if e.Kind == KindPerson {
			return e.id
		}
		return e.party
	})
	return operators.Fold(byPerson, "join", func(_ int64, p *person, e *Event, _ int64, emit func(threefold)) {
		switch e.Kind {
		case KindPerson:
			who := e.Person()
			p.known, p.name = true, who.Name()
			for _, b := range p.bids {
				for _, a := range p.auctions {
					emit(threefold{b, p.name, a})
				}
			}
		case KindAuction:
			p.auctions = append(p.auctions, e.id)
			for _, b := range p.bids {
				if p.known {
					emit(threefold{b, p.name, e.id})
				}
			}
		case KindBid:
			p.bids = append(p.bids, e.Bid())
			for _, a := range p.auctions {
				if p.known {
					emit(threefold{e.Bid(), p.name, a})
				}
			}
		}
	})
}

func q23Model(events []Event) (out []threefold) {
	persons, sells := map[int64]Person{}, map[int64][]int64{}
	for _, e := range events {
		switch e.Kind {
		case KindPerson:
			persons[e.Person().ID] = e.Person()
		case KindAuction:
			sells[e.Auction().Seller] = append(sells[e.Auction().Seller], e.Auction().ID)
		case KindBid:
		}
	}
	eachBid(events, func(b Bid) {
		if p, ok := persons[b.Bidder]; ok {
			for _, a := range sells[b.Bidder] {
				out = append(out, threefold{b, p.Name(), a})
			}
		}
	})
	return out
}
