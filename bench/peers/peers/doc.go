// Package peers runs the events of the streaming ledger through other ways to
// execute transactions, beside Heddle: a plain loop over Go maps, locks taken in
// event order, Block-STM, SQLite and, with rows on disk, Pebble.
//
// All get the same list of events and must reach the same final state. Whatever
// does not is an error, and its speed is not shown: fast and wrong is no peer.
// README.md tells how each is set up and why that is fair.
//
// The package is a module of its own, so that what the peers depend on stays out
// of Heddle's.
package peers
