// Package tpg builds and checks the task precedence graph of one batch.
//
// Vertices are the operations of the batch's transactions, in the order of
// their ids, which is event order and then declaration order. Three kinds of
// edges tell what an operation has to wait for:
//
//   - temporal: the operation that last wrote the row before it;
//   - parametric: the operation that last wrote a row that it reads;
//   - logical: the operations of one transaction share their fate. It is not an
//     order, but what aborts are spread along.
//
// Every edge points forward in id order, so the graph cannot have a cycle.
//
// # How it is built
//
// Accesses arrive one table shard at a time, in event order, each with the
// access that touched its row before. [Graph.Link] turns that into a doubly
// linked chain per row (Prev, Next) and a direct edge to the last writer
// (Pred): temporal edges are adjacency, and a parametric edge is whatever stands
// before the reader in a chain that is complete up to it. One worker links a
// whole chain, so there is nothing to lock and no writer to be missed.
//
//	row A:  debit#0 <-- read#4 <-- debit#7          Pred(read#4) = debit#0
//	        `--------- Pred --------'               Pred(debit#7) = debit#0
//
// The graph is not frozen when it executes: [Graph.Insert] adds an access to the
// middle of a chain, for keys that are known only then.
//
// The package sees rows and accesses, never tables or values.
package tpg
