package bikeshare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-stream/heddle/internal/rng"
)

// Kinds of events, in the order in which those of one minute happen.
const (
	docking = iota
	relocating
	undocking
)

// event is any of the three, as it is sorted.
type event struct {
	time     int64
	kind     uint8
	trip     uint32
	from, to uint32
	bike     uint32
}

func inOrder(a, b event) int {
	return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.kind, b.kind), cmp.Compare(a.trip, b.trip))
}

// city is the input: how things stand at the start, and all events.
type city struct {
	stations map[uint32]Station
	bikes    map[uint32]uint32
	events   []event
	trips    int
	astray   int // trips that start where their bike did not last end
	homeless int // bikes for which there was no dock where their first trip starts
}

// newCity makes the input of the trips.
func newCity(docks map[uint32]int32, trips []trip, seed uint64) (*city, error) {
	c := &city{stations: map[uint32]Station{}, bikes: map[uint32]uint32{}, trips: len(trips)}
	for id, n := range docks {
		c.stations[id] = Station{Docks: n}
	}
	if err := c.settle(trips, seed); err != nil {
		return nil, err
	}
	c.schedule(trips)
	return c, nil
}

// settle places each bike at the start. It goes through the bikes in the order
// of their first trips, so that those of the first day get what they need.
func (c *city) settle(trips []trip, seed uint64) error {
	order := slices.Clone(trips)
	slices.SortStableFunc(order, func(a, b trip) int {
		return cmp.Or(cmp.Compare(a.started, b.started), cmp.Compare(a.id, b.id))
	})
	free := int64(0)
	for _, s := range c.stations {
		free += int64(s.Docks)
	}
	ids := slices.Sorted(maps.Keys(c.stations))
	r := rng.New(seed, 1)
	last := map[uint32]uint32{}
	for _, t := range order {
		if end, ok := last[t.bike]; ok && end != t.from {
			c.astray++
		}
		last[t.bike] = t.to
		if _, ok := c.bikes[t.bike]; ok {
			continue
		}
		if free == 0 {
			return fmt.Errorf("%d bikes stand in all docks that the stations have; there are more bikes", len(c.bikes))
		}
		at := t.from
		if s := c.stations[at]; s.Stock >= s.Docks {
			c.homeless++
			at = c.dock(ids, r.Int64N(free))
		}
		c.bikes[t.bike] = at
		s := c.stations[at]
		s.Stock++
		c.stations[at] = s
		free--
	}
	return nil
}

// dock returns the station of the n-th free dock.
func (c *city) dock(ids []uint32, n int64) uint32 {
	for _, id := range ids {
		s := c.stations[id]
		if n -= int64(s.Docks - s.Stock); n < 0 {
			return id
		}
	}
	panic("unreachable: n is below the number of free docks")
}

// schedule makes the events. It follows each bike as the data have it, without
// regard to docks, to find where vans must have moved it.
func (c *city) schedule(trips []trip) {
	for _, t := range trips {
		c.events = append(c.events,
			event{t.started, undocking, t.id, t.from, Out, t.bike}, event{t.ended, docking, t.id, Out, t.to, t.bike})
	}
	slices.SortStableFunc(c.events, inOrder)
	place := maps.Clone(c.bikes)
	for _, e := range c.events { // ranges over the events without those added
		at := place[e.bike]
		switch {
		case e.kind == docking && at == Out:
			place[e.bike] = e.to
		case e.kind == undocking && at != Out: // else two trips of the bike overlap
			if at != e.from {
				c.events = append(c.events, event{e.time, relocating, e.trip, at, e.from, e.bike})
			}
			place[e.bike] = Out
		}
	}
	slices.SortStableFunc(c.events, inOrder)
}
