// Package gs is grep and sum: an event reads a number of keys and writes their
// mean to the first of them.
//
// The rules stand in docs/workloads/gs.md, and those of the form with windowed
// reads in docs/workloads/gsw.md.
package gs
