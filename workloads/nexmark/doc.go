// Package nexmark is the auction house of NEXMark (Tucker, Tufte, Papadimos and Maier,
// 2002, in the form that Apache Beam gave it): persons join, open auctions and bid, and
// 24 queries ask about them.
//
// An event is made from the seed and its number alone, so that any part of the stream can
// be made by anybody, in any order. Of 50 events one is a person, three are auctions and 46
// are bids. Ids follow Beam's rules: a bidder or auction is active for a while, some are hot, and
// bids may name persons and auctions that come a little later. The texts of an event (names,
// channels, urls) are made when somebody asks for them.
//
// The adversarial variant has users who come back: bidders are drawn from a fixed
// population with a Zipf distribution, time goes in bursts with heavy-tailed pauses, ten
// percent of the events are out of order and one percent is late.
//
// Each query is a job of package operators, and has a model that computes its results from
// all events at once, with maps and loops and nothing of the engine.
package nexmark
