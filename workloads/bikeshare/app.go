package bikeshare

import (
	"fmt"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Out is the place of a bike that stands at no station.
const Out = 0

// Station is the state of a station: bikes that stand there, and docks.
type Station struct{ Stock, Docks int32 }

// Undock is the start of a trip.
type Undock struct {
	Time          int64
	Trip          uint32
	Station, Bike uint32
}

// Dock is the end of a trip.
type Dock struct {
	Time          int64
	Trip          uint32
	Station, Bike uint32
}

// Relocate is a van's move of a bike to where the trip starts.
type Relocate struct {
	Time           int64
	Trip           uint32
	From, To, Bike uint32
}

// Result is the outcome of an event.
type Result struct {
	Trip   uint32
	Done   bool
	Reason string
}

// App is the declared application.
type App struct {
	App       *txn.App
	Stations  *txn.Table[uint32, Station]
	Bikes     *txn.Table[uint32, uint32] // station, or Out
	Undocks   *txn.Event[Undock, Result]
	Docks     *txn.Event[Dock, Result]
	Relocates *txn.Event[Relocate, Result]
	cost      program.Cost
	notHere   txn.Verdict
}

// New declares the application with stations and bikes as they are at the start.
func New(stations map[uint32]Station, bikes map[uint32]uint32, cost program.Cost) *App {
	app := txn.New("bikeshare")
	a := &App{
		App: app, cost: cost, notHere: app.Reason("bike is not here"),
		Stations: txn.NewTable[uint32, Station](app, "stations"), Bikes: txn.NewTable[uint32, uint32](app, "bikes"),
	}
	for k, v := range stations {
		a.Stations.Load(k, v)
	}
	for k, v := range bikes {
		a.Bikes.Load(k, v)
	}
	debit := a.debit()
	a.trips(debit)
	a.vans(debit)
	return a
}

// debit takes a bike out of a station's stock.
func (a *App) debit() *txn.Op[uint32, Station, struct{}] {
	empty := a.App.Reason("station is empty")
	return txn.Update(a.Stations, "debit", func(c txn.Ctx, _ struct{}, s *Station) txn.Verdict {
		a.cost.Spend(c)
		if s.Stock == 0 {
			return empty
		}
		s.Stock--
		return txn.OK
	})
}

// trips declares the start and the end of a trip.
func (a *App) trips(debit *txn.Op[uint32, Station, struct{}]) {
	notOut, full := a.App.Reason("bike is not out"), a.App.Reason("station is full")
	leave := txn.Update(a.Bikes, "leave", func(c txn.Ctx, station uint32, place *uint32) txn.Verdict {
		a.cost.Spend(c)
		if *place != station {
			return a.notHere
		}
		*place = Out
		return txn.OK
	})
	arrive := txn.Update(a.Bikes, "arrive", func(c txn.Ctx, station uint32, place *uint32) txn.Verdict {
		a.cost.Spend(c)
		if *place != Out {
			return notOut
		}
		*place = station
		return txn.OK
	})
	credit := txn.Update(a.Stations, "credit", func(c txn.Ctx, _ struct{}, s *Station) txn.Verdict {
		a.cost.Spend(c)
		if s.Stock >= s.Docks {
			return full
		}
		s.Stock++
		return txn.OK
	})
	a.Undocks = txn.On(a.App, "undock", func(p *txn.Plan, e Undock) {
		leave.At(p, e.Bike, e.Station)
		debit.At(p, e.Station, struct{}{})
	}, func(out txn.Outcome, e Undock) Result { return Result{e.Trip, out.Committed(), out.Reason()} })
	a.Docks = txn.On(a.App, "dock", func(p *txn.Plan, e Dock) {
		arrive.At(p, e.Bike, e.Station)
		credit.At(p, e.Station, struct{}{})
	}, func(out txn.Outcome, e Dock) Result { return Result{e.Trip, out.Committed(), out.Reason()} })
}

// vans declares the relocation: a van that finds no free dock keeps the bike,
// which therefore has to look at the station.
func (a *App) vans(debit *txn.Op[uint32, Station, struct{}]) {
	target := txn.NewParam(a.Stations, "target")
	carry := txn.Update(a.Bikes, "carry", func(c txn.Ctx, e Relocate, place *uint32) txn.Verdict {
		a.cost.Spend(c)
		if *place != e.From {
			return a.notHere
		}
		*place = e.To
		if s, ok := target.Get(c); !ok || s.Stock >= s.Docks {
			*place = Out
		}
		return txn.OK
	})
	unload := txn.Update(a.Stations, "unload", func(c txn.Ctx, _ struct{}, s *Station) txn.Verdict {
		a.cost.Spend(c)
		if s.Stock < s.Docks {
			s.Stock++
		}
		return txn.OK
	})
	a.Relocates = txn.On(a.App, "relocate", func(p *txn.Plan, e Relocate) {
		carry.At(p, e.Bike, e, target.Of(p, e.To))
		debit.At(p, e.From, struct{}{})
		unload.At(p, e.To, struct{}{})
	}, func(out txn.Outcome, e Relocate) Result { return Result{e.Trip, out.Committed(), out.Reason()} })
}

// check verifies that the bikes are those of the start, that each station's
// stock is the bikes which stand there, and that none has more than docks.
func (a *App) check(bikes map[uint32]uint32, stations int) error {
	standing := map[uint32]int32{}
	n := 0
	for bike, place := range a.Bikes.All() {
		if _, ok := bikes[bike]; !ok {
			return fmt.Errorf("bike %d was not there at the start", bike)
		}
		n++
		if place != Out {
			standing[place]++
		}
	}
	if n != len(bikes) {
		return fmt.Errorf("%d bikes; at the start there were %d", n, len(bikes))
	}
	seen := 0
	for id, s := range a.Stations.All() {
		seen++
		if s.Stock != standing[id] {
			return fmt.Errorf("station %d has a stock of %d; %d bikes stand there", id, s.Stock, standing[id])
		}
		if s.Stock < 0 || s.Stock > s.Docks {
			return fmt.Errorf("station %d has a stock of %d and %d docks", id, s.Stock, s.Docks)
		}
		delete(standing, id)
	}
	if seen != stations || len(standing) > 0 {
		return fmt.Errorf("%d stations of %d; bikes at others: %v", seen, stations, standing)
	}
	return nil
}
