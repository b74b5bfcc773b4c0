// Package fraud decides which card payments to refuse, by a decision tree over what card and merchant did
// before, and the tree can be exchanged while it runs: when fraudsters begin to do something else, the one
// that was right before is not.
//
// The rules stand in docs/workloads/fraud.md. The idea, a tree replaced in a running job with a measure of quality
// each second, is that of the fraud detection job of Trisk (Mao et al., ICDE 2022); payments and trees are our own.
package fraud
