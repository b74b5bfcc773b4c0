// Package ycsb is the Yahoo! Cloud Serving Benchmark (Cooper et al., 2010) with
// transactions: each event reads, updates, inserts or scans under several keys.
//
// The rules stand in docs/workloads/ycsb.md.
package ycsb
