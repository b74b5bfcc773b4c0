// Package osed detects events in a stream of short texts: words that burst bring
// texts together in clusters, and a cluster that grows fast is an event. Each text
// is one transaction of six steps that build on each other.
//
// The built-in input is the subjects of 4,520 commits of two projects of the
// Apache Software Foundation, see NOTICE.
//
// The rules stand in docs/workloads/osed.md.
package osed
