// Package reconfig says what of a running job may change, and plans how it changes.
//
// State is owned by key group: the hash of a key's bytes puts its rows, those of all tables,
// into one of a fixed number of groups, and [Owners] tells the node that has each. A table of
// owners never changes. A change makes the next one, with the next version, and everybody goes
// over to it at the same punctuation, so that all operations of a transaction, and all
// transactions of a batch, see one table.
//
// A migration is a list of moves. [Spread] and [Rebalance] find few that do; [Chunks] puts them into an
// order and into chunks, of which one moves at a time, by what is known of the groups: how
// large they are, how often they are written. What moves waits, so that a chunk is how long
// somebody waits; what does not move goes on.
//
// Everything here is a function of its arguments: a plan that is logged can be done again.
//
// The ideas are those of Megaphone (Hoffmann et al., PVLDB 12(9), 2019), Trisk (Mao et al., SoCC
// 2021) and Spacker (Mao et al., ICDCS 2025).
package reconfig
