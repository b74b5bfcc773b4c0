// Package programs lists the built-in workloads, for the commands that run them.
package programs

import (
	"github.com/heddle-stream/heddle/cli"
	"github.com/heddle-stream/heddle/workloads/auction"
	"github.com/heddle-stream/heddle/workloads/bikeshare"
	"github.com/heddle-stream/heddle/workloads/eth"
	"github.com/heddle-stream/heddle/workloads/fraud"
	"github.com/heddle-stream/heddle/workloads/gs"
	"github.com/heddle-stream/heddle/workloads/micro"
	"github.com/heddle-stream/heddle/workloads/nexmark"
	"github.com/heddle-stream/heddle/workloads/ob"
	"github.com/heddle-stream/heddle/workloads/osed"
	"github.com/heddle-stream/heddle/workloads/retail"
	"github.com/heddle-stream/heddle/workloads/sl"
	"github.com/heddle-stream/heddle/workloads/smallbank"
	"github.com/heddle-stream/heddle/workloads/stock"
	"github.com/heddle-stream/heddle/workloads/tp"
	"github.com/heddle-stream/heddle/workloads/tpcc"
	"github.com/heddle-stream/heddle/workloads/ycsb"
)

// All returns them in the order in which they are listed.
func All() []cli.Runnable {
	return []cli.Runnable{
		bikeshare.Program, retail.Program, eth.Program, stock.Program, osed.Program,
		micro.Program, fraud.Program, sl.Program, sl.Dynamic, gs.Program, gs.NonDet, gs.Windowed, tp.Program, ob.Program, smallbank.Program, ycsb.Program, tpcc.Program,
		nexmark.Program, auction.Program,
	}
}
