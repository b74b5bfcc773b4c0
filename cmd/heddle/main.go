// Command heddle runs, compares, records and replays the built-in workloads.
package main

import (
	"github.com/heddle-stream/heddle/cli"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/workloads/gs"
	"github.com/heddle-stream/heddle/workloads/ob"
	"github.com/heddle-stream/heddle/workloads/sl"
	"github.com/heddle-stream/heddle/workloads/tp"
)

func main() {
	cli.Main([]program.Program{sl.Program, gs.Program, tp.Program, ob.Program}...)
}
