// Package sl is the streaming ledger: deposits into and transfers between
// accounts, each with a book entry beside.
//
// The rules stand in docs/workloads/sl.md.
package sl
