package peers

import "context"

// Peer is a way to run the events.
type Peer struct {
	Name  string
	About string
	// Most is how many events it runs in a comparison unless told otherwise, 0
	// for all: slow peers get a prefix, and are compared at the end of that.
	Most int
	// Prepare builds the initial state, which is not timed.
	Prepare func(in *Input) (Job, error)
}

// Job is an input ready to be run once by a peer.
type Job interface {
	// Run executes all events; that is timed.
	Run(ctx context.Context) error
	// State returns the final state.
	State() (State, error)
	Close() error
}

// OnDisk returns the peers that can do with less memory than the rows take, and the loop
// that cannot.
func OnDisk() []Peer {
	return []Peer{
		heddle("auto"),
		heddle("serial"),
		{
			Name: "go maps", About: "plain loop over Go maps, one goroutine, all in memory",
			Prepare: prepareMaps,
		},
		{
			Name: "pebble", About: "Pebble without a log, one goroutine, half of the memory for its cache", Most: 200_000,
			Prepare: preparePebble,
		},
	}
}

// All returns the peers, Heddle's strategies first.
func All() []Peer {
	return []Peer{
		heddle("auto"),
		heddle("serial"),
		{
			Name: "go maps", About: "plain loop over Go maps, one goroutine",
			Prepare: prepareMaps,
		},
		{
			Name: "ordered locks", About: "sharded ticket locks taken in event order, GOMAXPROCS goroutines",
			Prepare: prepareLocks,
		},
		{
			Name: "go-block-stm", About: "Block-STM, GOMAXPROCS executors", Most: 100_000,
			Prepare: prepareBlockSTM,
		},
		{
			Name: "sqlite, batched", About: "SQLite in memory, a transaction per 4096 events", Most: 50_000,
			Prepare: prepareSQLite(4096),
		},
		{
			Name: "sqlite, single", About: "SQLite in memory, a transaction per event", Most: 20_000,
			Prepare: prepareSQLite(1),
		},
	}
}
