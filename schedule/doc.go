// Package schedule decides which ready operations of a batch a worker runs
// next, and what becomes of the others when a transaction aborts.
//
// It works on a task precedence graph and calls an [Executor] for operations;
// it knows nothing of tables or values.
//
// # One core
//
// A [Run] executes one batch. What differs between strategies is in which order
// units are handed out, how large a unit is, and when aborts are dealt with:
//
//	exploration  bfs   units by stratum, the next stratum when one is done
//	             dfs   units by stratum, no barrier; an early unit is waited for
//	             ns    units in event order; one that is not ready is put aside
//	granularity  op    an operation
//	             chain the operations on one row, as far as they are ready
//	abort        eager stop, redo what saw the aborted transaction, go on
//	             lazy  finish first, then redo all that saw one
//
// Beside these twelve there are lock (whole transactions under ordered locks)
// and tstream (chains that wait at each operation).
//
// # Waiting
//
// Nobody counts down dependencies. A worker that comes to an operation looks at
// the state of what the operation waits for; if that is not done, the unit is
// put on the waiting list of that transaction, a stack in the transaction's state
// word, and whoever completes the transaction takes the list and looks at each
// unit again. An operation waits for one thing at a time, so a list is one link
// per operation, pushed to and taken whole: no locks and nothing to recycle.
//
//	             unit waits                complete
//	state:  0 ------------> list of units ----------> done | void
//
// # Speculation and aborts
//
// In event order (ns-op) a worker runs all operations of a transaction together
// when it can, and publishes them together: an abort is then known before anyone
// has seen a thing. Otherwise operations are published one by one and later ones
// go on with values of transactions whose fate is open. When such a transaction
// aborts late, everything that ran behind it on its rows, and transitively what
// ran behind that, is reset, and runs again. A reset stops the world: it happens
// when every worker has come to a halt between two units, so that it is plain
// sequential code.
//
// Eager resets at once and goes on speculating. Lazy resets when all units have
// run, and runs the reset transactions whole, each only when the fate of what it
// sees is final: one such pass reaches the fix-point.
//
// Why the result is exact: a transaction counts as executed only while every
// version that it saw is in force. The earliest transaction that is not final
// sees only final ones, so each reset makes at least one more transaction final.
//
// # Steps
//
// A [Worker] is a struct with Step. In production [Run.Drive] loops it in a
// goroutine; tests call the steps of several workers from one goroutine in an
// order drawn from a seed, so that an interleaving replays from two integers.
package schedule
