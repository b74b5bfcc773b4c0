package peers

import (
	"fmt"
	"strconv"

	"github.com/heddle-stream/heddle/workloads/sl"
)

// Input is what all peers run: the tables at the start, and the events.
type Input struct {
	Keys   int // accounts and book entries, each, from 0; all hold sl.Opening
	Events []sl.Event
	Memory int64 // bytes that a peer may take, 0: enough
}

// Params are the ledger's own parameters.
type Params struct {
	Events  int     `json:"events"`
	Keys    int     `json:"keys"`
	Skew    float64 `json:"skew"`
	Abort   float64 `json:"abort"`
	Deposit float64 `json:"deposit"`
	Seed    uint64  `json:"seed"`
	Memory  int64   `json:"memory"`
}

// Generate makes the events that `heddle run sl` makes for equal parameters.
func Generate(p Params) (*Input, error) {
	if p.Events < 1 {
		return nil, fmt.Errorf("--events %d: at least 1 is needed", p.Events)
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	c, err := sl.Program.Config(map[string]string{
		"keys": strconv.Itoa(p.Keys), "skew": number(p.Skew), "abort": number(p.Abort), "deposit": number(p.Deposit),
	})
	if err != nil {
		return nil, err
	}
	c.Events, c.Seed = p.Events, p.Seed
	return &Input{p.Keys, sl.Events(c), p.Memory}, nil
}

// Prefix returns the input with the first n events only.
func (in *Input) Prefix(n int) *Input {
	return &Input{in.Keys, in.Events[:min(n, len(in.Events))], in.Memory}
}
