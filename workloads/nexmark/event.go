package nexmark

// Kind is what an event is.
type Kind uint8

// The kinds of events.
const (
	KindPerson Kind = iota
	KindAuction
	KindBid
)

// The first id of each kind, as in Beam.
const (
	firstPerson   = 1000
	firstAuction  = 1000
	firstCategory = 10
)

// Event is one event of the stream: see Person, Auction and Bid. It fits a cache line.
type Event struct {
	Time int64 // ns since 1970
	Kind Kind

	category       uint8
	id, party      int64
	price, reserve int64
	expires        int64
	draw           uint64
}

// Person joined the auction house.
type Person struct {
	ID   int64
	Time int64  // ns since 1970
	Draw uint64 // what texts are made from
}

// Auction was opened.
type Auction struct {
	ID, Seller          int64
	Category            int64
	InitialBid, Reserve int64 // cents
	Time, Expires       int64 // ns since 1970
	Draw                uint64
}

// Bid was made.
type Bid struct {
	Auction, Bidder int64
	Price           int64 // cents
	Time            int64 // ns since 1970
	Draw            uint64
}

// Person returns an event of that kind.
func (e *Event) Person() Person { return Person{e.id, e.Time, e.draw} }

// Auction returns an event of that kind.
func (e *Event) Auction() Auction {
	return Auction{e.id, e.party, int64(e.category), e.price, e.reserve, e.Time, e.expires, e.draw}
}

// Bid returns an event of that kind.
func (e *Event) Bid() Bid { return Bid{e.id, e.party, e.price, e.Time, e.draw} }
