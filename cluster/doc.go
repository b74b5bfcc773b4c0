// Package cluster runs one application on several nodes, each of which owns the rows of some key groups
// and executes transactions with an engine of its own.
//
// # The order
//
// Events have one order, by their number. A [Router] cuts them into batches, finds out which keys each
// transaction names, and tells every node, in that order, what it has to do: execute a transaction, or lend a row to
// the node that executes one. A transaction runs where most of its rows are; those of other nodes
// come to it and go home again. What a node gets for a batch is a [Section]; an empty one is a punctuation.
//
// # Missing rows are waited for one by one
//
// A node does not wait for other nodes between batches. It keeps a queue for each row that is not there, or that
// somebody waits for ([slot]): a transaction runs as soon as it is the first in the queues of all of its rows and these are
// there, and until then only what names one of its rows, later in the order, waits with it. All
// else runs on, whole batches at a time, in the engine. Whoever waits, waits for something earlier in the order, so
// that no two wait for each other; and since those that share a row run in the order, everything
// is as if all ran one after the other.
//
// # Groups move the same way
//
// With the punctuation at which a group gets another owner, the old one sends it as soon as nobody waits for one
// of its rows there, which is what stood before in the order. For the new one its rows are missing rows until they
// are there. Nobody else waits, and there is no time at which two own a row.
//
// So that this takes no longer than what changes meanwhile, an owner can be told before to make a list of the rows of a
// group, in small steps, and to send a copy of them, which it keeps about as new as they are. What the group's
// departure sends is then the rest. [Job] gives these orders: it carries out requests, one after the other.
//
// # A death
//
// A job with a [Keep] logs what it routes, and nodes save their rows at a punctuation while they go on. When one dies all of
// them start anew: control sends them their groups, from the newest checkpoint, like somebody who had owned them, and routes the log
// once more. What was handed out before is not handed out again.
//
// Calvin (Thomson et al., SIGMOD 2012) orders transactions before they run, LEAP (Lin et al., SIGMOD 2016) brings rows
// to the transaction; that buffering needs nothing but waiting per key is the idea of Spacker (Mao et al., ICDCS 2025).
package cluster
