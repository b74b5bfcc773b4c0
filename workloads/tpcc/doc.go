// Package tpcc is TPC-C as a stream: orders, payments, deliveries and two kinds
// of questions at warehouses with ten districts each. Numbers of orders, and
// with them most keys, are known only while a transaction runs.
//
// The rules stand in docs/workloads/tpcc.md.
package tpcc
