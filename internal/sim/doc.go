// Package sim runs the workloads on a disk that loses its power, from seeds: it is for
// tests only.
//
// A [Story] is drawn from one number: a workload with its parameters, a durability
// scheme, a strategy, batches, when checkpoints are due, and at which operations of the
// file system the power goes, also while the run recovers from the time before. It ends
// well if state, results and output file are those of an undisturbed serial run that was
// compared with the model. Everything that touches the disk happens in one order, so that
// the number tells all there is to know about a failure.
package sim
