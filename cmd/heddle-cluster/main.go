// Command heddle-cluster is heddle with worker processes: the binary heddle starts it for `run --processes`. It is a module of
// its own because the NATS server takes longer to build than all of heddle.
package main

import (
	"github.com/heddle-stream/heddle/cli"
	"github.com/heddle-stream/heddle/cmd/heddle-cluster/remote"
	"github.com/heddle-stream/heddle/cmd/heddle/programs"
)

func main() { cli.MainOn(remote.Processes{}, programs.All()...) }
