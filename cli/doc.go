// Package cli turns applications into a binary: with [Main] in func main, a
// program has the commands run, compare, record, replay, inspect, simulate, bench,
// workloads and strategies.
//
//	func main() { cli.Main(ledger.Program) }
//
// With one program its name may be left out: `ledger run --events 1000`.
//
// Exit status: 0 success; 1 a run failed or differed from what it should be; 2
// something on the command line or in the input is wrong; 130 interrupted.
package cli
