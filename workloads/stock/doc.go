// Package stock replays the order flow of an exchange: orders enter a book of
// price levels, are executed in parts or as a whole, and are cancelled, and each
// is told the turnover of the last minute on its side.
//
// The built-in input is generated, in the format of the real one: the licence of
// the recorded order flow that it resembles does not allow to copy rows of it.
//
// The rules stand in docs/workloads/stock.md.
package stock
