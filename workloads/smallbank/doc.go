// Package smallbank is the SmallBank benchmark (Alomari et al., 2008): six kinds
// of transactions on the savings and checking accounts of customers.
//
// The rules stand in docs/workloads/smallbank.md.
package smallbank
