package engine

import (
	"github.com/heddle-stream/heddle/tpg"
	"github.com/heddle-stream/heddle/txn"
)

// Inspector builds the graphs of batches without executing them.
type Inspector struct {
	x       *txn.Batch
	exec    *txn.Executor
	graph   tpg.Graph
	guesser tpg.Guesser
}

// NewInspector binds the application, which then cannot be run.
func NewInspector(app *txn.App) (*Inspector, error) {
	b, err := txn.Bind(app, 1)
	if err != nil {
		return nil, err
	}
	return &Inspector{x: b.NewBatch(0), exec: b.NewExecutor()}, nil
}

// Graph returns the graph of the feed's events as one batch, and the names of
// its parts. Both are valid until the next call.
func (in *Inspector) Graph(feed *txn.Feed) (*tpg.Graph, tpg.Names) {
	x := in.x
	x.Open(feed)
	for r := range x.RegionCount() {
		x.PlanRegion(r)
	}
	x.Seal(false)
	in.graph.Reset(x)
	for t := range x.Tables() {
		for s := range x.Shards(t) {
			in.graph.Link(x.Resolve(t, s))
		}
	}
	in.exec.Use(x)
	in.guesser.Place(&in.graph, x, in.exec)
	return &in.graph, x
}
