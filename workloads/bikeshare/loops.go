package bikeshare

import (
	"maps"

	"github.com/heddle-stream/heddle/program"
)

// loops are serial programs over the same events.
func (c *city) loops(events []event, cost program.Cost) []program.Loop {
	return []program.Loop{{Name: "go maps", Prepare: func() func() {
		stations, bikes := maps.Clone(c.stations), maps.Clone(c.bikes)
		return func() { overMaps(events, stations, bikes, cost) }
	}}}
}

func overMaps(events []event, stations map[uint32]Station, bikes map[uint32]uint32, cost program.Cost) {
	for i := range events {
		e := &events[i]
		switch e.kind {
		case undocking:
			undock(e, stations, bikes, cost)
		case docking:
			dock(e, stations, bikes, cost)
		default:
			relocate(e, stations, bikes, cost)
		}
	}
}

func undock(e *event, stations map[uint32]Station, bikes map[uint32]uint32, cost program.Cost) {
	cost.SpendTimes(1)
	if place, ok := bikes[e.bike]; !ok || place != e.from {
		return
	}
	cost.SpendTimes(1)
	s, ok := stations[e.from]
	if !ok || s.Stock == 0 {
		return
	}
	s.Stock--
	stations[e.from] = s
	bikes[e.bike] = Out
}

func dock(e *event, stations map[uint32]Station, bikes map[uint32]uint32, cost program.Cost) {
	cost.SpendTimes(1)
	if place, ok := bikes[e.bike]; !ok || place != Out {
		return
	}
	cost.SpendTimes(1)
	s, ok := stations[e.to]
	if !ok || s.Stock >= s.Docks {
		return
	}
	s.Stock++
	stations[e.to] = s
	bikes[e.bike] = e.to
}

func relocate(e *event, stations map[uint32]Station, bikes map[uint32]uint32, cost program.Cost) {
	cost.SpendTimes(1)
	if place, ok := bikes[e.bike]; !ok || place != e.from {
		return
	}
	cost.SpendTimes(1)
	from, ok := stations[e.from]
	to, known := stations[e.to]
	if !ok || !known || from.Stock == 0 {
		return
	}
	cost.SpendTimes(1)
	from.Stock--
	stations[e.from] = from
	bikes[e.bike] = Out
	if to.Stock < to.Docks {
		to.Stock++
		stations[e.to] = to
		bikes[e.bike] = e.to
	}
}
