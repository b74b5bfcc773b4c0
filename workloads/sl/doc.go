// Package sl is the streaming ledger: deposits into and transfers between
// accounts, each with a book entry beside.
//
// The rules stand in docs/workloads/sl.md, and those of the load that changes
// while it runs in docs/workloads/dynamic.md.
package sl
