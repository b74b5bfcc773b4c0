// Package keyed holds the typed part of a table: an index from keys to dense
// rows, the current value of each row, and the versions of one batch.
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
//	index (open addressing, 8 bytes an entry)      records
//	[hash 32 | row+1 32] [....]  ------------->  {epoch, last, key, value}
//
// A look-up misses the cache twice, once in each array. Keys are resolved in
// groups of sixteen, all index entries first and then all records, so that the
// misses of a group overlap instead of adding up.
//
// The index deletes by shifting entries back, so there are no tombstones and
// look-ups do not slow down as rows come and go. Rows are reused through a free
// list. Row numbers are local<<bits | shard: dense per table, stable for as
// long as the row exists.
package keyed
