package bikeshare

import (
	"context"
	"fmt"
	"io"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Program is the workload.
var Program = program.Program{
	Name:       "bikeshare",
	About:      "bike share: real trips between stations with docks, and the vans between them",
	ReadsInput: true,
	Params: []program.Param{
		{Name: "stations", Kind: program.Text, Usage: "file of the stations; default: beside --input, _stations for _trips in its name"},
		{Name: "spare", Kind: program.Int, Default: "0", Min: 0, Max: 10_000, Usage: "docks that each station has beyond those of the file"},
		program.Complexity,
	},
	New: newInstance,
}

func newInstance(c *program.Config) (*program.Instance, error) {
	docks, trips, err := read(c)
	if err != nil {
		return nil, err
	}
	for id := range docks {
		docks[id] += int32(c.Int("spare"))
	}
	input, err := newCity(docks, trips, c.Seed)
	if err != nil {
		return nil, err
	}
	events := input.events
	if c.Events > 0 && c.Events < len(events) {
		events = events[:c.Events]
	}
	cost := c.Cost("complexity")
	a := New(input.stations, input.bikes, cost)
	return &program.Instance{
		App:    a.App,
		Source: a.source(events),
		Total:  len(events),
		Check:  func() error { return a.check(input.bikes, len(input.stations)) },
		Loops:  input.loops(events, cost),
		Notes:  input.notes(events),
	}, nil
}

// source delivers the events.
func (a *App) source(events []event) txn.Source {
	return txn.SourceFunc(func(_ context.Context, f *txn.Feed, limit int) error {
		n := min(limit, len(events))
		for _, e := range events[:n] {
			switch e.kind {
			case undocking:
				a.Undocks.Push(f, Undock{e.time, e.trip, e.from, e.bike})
			case docking:
				a.Docks.Push(f, Dock{e.time, e.trip, e.to, e.bike})
			default:
				a.Relocates.Push(f, Relocate{e.time, e.trip, e.from, e.to, e.bike})
			}
		}
		if events = events[n:]; len(events) == 0 {
			return io.EOF
		}
		return nil
	})
}

func (c *city) notes(events []event) []string {
	var of [3]int
	for i := range events {
		of[events[i].kind]++
	}
	docks := int64(0)
	for _, s := range c.stations {
		docks += int64(s.Docks)
	}
	return []string{
		fmt.Sprintf("%d trips of %d bikes between %d stations with %d docks", c.trips, len(c.bikes), len(c.stations), docks),
		fmt.Sprintf("%d trips start where their bike did not last end", c.astray),
		fmt.Sprintf("events: %d undock, %d dock, %d relocate", of[undocking], of[docking], of[relocating]),
		fmt.Sprintf("at the start %d bikes stand where their first trip starts, %d elsewhere", len(c.bikes)-c.homeless, c.homeless),
	}
}
