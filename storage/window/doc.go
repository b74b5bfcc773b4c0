// Package window keeps the contents of windows: one store for each way in which windows
// are written and read, as FlowKV has it (Lee, Maeng, Park, Seo, Cho, Yoo and Um, EuroSys
// 2023). A general key-value store has to find out what it could be told: that a window
// is written many times, read once, and when.
//
//   - [Lists] is append and aligned read: tuples of windows that begin and end at the same
//     time for every key. A window is read as a whole, key by key.
//   - [Accumulators] is read, modify and write of the same windows: one value of fixed size
//     per key and window.
//   - [Unaligned] is for windows of which each key has its own: sessions, counts. A window
//     is known by a number; its contents are tuples or one value of fixed size.
//
// The calls carry the window and not a key that somebody made of it, so that a store knows
// which windows end last. These go to disk when memory is short, in large pieces, and come
// back once, when they fire. Nothing is read to be changed: what comes for a window that is
// on disk is collected anew, and the parts meet when the window fires. Contents are bytes
// in chunks that the garbage collector does not look into, and each byte of them, indexes
// included, counts against the limit.
//
// [Stores] is what makes the three, so that others can stand in their place: package windowtest
// compares stores of any maker with maps.
//
// A store is used by one goroutine. What it yields is in an order that depends on nothing
// but the contents: by hash and then by bytes of the key, values of a key in the order in
// which they came. So results do not tell how much memory there was.
//
// On disk, contents are rows of a log (package storage/spill), each with a checksum: a damaged one is an error
// that names file and offset. The log is of use to this process only, or belongs to what
// Save hands out: the memory of a store, and where the rest is. A checkpoint that has
// both costs what changed in memory, not what is on disk.
package window
