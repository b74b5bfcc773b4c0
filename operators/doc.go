// Package operators describes jobs over streams and executes them, a batch at a time.
//
// A job is built from typed functions: [From] begins a [Stream], [Map], [Filter] and others
// make another one of it, [KeyBy] says what belongs together, [Aggregate], [Process] and
// [CoGroup] collect windows, [Fold] keeps a state for each key, and [Digest] or [Each] end it.
// What they build is a plan (package plan), on which passes work before it is executed.
//
// # Execution
//
// A plan becomes stages: vertices that are fused, and so run in one task. A stage has as
// many tasks as its vertices have partitions, and each batch goes through the stages one after
// the other, the tasks of one stage in parallel; when time leaps over ends of many windows, once for each
// of the ends, so that not all of their results wait at once. Between stages items wait in exchanges,
// sorted by the partition that is to get them: no channel, no lock, and the same order
// whoever runs which task when. Within a task operators hand on blocks of items; a function
// of the user is called for each item, and nothing else is.
//
// # Time
//
// Each item has an event time. A source knows by how much its events are out of order; an event
// that comes later than that is late, counted, and goes no further, or only to windows that allow for
// lateness, with the watermark that it missed: whether it does depends on the events before it alone,
// never on where a batch ends. At the end of a batch the
// watermark is the least time that may still come, and windows that end before it fire. What
// a window puts out has the last instant of the window as its time.
//
// # What lasts
//
// All that an execution remembers from batch to batch registers itself when it is built, with how
// it is saved and loaded ([Exec.Save]): another process can go on from there.
//
// # Order
//
// Partitions are ranges of key hashes, and windows fire in the order of their ends, then of
// hashes and keys. What a keyed operator puts out carries the hash of its key, and exchanges behind
// it hand on what the watermark has passed by time, by that hash and as it came. So what arrives
// somewhere does not depend on batches, workers, memory or how many partitions there are.
package operators
