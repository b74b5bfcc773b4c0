package nexmark

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/operators"
)

// Query is one of the questions that are asked.
type Query struct {
	Name  string
	About string // one line
	make  func(c Config) (*job.Instance, error)
}

// Config says what events there are.
type Config struct {
	Events      int64
	Rate        int64 // per second of event time
	Seed        uint64
	Adversarial bool
	// Keep makes results stay, for Verify. Bare leaves out their hash.
	Keep, Bare bool
	Output     string // a file that gets the results as lines of JSON, or ""
}

// disorder is by how much events may be out of order.
func (c *Config) disorder() int64 {
	if c.Adversarial {
		return DisorderMax
	}
	return 0
}

// New returns a query ready to be run.
func (q *Query) New(c Config) (*job.Instance, error) { return q.make(c) }

// query makes a query of what builds it and of a model that computes its results from all
// events that are not late.
func query[R any](name, about string, build func(events operators.Stream[Event]) operators.Stream[R], model func(events []Event) []R) Query {
	return Query{name, about, func(c Config) (*job.Instance, error) {
		g := NewGenerator(c.Seed, c.Rate, c.Adversarial)
		j := operators.New("nexmark/" + name)
		events := operators.From(j, "events", operators.Input[Event]{
			Total: c.Events, Fill: g.Fill, Disorder: c.disorder(),
			Time: func(e *Event) int64 { return e.Time },
		})
		results := build(events)
		d := operators.Digest(results, "results")
		if c.Output != "" {
			operators.Lines(results, "output", c.Output, operators.JSON[R])
		}
		d.Keep, d.CountOnly = c.Keep, c.Bare
		graph, err := j.Plan()
		if err != nil {
			return nil, err
		}
		return &job.Instance{
			Plan:    graph,
			Results: func() (int64, string) { return d.Count(), d.Hash() },
			Verify: func() (int64, error) {
				kept := onTime(g, c)
				began := clock.NowNanos()
				want := model(kept)
				return clock.NowNanos() - began, compare(d, want)
			},
		}, nil
	}}
}

// onTime returns all events that are not late.
func onTime(g *Generator, c Config) (kept []Event) {
	all := make([]Event, c.Events)
	g.Fill(all, 0)
	latest := int64(0)
	for _, e := range all {
		if e.Time >= latest-c.disorder() {
			kept = append(kept, e)
		}
		latest = max(latest, e.Time)
	}
	return kept
}

// compare tells the first result that one side has and the other one does not.
func compare[R any](d *operators.Digester[R], want []R) error {
	type row struct {
		bytes []byte
		item  R
	}
	sorted := func(items []R) []row {
		rows := make([]row, len(items))
		for i := range items {
			rows[i] = row{d.Encode(&items[i]), items[i]}
		}
		slices.SortFunc(rows, func(a, b row) int { return bytes.Compare(a.bytes, b.bytes) })
		return rows
	}
	got, model := sorted(d.Items()), sorted(want)
	for i := range max(len(got), len(model)) {
		switch {
		case i == len(got) || i < len(model) && bytes.Compare(model[i].bytes, got[i].bytes) < 0:
			return fmt.Errorf("%d results, the model has %d: it also has %+v", len(got), len(model), model[i].item)
		case i == len(model) || !bytes.Equal(model[i].bytes, got[i].bytes):
			return fmt.Errorf("%d results, the model has %d: it does not have %+v", len(got), len(model), got[i].item)
		}
	}
	return nil
}

// Queries returns all queries in the order of their numbers.
func Queries() []Query {
	all := slices.Concat(statelessQueries(), keyedQueries(), windowQueries(), dayQueries())
	slices.SortStableFunc(all, func(a, b Query) int { return number(a.Name) - number(b.Name) })
	return all
}

func number(name string) (n int) {
	_, _ = fmt.Sscanf(name, "q%d", &n)
	return n
}

// Windows of the queries, in event time.
const (
	shortWindow = 10 * time.Second
	day         = 24 * time.Hour
)

// bids returns the bids among the events.
func bids(events operators.Stream[Event]) operators.Stream[Bid] {
	return operators.Map(operators.Filter(events, "bids", isBid), "bid", asBid)
}

func isBid(e *Event) bool { return e.Kind == KindBid }
func asBid(e *Event) Bid  { return e.Bid() }

func eachBid(events []Event, do func(b Bid)) {
	for i := range events {
		if events[i].Kind == KindBid {
			do(events[i].Bid())
		}
	}
}

// start returns when the window of a size begins that a time is in.
func start(at int64, size time.Duration) int64 { return at - at%int64(size) }
