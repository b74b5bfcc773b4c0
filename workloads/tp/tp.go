package tp

import (
	"fmt"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Program is the workload.
var Program = program.Program{
	Name:   "tp",
	About:  "toll processing: average speed and vehicles of road segments, after Linear Road",
	Events: 1_000_000,
	Params: []program.Param{
		{Name: "keys", Kind: program.Int, Default: "10000", Min: 1, Max: 50_000_000, Usage: "road segments"},
		{Name: "vehicles", Kind: program.Int, Default: "100000", Min: 1, Max: 1_000_000_000, Usage: "vehicles on the road"},
		{Name: "skew", Kind: program.Float, Default: "0.2", Min: 0, Max: 2, Usage: "zipf exponent of the segments"},
		{Name: "abort", Kind: program.Float, Default: "0", Min: 0, Max: 100, Usage: "reports with an impossible speed, in percent"},
		program.Complexity,
	},
	New: newInstance,
}

const (
	speedMax     = 200 // a report of this or more is refused
	initialSpeed = 60
	// A toll is due where traffic is slow and dense.
	tollSpeed = 40
	tollCount = 50
)

// Report tells that a vehicle drives on a segment.
type Report struct {
	Segment, Vehicle uint32
	Speed            float64
}

// Toll is what the vehicle has to pay.
type Toll struct {
	Accepted bool
	Cents    int64
}

// Seen is a vehicle on a segment: the key of the set of vehicles.
type Seen struct{ Segment, Vehicle uint32 }

// App is the declared application.
type App struct {
	App      *txn.App
	Speeds   *txn.Table[uint32, float64]
	Counts   *txn.Table[uint32, int64]
	Vehicles *txn.Table[Seen, bool]
	Reports  *txn.Event[Report, Toll]
}

// New declares the application with segments 0 to segments-1.
func New(segments int, cost program.Cost) *App {
	app := txn.New("tp")
	a := &App{
		App:    app,
		Speeds: txn.NewTable[uint32, float64](app, "speeds"), Counts: txn.NewTable[uint32, int64](app, "counts"),
		Vehicles: txn.NewTable[Seen, bool](app, "vehicles"),
	}
	for s := range uint32(segments) {
		a.Speeds.Load(s, initialSpeed)
		a.Counts.Load(s, 0)
	}
	impossible := app.Reason("impossible speed")
	average := txn.Update(a.Speeds, "average", func(c txn.Ctx, speed float64, v *float64) txn.Verdict {
		cost.Spend(c)
		if speed >= speedMax {
			return impossible
		}
		*v = (*v + speed) / 2
		return txn.OK
	})
	before := txn.NewParam(a.Vehicles, "seen before")
	count := txn.Update(a.Counts, "count", func(c txn.Ctx, _ struct{}, v *int64) txn.Verdict {
		cost.Spend(c)
		if _, found := before.Get(c); !found {
			*v++
		}
		return txn.OK
	})
	mark := txn.Insert(a.Vehicles, "mark", func(_ txn.Ctx, _ struct{}, v *bool) txn.Verdict {
		*v = true
		return txn.OK
	}).Lenient()
	a.Reports = txn.On(app, "report", func(p *txn.Plan, r Report) {
		seen := Seen{r.Segment, r.Vehicle}
		average.At(p, r.Segment, r.Speed)
		count.At(p, r.Segment, struct{}{}, before.Of(p, seen))
		mark.At(p, seen, struct{}{})
	}, func(out txn.Outcome, _ Report) Toll {
		if !out.Committed() {
			return Toll{}
		}
		speed, _ := average.After(out)
		cars, _ := count.After(out)
		return Toll{true, toll(speed, cars)}
	})
	return a
}

func toll(speed float64, cars int64) int64 {
	if speed >= tollSpeed || cars <= tollCount {
		return 0
	}
	return 2 * (cars - tollCount) * (cars - tollCount)
}

// check verifies that each segment's count is the size of its set of vehicles
// and that no average left the range of possible speeds.
func (a *App) check() error {
	sizes := map[uint32]int64{}
	for seen := range a.Vehicles.All() {
		sizes[seen.Segment]++
	}
	for s, n := range a.Counts.All() {
		if sizes[s] != n {
			return fmt.Errorf("counts[%d] is %d; %d vehicles were seen there", s, n, sizes[s])
		}
	}
	for s, v := range a.Speeds.All() {
		if v < 0 || v >= speedMax {
			return fmt.Errorf("speeds[%d] is %v", s, v)
		}
	}
	return nil
}

// generator makes the events, the same for equal parameters and seed.
type generator struct {
	r        *rng.RNG
	zipf     *rng.Zipf
	scatter  rng.Scatter
	vehicles int
	abort    float64
}

func newGenerator(c *program.Config) *generator {
	keys := c.Int("keys")
	return &generator{
		r: rng.New(c.Seed, 1), zipf: rng.NewZipf(keys, c.Float("skew")), scatter: rng.NewScatter(keys),
		vehicles: c.Int("vehicles"), abort: c.Float("abort") / 100,
	}
}

func (g *generator) next() Report {
	r := Report{
		Segment: uint32(g.scatter.Index(g.zipf.Draw(g.r))), Vehicle: uint32(g.r.IntN(g.vehicles)),
		Speed: float64(g.r.IntN(90)),
	}
	if g.r.Float64() < g.abort {
		r.Speed = speedMax + r.Speed
	}
	return r
}

func newInstance(c *program.Config) (*program.Instance, error) {
	a := New(c.Int("keys"), c.Cost("complexity"))
	g := newGenerator(c)
	return &program.Instance{
		App:    a.App,
		Total:  c.Events,
		Source: program.Generated(c.Events, func(f *txn.Feed) { a.Reports.Push(f, g.next()) }),
		Check:  a.check,
		Loops:  []program.Loop{{Name: "go maps", Prepare: func() func() { return overMaps(c) }}},
	}, nil
}

func overMaps(c *program.Config) func() {
	cost := c.Cost("complexity")
	speeds, counts, vehicles := map[uint32]float64{}, map[uint32]int64{}, map[Seen]bool{}
	for s := range uint32(c.Int("keys")) {
		speeds[s], counts[s] = initialSpeed, 0
	}
	g := newGenerator(c)
	events := make([]Report, c.Events)
	for i := range events {
		events[i] = g.next()
	}
	return func() {
		total := int64(0)
		for i := range events {
			r := &events[i]
			cost.SpendTimes(2)
			if r.Speed >= speedMax {
				continue
			}
			speed := (speeds[r.Segment] + r.Speed) / 2
			speeds[r.Segment] = speed
			seen := Seen{r.Segment, r.Vehicle}
			if !vehicles[seen] {
				counts[r.Segment]++
				vehicles[seen] = true
			}
			total += toll(speed, counts[r.Segment])
		}
	}
}
