// Package job runs jobs: the passes that make a plan fit for execution, and the loop that
// takes batches through it.
//
// [Passes] are in the order in which they are applied. Each says what it does; a policy of any
// of them leads to the same results. [Run] applies all of them, or those that it is given, and
// executes what comes of it.
package job
