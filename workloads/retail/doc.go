// Package retail replays the invoices of a shop: each takes its lines from the
// stock of their articles and charges its customer, all or nothing.
//
// Invoices touch from one to over a thousand articles, and some articles are in
// every other invoice. The built-in input is the first 8,000 of the 25,901
// invoices of the Online Retail data set of the UCI Machine Learning Repository
// (D. Chen, 2015), as published in the public domain (CC0).
//
// The rules stand in docs/workloads/retail.md.
package retail
