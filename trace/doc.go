// Package trace records the input of a run and plays it again: the state at the
// start, the events in their byte form with the punctuations between batches,
// and at the end the hashes of what came out.
//
// Besides, it has the digest of each result and, now and then, the whole state, so
// that a replay can begin there and two recordings can be compared event by event.
// What the outside decided (the order of events, when a batch was closed) is the
// input. The bytes are in docs/FORMATS.md.
package trace
