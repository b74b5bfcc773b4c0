// Package bench measures: one run of a program, a comparison of strategies in
// interleaved repetitions, and named experiments.
//
// Machines are shared and noisy, so that only ratios within one call mean
// anything. Whatever is compared runs in turn, A B C A B C, and figures are
// medians over the repetitions; the hand-written serial loop of the program and,
// when operations spend time, the bound of bare concurrent work loops run in
// the same turns.
package bench
