package nexmark

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/heddle-stream/heddle/operators"
)

// euros is what a bid costs at 0.908 euros a dollar, in thousandths of a cent.
func euros(price int64) int64 { return price * 908 }

type converted struct {
	Auction, Bidder, Price, Time int64
}

type offer struct{ Auction, Price int64 }

type classified struct {
	Auction, Bidder, Price int64
	When                   string
	Time                   int64
	Cs                     int64
}

type channelled struct {
	Auction, Bidder, Price int64
	Channel, ID            string
}

type split struct {
	Auction, Bidder, Price int64
	Channel                string
	Dirs                   [3]string
}

type enriched struct {
	Bid  Bid
	Side string
}

type filed struct {
	Minute int64
	Bid    Bid
}

func statelessQueries() []Query {
	return []Query{
		query("q0", "hand on all bids", bids, func(events []Event) (out []Bid) {
			eachBid(events, func(b Bid) { out = append(out, b) })
			return out
		}),
		query("q1", "prices of bids in another currency", func(events operators.Stream[Event]) operators.Stream[converted] {
			return operators.Map(bids(events), "convert", func(b *Bid) converted {
				return converted{b.Auction, b.Bidder, euros(b.Price), b.Time}
			})
		}, func(events []Event) (out []converted) {
			eachBid(events, func(b Bid) { out = append(out, converted{b.Auction, b.Bidder, b.Price * 908, b.Time}) })
			return out
		}),
		query("q2", "bids for some auctions", func(events operators.Stream[Event]) operators.Stream[offer] {
			some := operators.Filter(bids(events), "some", func(b *Bid) bool { return b.Auction%123 == 0 })
			return operators.Map(some, "offer", func(b *Bid) offer { return offer{b.Auction, b.Price} })
		}, func(events []Event) (out []offer) {
			eachBid(events, func(b Bid) {
				if b.Auction%123 == 0 {
					out = append(out, offer{b.Auction, b.Price})
				}
			})
			return out
		}),
		query("q10", "bids by the minute in which they were made", func(events operators.Stream[Event]) operators.Stream[filed] {
			return operators.Map(bids(events), "file", func(b *Bid) filed { return filed{b.Time / (60 * second), *b} })
		}, func(events []Event) (out []filed) {
			eachBid(events, func(b Bid) { out = append(out, filed{b.Time / 1e9 / 60, b}) })
			return out
		}),
		query("q13", "bids with what a table that does not change knows of their auction", func(events operators.Stream[Event]) operators.Stream[enriched] {
			side := sideTable()
			return operators.FlatMap(bids(events), "side", func(b *Bid, emit func(enriched)) {
				if text, ok := side[b.Auction%10_000]; ok {
					emit(enriched{*b, text})
				}
			})
		}, func(events []Event) (out []enriched) {
			eachBid(events, func(b Bid) {
				if k := b.Auction % 10_000; k < sideRows {
					out = append(out, enriched{b, "side " + strconv.FormatInt(k, 10)})
				}
			})
			return out
		}),
		query("q14", "expensive bids by time of the day, with the number of letters c in their text", q14, q14Model),
		query("q21", "the channel of bids as an id, if there is one", q21, q21Model),
		query("q22", "the directories of the pages of bids", func(events operators.Stream[Event]) operators.Stream[split] {
			return operators.Map(bids(events), "split", func(b *Bid) split {
				return split{b.Auction, b.Bidder, b.Price, b.Channel(), directories(b.URL())}
			})
		}, func(events []Event) (out []split) {
			dirs := regexp.MustCompile(`^https://[^/]*/([^/]*)/([^/]*)/([^/]*)/`)
			eachBid(events, func(b Bid) {
				m := dirs.FindStringSubmatch(b.URL())
				out = append(out, split{b.Auction, b.Bidder, b.Price, b.Channel(), [3]string{m[1], m[2], m[3]}})
			})
			return out
		}),
	}
}

// directories returns the first three of an address.
func directories(url string) (dirs [3]string) {
	_, path, _ := strings.Cut(url[len("https://"):], "/")
	for i := range dirs {
		dirs[i], path, _ = strings.Cut(path, "/")
	}
	return dirs
}

// sideRows is how many auctions of 10,000 the side table knows.
const sideRows = 500

func sideTable() map[int64]string {
	side := map[int64]string{}
	for k := range int64(sideRows) {
		side[k] = "side " + strconv.FormatInt(k, 10)
	}
	return side
}

func q14(events operators.Stream[Event]) operators.Stream[classified] {
	dear := operators.Filter(bids(events), "dear", func(b *Bid) bool {
		p := euros(b.Price)
		return p > 1_000_000_000 && p < 50_000_000_000
	})
	return operators.Map(dear, "classify", func(b *Bid) classified {
		when := "otherTime"
		switch hour := b.Time / (3600 * second) % 24; {
		case hour >= 8 && hour <= 18:
			when = "dayTime"
		case hour <= 6 || hour >= 20:
			when = "nightTime"
		}
		return classified{b.Auction, b.Bidder, euros(b.Price), when, b.Time, int64(strings.Count(b.Extra(), "c"))}
	})
}

func q14Model(events []Event) (out []classified) {
	names := [24]string{7: "otherTime", 19: "otherTime"}
	for hour := range names {
		if names[hour] == "" {
			names[hour] = "nightTime"
			if hour > 7 && hour < 19 {
				names[hour] = "dayTime"
			}
		}
	}
	eachBid(events, func(b Bid) {
		cents := float64(b.Price) * 0.908
		if cents <= 1_000_000 || cents >= 50_000_000 {
			return
		}
		n := int64(0)
		for _, c := range b.Extra() {
			if c == 'c' {
				n++
			}
		}
		out = append(out, classified{b.Auction, b.Bidder, b.Price * 908, names[b.Time/3600e9%24], b.Time, n})
	})
	return out
}

func q21(events operators.Stream[Event]) operators.Stream[channelled] {
	return operators.FlatMap(bids(events), "channel", func(b *Bid, emit func(channelled)) {
		var id string
		if n := b.channel(); n < int64(len(channels)) {
			id = [...]string{"2", "1", "3", "0"}[n]
		} else {
			var found bool
			if _, id, found = strings.Cut(b.URL(), "channel_id="); !found {
				return
			}
		}
		emit(channelled{b.Auction, b.Bidder, b.Price, b.Channel(), id})
	})
}

func q21Model(events []Event) (out []channelled) {
	known := map[string]string{"apple": "0", "facebook": "1", "google": "2", "baidu": "3"}
	number := regexp.MustCompile(`(&|^)channel_id=([^&]*)`)
	eachBid(events, func(b Bid) {
		id, ok := known[strings.ToLower(b.Channel())]
		if !ok {
			m := number.FindStringSubmatch(b.URL())
			if m == nil {
				return
			}
			id = m[2]
		}
		out = append(out, channelled{b.Auction, b.Bidder, b.Price, b.Channel(), id})
	})
	return out
}
