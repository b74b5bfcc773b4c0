// Command heddle runs, compares, records and replays the built-in workloads.
package main

import (
	"github.com/heddle-stream/heddle/cli"
	"github.com/heddle-stream/heddle/cmd/heddle/programs"
)

func main() { cli.Main(programs.All()...) }
