// Package ob is online bidding: buyers bid on goods, sellers change prices and
// top up stock.
//
// The rules stand in docs/workloads/ob.md.
package ob
