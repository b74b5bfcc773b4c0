// Package auction is an auction house that keeps its books: the stream of NEXMark drives
// transactions on accounts, lots and goods.
//
// Who joins gets money and goods. To open an auction takes one of the seller's goods. A bid
// that is the highest so far, at or above the reserve, holds the bidder's money, and what was
// held of the one who bid before is free again: whose account that is, the lot tells. When the
// window of an auction ends, the winner pays what is held, the seller earns it and the goods
// change hands; without a winner they go back. So money and goods are conserved, which Check
// verifies, and a model of maps and one loop has to agree with every account, lot and result.
//
// The job: events become actions; windows that end when an auction does become actions that close
// it; transactions take both in the order of event time; and what was sold is summed up by ten
// seconds.
package auction
