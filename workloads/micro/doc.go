// Package micro counts how often keys come, each with so many bytes of state beside its count: for
// measurements of what moving state costs, where everything else should be simple.
//
// The rules stand in docs/workloads/micro.md. The settings are those of the
// key-count benchmark that Trisk and Spacker use.
package micro
