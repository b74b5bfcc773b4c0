package peers

import (
	"context"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/workloads/sl"
)

// mapsJob is the loop that every comparison of Heddle has beside it. Being the
// plainest serial program, it also says which final state is right.
type mapsJob struct {
	events          []sl.Event
	accounts, books map[uint32]int64
}

func prepareMaps(in *Input) (Job, error) {
	j := &mapsJob{in.Events, map[uint32]int64{}, map[uint32]int64{}}
	for k := range uint32(in.Keys) {
		j.accounts[k], j.books[k] = sl.Opening, sl.Opening
	}
	return j, nil
}

func (j *mapsJob) Run(context.Context) error {
	sl.OverMaps(j.events, j.accounts, j.books, program.Cost{})
	return nil
}

func (j *mapsJob) State() (State, error) { return mapState(j.accounts, j.books), nil }

func (*mapsJob) Close() error { return nil }
