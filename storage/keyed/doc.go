// Package keyed holds the typed part of a table: the current value of each key
// and the versions of one batch.
//
// It knows nothing of transactions. A batch works on it in three steps, each
// of them parallel over shards and free of locks, because a shard has one
// worker at a time:
//
//  1. [Table.Resolve] maps the keys of a shard's accesses, in event order, to
//     rows and tells for each access which one touched the row before it in
//     this batch. From that the task precedence graph is built.
//  2. While the graph executes, operations write their result into the version
//     slot of their own access; rows are only read.
//  3. [Table.Install] copies the last version of each touched row into the row
//     and [Table.Reclaim] frees rows that hold nothing.
//
// # Layout
//
// A shard is a hash table with open addressing whose places are the records
// themselves, so that a look-up misses the cache once. A row is known by its
// place, local<<4 | shard:
//
//	records: [value, key, hash 30 | state 2] [....] [....]   late rows: [....]
//	marks:   [epoch, last access]            [....] [....]              [....]
//
// Keys are looked up in groups of thirty-two, all first places of a group before
// the first comparison, so that the misses of a group overlap instead of adding
// up.
//
// Four places in a row are a bucket. A search looks at all places of one, from the
// first that the hash gives around, before it goes to the next: those of small
// records share a cache line, so that hardly any search misses the cache twice.
//
// Rows keep their places while a batch runs. A key that is new when too few
// places are left gets a late row behind them, found through a map; when the
// batch ends, Reclaim moves all rows to a larger table. It also takes rows out
// that hold nothing, and moves those behind back, so that there are no
// tombstones and look-ups do not slow down as rows come and go.
//
// # Rows in a log
//
// A table with a [Budget] ([Table.Limit]) moves rows into a [Log] in byte form, and brings
// them back. A row is in memory or in the log, never in both, and the marks by which
// trackers know what changed go with it. An index of one word per row finds those in the
// log (cold.go). Rows come back before Resolve maps keys to rows, or when Ensure or Find does
// (recall.go). They leave when a batch ends and a shard has more than it may (budget.go);
// which ones is the clock's choice (evict.go). Several tables share a budget.
package keyed
