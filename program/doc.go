// Package program describes an application together with its input, its flags
// and its checks: what a command line, a benchmark or a test can run without
// knowing it.
//
// A workload of this repository is a [Program], and so is yours: package cli
// turns any of them into a binary with all commands.
package program
