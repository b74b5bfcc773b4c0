package nexmark

import (
	"slices"
	"time"

	"github.com/heddle-stream/heddle/operators"
)

// counted is how often something was there in a window.
type counted struct{ Key, Start, End, N int64 }

type count struct{ n int64 }

// counts counts items.
func counts[T any]() operators.Aggregator[T, count] {
	return operators.Aggregator[T, count]{
		Add:   func(acc *count, _ *T) { acc.n++ },
		Merge: func(into, from *count) { into.n += from.n },
	}
}

func byAuction(b *Bid) int64 { return b.Auction }
func byBidder(b *Bid) int64  { return b.Bidder }

func countedIn(key int64, w operators.Span, acc *count) counted {
	return counted{key, w.Start, w.End, acc.n}
}

type joined struct {
	ID    int64
	Name  string
	Start int64
}

// priced is a figure of the bids of a bidder in a session.
type priced struct{ Bidder, Start, End, Price int64 }

const (
	slide = 2 * time.Second
	gap   = 10 * time.Second
)

func windowQueries() []Query {
	return []Query{
		query("q5", "auctions with the most bids in the last ten seconds, every two seconds", func(events operators.Stream[Event]) operators.Stream[counted] {
			return hottestOf(operators.Aggregate(operators.KeyBy(bids(events), byAuction), "count", operators.Sliding(shortWindow, slide), counts[Bid](), countedIn))
		}, q5Model),
		query("q5-append", "q5 with bids kept and counted at the end", func(events operators.Stream[Event]) operators.Stream[counted] {
			return hottestOf(operators.Process(operators.KeyBy(bids(events), byAuction), "count", operators.Sliding(shortWindow, slide),
				func(key int64, w operators.Span, items []Bid, emit func(counted)) {
					emit(counted{key, w.Start, w.End, int64(len(items))})
				}))
		}, q5Model),
		query("q7", "bids at the highest price of ten seconds", q7, q7Model),
		query("q7-session", "the highest bid of each bidder's session", func(events operators.Stream[Event]) operators.Stream[priced] {
			return operators.Process(operators.KeyBy(bids(events), byBidder), "highest", operators.Sessions(gap),
				func(key int64, w operators.Span, items []Bid, emit func(priced)) {
					highest := slices.MaxFunc(items, func(a, b Bid) int { return int(a.Price - b.Price) })
					emit(priced{key, w.Start, w.End, highest.Price})
				})
		}, func(events []Event) []priced {
			return sessionModel(events, slices.Max)
		}),
		query("q8", "persons who opened an auction in the ten seconds in which they joined", q8, q8Model),
		query("q11", "bids of each bidder's session", func(events operators.Stream[Event]) operators.Stream[counted] {
			return operators.Aggregate(operators.KeyBy(bids(events), byBidder), "count", operators.Sessions(gap), counts[Bid](), countedIn)
		}, func(events []Event) (out []counted) {
			for _, p := range sessionModel(events, func(prices []int64) int64 { return int64(len(prices)) }) {
				out = append(out, counted{p.Bidder, p.Start, p.End, p.Price})
			}
			return out
		}),
		query("q11-median", "the median price of each bidder's session", func(events operators.Stream[Event]) operators.Stream[priced] {
			return operators.Process(operators.KeyBy(bids(events), byBidder), "median", operators.Sessions(gap),
				func(key int64, w operators.Span, items []Bid, emit func(priced)) {
					slices.SortFunc(items, func(a, b Bid) int { return int(a.Price - b.Price) })
					emit(priced{key, w.Start, w.End, items[(len(items)-1)/2].Price})
				})
		}, func(events []Event) []priced {
			return sessionModel(events, func(prices []int64) int64 {
				slices.Sort(prices)
				return prices[(len(prices)-1)/2]
			})
		}),
		query("q12", "bids of each bidder in ten seconds", func(events operators.Stream[Event]) operators.Stream[counted] {
			return operators.Aggregate(operators.KeyBy(bids(events), byBidder), "count", operators.Tumbling(shortWindow), counts[Bid](), countedIn)
		}, func(events []Event) (out []counted) {
			n := map[[2]int64]int64{}
			eachBid(events, func(b Bid) { n[[2]int64{b.Bidder, start(b.Time, shortWindow)}]++ })
			for k, n := range n {
				out = append(out, counted{k[0], k[1], k[1] + int64(shortWindow), n})
			}
			return out
		}),
	}
}

// hottestOf returns the counts of a window that no other one of it exceeds.
func hottestOf(all operators.Stream[counted]) operators.Stream[counted] {
	return operators.Process(operators.All(all), "hottest", operators.Tumbling(slide),
		func(_ uint64, _ operators.Span, items []counted, emit func(counted)) {
			most := slices.MaxFunc(items, func(a, b counted) int { return int(a.N - b.N) }).N
			for _, c := range items {
				if c.N == most {
					emit(c)
				}
			}
		})
}

func q5Model(events []Event) (out []counted) {
	windows := map[int64]map[int64]int64{} // by start, and auction
	eachBid(events, func(b Bid) {
		for s := start(b.Time, slide); s > b.Time-int64(shortWindow); s -= int64(slide) {
			if windows[s] == nil {
				windows[s] = map[int64]int64{}
			}
			windows[s][b.Auction]++
		}
	})
	for s, auctions := range windows {
		most := int64(0)
		for _, n := range auctions {
			most = max(most, n)
		}
		for a, n := range auctions {
			if n == most {
				out = append(out, counted{a, s, s + int64(shortWindow), n})
			}
		}
	}
	return out
}

type highest struct{ price int64 }

// q7 finds the highest price of a window, and joins it with the bids at that price.
func q7(events operators.Stream[Event]) operators.Stream[Bid] {
	all := bids(events)
	most := operators.Aggregate(operators.All(all), "highest", operators.Tumbling(shortWindow), operators.Aggregator[Bid, highest]{
		Add:   func(acc *highest, b *Bid) { acc.price = max(acc.price, b.Price) },
		Merge: func(into, from *highest) { into.price = max(into.price, from.price) },
	}, func(_ uint64, _ operators.Span, acc *highest) int64 { return acc.price })
	return operators.CoGroup(
		operators.KeyBy(all, func(b *Bid) int64 { return b.Price }),
		operators.KeyBy(most, func(price *int64) int64 { return *price }),
		"at-that-price", operators.Tumbling(shortWindow),
		func(_ int64, _ operators.Span, bids []Bid, most []int64, emit func(Bid)) {
			if len(most) > 0 {
				for _, b := range bids {
					emit(b)
				}
			}
		})
}

func q7Model(events []Event) (out []Bid) {
	windows := map[int64][]Bid{}
	eachBid(events, func(b Bid) { s := start(b.Time, shortWindow); windows[s] = append(windows[s], b) })
	for _, all := range windows {
		most := int64(0)
		for _, b := range all {
			most = max(most, b.Price)
		}
		for _, b := range all {
			if b.Price == most {
				out = append(out, b)
			}
		}
	}
	return out
}

func q8(events operators.Stream[Event]) operators.Stream[joined] {
	persons := operators.Map(operators.Filter(events, "persons", func(e *Event) bool { return e.Kind == KindPerson }), "person", func(e *Event) Person { return e.Person() })
	auctions := operators.Map(operators.Filter(events, "auctions", func(e *Event) bool { return e.Kind == KindAuction }), "auction", func(e *Event) Auction { return e.Auction() })
	return operators.CoGroup(
		operators.KeyBy(persons, func(p *Person) int64 { return p.ID }),
		operators.KeyBy(auctions, func(a *Auction) int64 { return a.Seller }),
		"new-sellers", operators.Tumbling(shortWindow),
		func(id int64, w operators.Span, persons []Person, auctions []Auction, emit func(joined)) {
			if len(auctions) > 0 {
				for i := range persons {
					emit(joined{id, persons[i].Name(), w.Start})
				}
			}
		})
}

func q8Model(events []Event) (out []joined) {
	sellers := map[[2]int64]bool{}
	for _, e := range events {
		if e.Kind == KindAuction {
			sellers[[2]int64{e.Auction().Seller, start(e.Time, shortWindow)}] = true
		}
	}
	for _, e := range events {
		if s := start(e.Time, shortWindow); e.Kind == KindPerson && sellers[[2]int64{e.Person().ID, s}] {
			p := e.Person()
			out = append(out, joined{p.ID, p.Name(), s})
		}
	}
	return out
}

// sessionModel cuts the bids of each bidder, in order of their times, where there is a gap.
func sessionModel(events []Event, figure func(prices []int64) int64) (out []priced) {
	all := map[int64][]Bid{}
	eachBid(events, func(b Bid) { all[b.Bidder] = append(all[b.Bidder], b) })
	for bidder, bids := range all {
		slices.SortStableFunc(bids, func(a, b Bid) int { return int(a.Time - b.Time) })
		for len(bids) > 0 {
			n := 1
			prices := []int64{bids[0].Price}
			for n < len(bids) && bids[n].Time-bids[n-1].Time < int64(gap) {
				prices = append(prices, bids[n].Price)
				n++
			}
			out = append(out, priced{bidder, bids[0].Time, bids[n-1].Time + int64(gap), figure(prices)})
			bids = bids[n:]
		}
	}
	return out
}
