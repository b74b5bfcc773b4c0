// Package tp is toll processing after Linear Road: position reports update the
// average speed of a road segment and the set of vehicles seen there, and a
// toll follows from both.
//
// The rules stand in docs/workloads/tp.md.
package tp
