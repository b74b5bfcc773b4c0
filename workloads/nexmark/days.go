package nexmark

import "github.com/heddle-stream/heddle/operators"

// ranks of bids by price: below 100 dollars, below 10,000, and above.
const (
	lowBelow  = 10_000
	highAbove = 1_000_000
)

func rank(price int64) int {
	switch {
	case price < lowBelow:
		return 0
	case price < highAbove:
		return 1
	}
	return 2
}

// daily is what the bids of a day come to, all and by rank of their price: how many there are, and of
// how many bidders for how many auctions.
type daily struct {
	Channel                   int64 // -1 for all
	Start                     int64
	Bids, Bidders, Auctions   int64
	BidsBy, BiddersBy, AuctBy [3]int64
}

// summed is what is known of the prices of an auction on a day.
type summed struct {
	Auction, Start          int64
	N, Low, High, Sum, Mean int64
	By                      [3]int64
}

func dayQueries() []Query {
	return []Query{
		query("q15", "how many bids, bidders and auctions there are on a day, by rank of the price", func(events operators.Stream[Event]) operators.Stream[daily] {
			return perDay(events, func(*Bid) int64 { return -1 })
		}, func(events []Event) []daily { return perDayModel(events, func(*Bid) int64 { return -1 }) }),
		query("q16", "q15 for each channel", func(events operators.Stream[Event]) operators.Stream[daily] {
			return perDay(events, (*Bid).channel)
		}, func(events []Event) []daily { return perDayModel(events, (*Bid).channel) }),
		query("q17", "figures of the bids for each auction on a day", func(events operators.Stream[Event]) operators.Stream[summed] {
			type figures struct {
				n, low, high, sum int64
				by                [3]int64
			}
			add := func(into, from *figures) {
				if into.n == 0 || from.low < into.low {
					into.low = from.low
				}
				into.high, into.sum, into.n = max(into.high, from.high), into.sum+from.sum, into.n+from.n
				for i := range into.by {
					into.by[i] += from.by[i]
				}
			}
			return operators.Aggregate(operators.KeyBy(bids(events), byAuction), "figures", operators.Tumbling(day), operators.Aggregator[Bid, figures]{
				Add: func(acc *figures, b *Bid) {
					one := figures{n: 1, low: b.Price, high: b.Price, sum: b.Price}
					one.by[rank(b.Price)] = 1
					add(acc, &one)
				},
				Merge: add,
			}, func(auction int64, w operators.Span, f *figures) summed {
				return summed{auction, w.Start, f.n, f.low, f.high, f.sum, f.sum / f.n, f.by}
			})
		}, q17Model),
	}
}

func q17Model(events []Event) (out []summed) {
	prices := map[[2]int64][]int64{}
	eachBid(events, func(b Bid) {
		k := [2]int64{b.Auction, start(b.Time, day)}
		prices[k] = append(prices[k], b.Price)
	})
	for k, all := range prices {
		s := summed{Auction: k[0], Start: k[1], N: int64(len(all)), Low: all[0]}
		for _, p := range all {
			s.Low, s.High, s.Sum = min(s.Low, p), max(s.High, p), s.Sum+p
			s.By[rank(p)]++
		}
		s.Mean = s.Sum / s.N
		out = append(out, s)
	}
	return out
}

// ofOne is how many bids of each rank one bidder made, or one auction got.
type ofOne struct {
	Channel, ID int64
	Auction     bool
	By          [3]int64
}

// perDay counts distinct bidders and auctions in two steps: what each of them has, and how many
// have something.
func perDay(events operators.Stream[Event], channel func(*Bid) int64) operators.Stream[daily] {
	type key struct {
		Channel, ID int64
		Auction     bool
	}
	parties := operators.FlatMap(bids(events), "parties", func(b *Bid, emit func(ofOne)) {
		one := ofOne{Channel: channel(b), ID: b.Bidder}
		one.By[rank(b.Price)] = 1
		emit(one)
		one.ID, one.Auction = b.Auction, true
		emit(one)
	})
	type ranks struct{ by [3]int64 }
	perParty := operators.Aggregate(operators.KeyBy(parties, func(o *ofOne) key { return key{o.Channel, o.ID, o.Auction} }), "each", operators.Tumbling(day),
		operators.Aggregator[ofOne, ranks]{
			Add: func(acc *ranks, o *ofOne) {
				for i := range acc.by {
					acc.by[i] += o.By[i]
				}
			},
			Merge: func(into, from *ranks) {
				for i := range into.by {
					into.by[i] += from.by[i]
				}
			},
		}, func(k key, _ operators.Span, acc *ranks) ofOne { return ofOne{k.Channel, k.ID, k.Auction, acc.by} })
	return operators.Aggregate(operators.KeyBy(perParty, func(o *ofOne) int64 { return o.Channel }), "day", operators.Tumbling(day),
		operators.Aggregator[ofOne, daily]{Add: addParty, Merge: mergeDays},
		func(channel int64, w operators.Span, acc *daily) daily {
			d := *acc
			d.Channel, d.Start = channel, w.Start
			return d
		})
}

func addParty(acc *daily, o *ofOne) {
	some := int64(0)
	for i, n := range o.By {
		if some += n; n > 0 {
			if o.Auction {
				acc.AuctBy[i]++
			} else {
				acc.BiddersBy[i]++
			}
		}
		if !o.Auction {
			acc.BidsBy[i] += n
		}
	}
	if o.Auction {
		acc.Auctions++
	} else {
		acc.Bidders++
		acc.Bids += some
	}
}

func mergeDays(into, from *daily) {
	into.Bids, into.Bidders, into.Auctions = into.Bids+from.Bids, into.Bidders+from.Bidders, into.Auctions+from.Auctions
	for i := range into.BidsBy {
		into.BidsBy[i] += from.BidsBy[i]
		into.BiddersBy[i] += from.BiddersBy[i]
		into.AuctBy[i] += from.AuctBy[i]
	}
}

func perDayModel(events []Event, channel func(*Bid) int64) (out []daily) {
	type sets struct {
		d                    *daily
		bidders, auctions    map[int64]bool
		biddersBy, auctions3 [3]map[int64]bool
	}
	all := map[[2]int64]*sets{}
	eachBid(events, func(b Bid) {
		k := [2]int64{channel(&b), start(b.Time, day)}
		s := all[k]
		if s == nil {
			s = &sets{d: &daily{Channel: k[0], Start: k[1]}, bidders: map[int64]bool{}, auctions: map[int64]bool{}}
			for i := range 3 {
				s.biddersBy[i], s.auctions3[i] = map[int64]bool{}, map[int64]bool{}
			}
			all[k] = s
		}
		r := rank(b.Price)
		s.d.Bids++
		s.d.BidsBy[r]++
		s.bidders[b.Bidder], s.auctions[b.Auction] = true, true
		s.biddersBy[r][b.Bidder], s.auctions3[r][b.Auction] = true, true
	})
	for _, s := range all {
		s.d.Bidders, s.d.Auctions = int64(len(s.bidders)), int64(len(s.auctions))
		for i := range 3 {
			s.d.BiddersBy[i], s.d.AuctBy[i] = int64(len(s.biddersBy[i])), int64(len(s.auctions3[i]))
		}
		out = append(out, *s.d)
	}
	return out
}
