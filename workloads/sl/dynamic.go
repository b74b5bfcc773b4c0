package sl

import (
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/program"
)

// Dynamic is the ledger with a load that changes while it runs.
//
// Its rules stand in docs/workloads/dynamic.md.
var Dynamic = program.Program{
	Name:   "dynamic",
	About:  "streaming ledger in 13 phases: more skew, then more transfers, then more aborts",
	Events: 1_300_000,
	Params: []program.Param{
		{Name: "keys", Kind: program.Int, Default: "100000", Min: 2, Max: 50_000_000, Usage: "accounts and book entries, each"},
		{Name: "phase", Kind: program.Int, Default: "-1", Min: -1, Max: float64(len(phases) - 1), Usage: "phase whose settings all events have; -1 for all phases, one after the other"},
		{Name: "work", Kind: program.Text, Default: "all", OneOf: []string{"all", oddPhases}, Usage: "phases in which operations spend their work: all, or odd ones, the others spending none"},
		fees,
		program.Complexity,
	},
	New: func(c *program.Config) (*program.Instance, error) { return instance("dynamic", c, newPhased), nil },
}

// oddPhases is the value of flag work with which even phases spend none.
const oddPhases = "odd"

// phase is the part of a run with one setting; shares are in percent.
type phase struct{ skew, deposit, abort float64 }

var phases = [...]phase{
	{0, 100, 0},
	{0, 100, 0},
	{0, 100, 0},
	{0, 100, 0},
	// Keys that many events meet on.
	{0.2, 100, 0},
	{0.4, 100, 0},
	{0.6, 100, 0},
	// Operations that look at other keys.
	{0.6, 45, 0},
	{0.6, 25, 0},
	{0.6, 5, 0},
	// Transactions that take nothing.
	{0.6, 5, 20},
	{0.6, 5, 40},
	{0.6, 5, 60},
}

// phased makes the events of the phases. What a phase draws does not depend on
// those before it: each has a stream of its own.
type phased struct {
	makers       []*generator // by phase
	made, events int
	first        int  // phase of makers[0]
	idle         bool // even phases spend no work
}

func newPhased(c *program.Config) maker {
	keys, only := c.Int("keys"), c.Int("phase")
	zipfs, scatter := map[float64]*rng.Zipf{}, rng.NewScatter(keys)
	p := &phased{events: c.Events, first: max(0, only), idle: c.Text("work") == oddPhases}
	for i, s := range phases {
		if only >= 0 && i != only {
			continue
		}
		if zipfs[s.skew] == nil {
			zipfs[s.skew] = rng.NewZipf(keys, s.skew)
		}
		p.makers = append(p.makers, &generator{
			r: rng.New(c.Seed, uint64(1+i)), zipf: zipfs[s.skew], scatter: scatter, keys: keys, deposit: s.deposit / 100, abort: s.abort / 100,
		})
	}
	return p
}

// phase returns the place in makers of the next event's.
func (p *phased) phase() int { return p.made * len(p.makers) / p.events }

func (p *phased) next() Event {
	i := p.phase()
	p.made++
	e := p.makers[i].next()
	e.Idle = p.idle && (p.first+i)%2 == 0
	return e
}
