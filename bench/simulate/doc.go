// Package simulate predicts from a recorded trace how much faster than serial
// execution each strategy would be, on more workers than the machine has.
//
// # Real scheduler, virtual time
//
// Nothing of a strategy is written down a second time here. The scheduler of
// package schedule runs as it is, on the task precedence graphs of the trace's
// batches, with as many workers as are asked for; only the operations are
// replaced by their cost. Each worker is a coroutine. A call of an operation
// hands control back with the time that it takes, and is resumed when the
// virtual clock has come to its end:
//
//	worker 0   [ operation 7      ][ operation 9 ]
//	worker 1   [ op 8 ][ looks, nothing ready ]   [ operation 10, waited for 9
//	clock      0       t1          t2             t3
//
// The worker whose time comes first is resumed next, so that it sees what had
// been published by then and nothing later. Strata and their barriers, held and
// parked units, stolen ones, and the repair of late aborts come out as the engine
// does them. Whether an operation fails is what it did in the real run: that a
// speculative call can end otherwise is left out.
//
// # Costs
//
// The trace is replayed on one worker, each batch first under the serial strategy
// and then under one of the others in turn (see [Measure]): that gives the cost of
// an operation by its kind, of scheduling one under each strategy, and of the
// steps around the execution. Those that the engine shares out are divided: plans
// and results by regions, links and installations by shards. Sealing a batch,
// laying out its units, delivering results and the meetings between steps are not:
// on many workers they are what remains.
//
// What one worker cannot show is what others cost it. How long a change takes to
// be seen by another processor is measured with a counter that two goroutines
// hand to each other; how much of that is left when many accesses change hands
// at once is a constant, and the only one that is fitted. Memory that more
// workers would have to share, and a slower clock under load, are left out.
//
// # Bounds
//
// The critical-path bound is the cost of all operations over that of the longest
// path of operations which wait for each other, batch by batch. Beside it stands
// the work bound, the number of workers. Both speak of operations: no schedule
// executes them faster. A speed-up is over the serial strategy as it was measured
// and counts everything; where a graph batch does less than a serial one besides
// operations, because the memory accesses of many keys overlap, it can be larger.
package simulate
