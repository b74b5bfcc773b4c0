package nexmark

import (
	"slices"

	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/program"
)

// Program is the queries for a command line.
var Program = job.Program{
	Program: program.Program{
		Name: "nexmark", About: "the queries of an auction house about its stream of persons, auctions and bids", Events: 1_000_000,
		Params: []program.Param{
			{Name: "rate", Usage: "events per second of event time", Default: "100000", Kind: program.Int, Min: 1, Max: 1e9},
			{Name: "stream", Usage: "inorder, or adversarial: users who come back, bursts, 10 % of the events out of order, 1 % late", Default: "inorder", Kind: program.Text, OneOf: []string{"inorder", "adversarial"}},
		},
	},
	Jobs: named(),
	Open: func(name string, c *program.Config, w job.Wanted) (*job.Instance, error) {
		all := Queries()
		q := all[slices.IndexFunc(all, func(q Query) bool { return q.Name == name })]
		return q.New(Config{
			Events: int64(c.Events), Rate: int64(c.Int("rate")), Seed: c.Seed,
			Adversarial: c.Text("stream") == "adversarial", Keep: w.Verify, Output: w.Output,
		})
	},
}

func named() (names []job.Named) {
	for _, q := range Queries() {
		names = append(names, job.Named{Name: q.Name, About: q.About})
	}
	return names
}
