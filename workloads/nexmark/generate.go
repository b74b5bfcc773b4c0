package nexmark

import (
	"math"

	"github.com/heddle-stream/heddle/internal/rng"
)

// The rules of the generator, see section "Generator" of docs/workloads/nexmark.md.
const (
	groupSize    = 50 // events of which the first is a person and the next three are auctions
	auctionSlots = 3

	activePersons  = 1000 // persons who bid and sell
	personLead     = 10   // and so many who come later
	activeAuctions = 100
	auctionLead    = 10

	hotSellers  = 100 // one of so many persons is hot
	hotBidders  = 100
	hotAuctions = 100

	categories = 5

	baseTime = 1_436_918_400_000_000_000 // 2015-07-15, ns
	second   = 1_000_000_000
)

// Rules of the adversarial variant.
const (
	population   = 100_000 // bidders who come back
	populationBy = 0.8     // Zipf
	burst        = 1000    // events between two pauses
	// DisorderMax is by how many ns events are out of order, if they are not late.
	DisorderMax = 4 * second
	lateMin     = 10 * second
	lateMax     = 60 * second
)

// Generator makes events. It is not changed by use: any goroutine may call it.
type Generator struct {
	seed    uint64
	rate    int64
	bidders *rng.Zipf // of the adversarial variant, or nil
}

// NewGenerator returns the generator of a seed, with so many events per second of event
// time.
func NewGenerator(seed uint64, rate int64, adversarial bool) *Generator {
	g := &Generator{seed: seed, rate: rate}
	if adversarial {
		g.bidders = rng.NewZipf(population, populationBy)
	}
	return g
}

// Fill makes the events from number first on.
func (g *Generator) Fill(dst []Event, first int64) {
	for i := range dst {
		g.make(&dst[i], first+int64(i))
	}
}

func (g *Generator) make(e *Event, n int64) {
	c := rng.Of(g.seed, uint64(n))
	slot := n % groupSize
	*e = Event{Time: g.time(n), draw: uint64(n)}
	switch {
	case slot == 0:
		e.Kind, e.id = KindPerson, firstPerson+lastPerson(n)
	case slot <= auctionSlots:
		e.Kind = KindAuction
		g.auction(e, n, &c)
	default:
		e.Kind = KindBid
		g.bid(e, n, &c)
	}
	e.draw = c.Uint64()
	if g.bidders != nil {
		e.Time -= delay(&c)
	}
}

// time is when event n happens, ordered by n.
func (g *Generator) time(n int64) int64 {
	if g.bidders == nil {
		return baseTime + n/g.rate*second + n%g.rate*second/g.rate
	}
	// A burst takes a part of the time that it would take at an even rate, and then there is a
	// pause: the parts are 1/x with x from a distribution with a heavy tail.
	b, within := n/burst, n%burst
	c := rng.Of(g.seed^0xb0b, uint64(b))
	span := float64(burst) * second / float64(g.rate)
	return baseTime + int64(float64(b)*span+float64(within)/burst*span/c.Pareto(1))
}

// delay is how much earlier than it comes an event says that it happened.
func delay(c *rng.Counter) int64 {
	switch u := c.Below(1000); {
	case u < 10:
		return lateMin + c.Below(lateMax-lateMin)
	case u < 110:
		return c.Below(DisorderMax)
	}
	return 0
}

func (g *Generator) auction(e *Event, n int64, c *rng.Counter) {
	e.id = firstAuction + lastAuction(n)
	if c.Below(4) > 0 {
		e.party = firstPerson + lastPerson(n)/hotSellers*hotSellers
	} else {
		e.party = firstPerson + nextPerson(n, c)
	}
	e.category = uint8(firstCategory + c.Below(categories))
	e.price = price(c)
	e.reserve = e.price + price(c)
	// An auction is open for about as long as it takes until so many others were opened.
	horizon := activeAuctions * groupSize / auctionSlots * second / g.rate
	e.expires = e.Time + 1 + c.Below(max(2*horizon, 1))
}

func (g *Generator) bid(e *Event, n int64, c *rng.Counter) {
	if c.Below(2) > 0 {
		e.id = firstAuction + lastAuction(n)/hotAuctions*hotAuctions
	} else {
		e.id = firstAuction + nextAuction(n, c)
	}
	switch {
	case g.bidders != nil:
		e.party = firstPerson + int64(g.bidders.At(c.Float64()))
	case c.Below(4) > 0:
		e.party = firstPerson + lastPerson(n)/hotBidders*hotBidders + 1
	default:
		e.party = firstPerson + nextPerson(n, c)
	}
	e.price = price(c)
}

// lastPerson returns the person who joined last before event n, itself included.
func lastPerson(n int64) int64 { return n / groupSize }

// lastAuction returns the auction that was opened last.
func lastAuction(n int64) int64 {
	slot := n % groupSize
	return n/groupSize*auctionSlots + min(slot, auctionSlots) - 1
}

// nextPerson draws somebody who is active, or joins soon.
func nextPerson(n int64, c *rng.Counter) int64 {
	persons := lastPerson(n) + 1
	active := min(persons, activePersons)
	return persons - active + c.Below(active+personLead)
}

// nextAuction draws one of the last auctions, or one that opens soon.
func nextAuction(n int64, c *rng.Counter) int64 {
	last := lastAuction(n)
	first := max(last-activeAuctions, 0)
	return first + c.Below(last-first+1+auctionLead)
}

// price draws cents, evenly by magnitude between 1 and 1,000,000 dollars.
func price(c *rng.Counter) int64 {
	return int64(math.Round(math.Exp(c.Float64()*6*math.Ln10) * 100))
}
