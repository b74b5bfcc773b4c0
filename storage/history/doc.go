// Package history keeps the versions of keys that windows still look at.
//
// A series is the versions of one key, oldest first, in one run of memory that
// grows at its end and is given back at its front. Beside it stands a log of all
// versions of a shard in event order: when time goes on, the front of the log
// tells which series to shorten, so that forgetting costs as much as keeping did
// and a key that nobody writes any more does not stay.
//
//	log     a@3  b@5  a@9  ...        Expire(8) takes a@3 and b@5
//	series  a: 3 9   b: 5
//
// What a window of any size adds up to is the difference of two running totals,
// see [Totals]: a large window costs no more than a small one.
package history
