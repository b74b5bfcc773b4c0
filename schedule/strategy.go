package schedule

import (
	"fmt"
	"strings"
)

type exploration uint8

const (
	ns exploration = iota
	bfs
	dfs
)

type granularity uint8

const (
	byOperation granularity = iota
	byChain
	byTransaction
)

// Strategy is a way to execute a batch. The zero value is ns-op-eager.
type Strategy struct {
	explore exploration
	unit    granularity
	lazy    bool
	hold    bool // wait at a unit that is not ready, for a while
	locked  bool // wait for earlier readers of a row, too
	nested  bool // by connected component
	kind    Kind
	name    string
	about   string
}

// Kind tells which strategies a Run can execute and which the engine handles
// by other means.
type Kind uint8

// The kinds of strategies.
const (
	Graph  Kind = iota // executed by a Run
	Serial             // in place, without a graph
	Auto               // chosen batch by batch
)

// Kind returns how the strategy is executed.
func (s Strategy) Kind() Kind { return s.kind }

// String returns the strategy's name.
func (s Strategy) String() string { return s.name }

// About explains the strategy in one line.
func (s Strategy) About() string { return s.about }

var strategies = list()

func list() []Strategy {
	out := []Strategy{
		{kind: Auto, name: "auto", about: "chooses for each batch, by a model that what it measures corrects"},
		{kind: Serial, name: "serial", about: "one event after the other on one core, no graph"},
	}
	explorations := []struct {
		e           exploration
		name, about string
	}{
		{bfs, "bfs", "stratum by stratum with a barrier"},
		{dfs, "dfs", "by stratum without a barrier, waiting for what is early"},
		{ns, "ns", "in event order, putting aside what is not ready"},
	}
	for _, e := range explorations {
		for _, unit := range []granularity{byOperation, byChain} {
			for _, lazy := range []bool{false, true} {
				name, about := e.name, e.about
				if unit == byOperation {
					name, about = name+"-op", about+"; single operations"
				} else {
					name, about = name+"-chain", about+"; the operations of a key together"
				}
				if lazy {
					name, about = name+"-lazy", about+"; aborts redone at the end"
				} else {
					name, about = name+"-eager", about+"; aborts redone at once"
				}
				out = append(out, Strategy{
					explore: e.e, unit: unit, lazy: lazy, hold: e.e == dfs, name: name, about: about,
				})
			}
		}
	}
	return append(out,
		Strategy{unit: byTransaction, locked: true, name: "lock", about: "whole transactions under ordered locks on their keys (S-Store)"},
		Strategy{unit: byTransaction, nested: true, name: "nested", about: "by connected component: small ones packed together and large ones that are one chain in order by one worker, others by all"},
		Strategy{unit: byChain, lazy: true, hold: true, name: "tstream", about: "the operations of a key together, waiting at each (TStream)"},
	)
}

// Strategies returns all strategies.
func Strategies() []Strategy { return append([]Strategy(nil), strategies...) }

// Parse returns the strategy of the given name; the error lists the names.
func Parse(name string) (Strategy, error) {
	var names []string
	for _, s := range strategies {
		if s.name == name {
			return s, nil
		}
		names = append(names, s.name)
	}
	return Strategy{}, fmt.Errorf("unknown strategy %q: one of %s", name, strings.Join(names, ", "))
}

// MustParse is Parse for names known to be right.
func MustParse(name string) Strategy {
	s, err := Parse(name)
	if err != nil {
		panic(err)
	}
	return s
}
