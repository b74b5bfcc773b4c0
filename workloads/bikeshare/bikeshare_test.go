package bikeshare

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/fulldata"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/storage"
)

func config(t *testing.T, values map[string]string) *program.Config {
	t.Helper()
	c, err := Program.Config(values)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// replay runs the configuration's events and returns the application, what is
// wrong with it being a failure: the check, and any difference from the loop.
func replay(t *testing.T, c *program.Config, opts engine.Options) (*App, engine.Metrics, map[string]int) {
	t.Helper()
	docks, trips, err := read(c)
	if err != nil {
		t.Fatal(err)
	}
	for id := range docks {
		docks[id] += int32(c.Int("spare"))
	}
	input, err := newCity(docks, trips, c.Seed)
	if err != nil {
		t.Fatal(err)
	}
	events := input.events
	if c.Events > 0 {
		events = events[:c.Events]
	}
	a := New(input.stations, input.bikes, program.Cost{})
	reasons := map[string]int{}
	a.Undocks.Each(func(r Result) { reasons["undock: "+r.Reason]++ })
	a.Docks.Each(func(r Result) { reasons["dock: "+r.Reason]++ })
	a.Relocates.Each(func(r Result) { reasons["relocate: "+r.Reason]++ })
	m, err := engine.Run(context.Background(), a.App, a.source(events), opts)
	if err != nil {
		t.Fatal(err)
	}
	if m.Events != len(events) {
		t.Errorf("%d events ran, want %d", m.Events, len(events))
	}
	if err := a.check(input.bikes, len(input.stations)); err != nil {
		t.Error(err)
	}
	stations, bikes := maps.Clone(input.stations), maps.Clone(input.bikes)
	overMaps(events, stations, bikes, program.Cost{})
	if diff := cmp.Diff(stations, maps.Collect(a.Stations.All())); diff != "" {
		t.Errorf("stations differ from the loop's (-loop +engine):\n%s", diff)
	}
	if diff := cmp.Diff(bikes, maps.Collect(a.Bikes.All())); diff != "" {
		t.Errorf("bikes differ from the loop's (-loop +engine):\n%s", diff)
	}
	return a, m, reasons
}

// The model, the loop and the check are the oracles.
func TestSample(t *testing.T) {
	hashes := map[storage.Hash]bool{}
	for _, strategy := range []string{"serial", "ns-op-eager", "bfs-chain-lazy"} {
		a, m, reasons := replay(t, config(t, nil), engine.Options{Strategy: strategy, Verify: true})
		hashes[storage.StateHash(a.App)] = true
		t.Logf("%s: %d events, %d aborted: %v", strategy, m.Events, m.Aborted, reasons)
	}
	if len(hashes) != 1 {
		t.Errorf("strategies end in %d different states", len(hashes))
	}
}

func TestInstance(t *testing.T) {
	c := config(t, nil)
	c.Events = 20_000
	in, err := Program.New(c)
	if err != nil {
		t.Fatal(err)
	}
	m, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{})
	if err != nil || m.Events != 20_000 || in.Total != 20_000 {
		t.Fatalf("%d events of %d ran: %v", m.Events, in.Total, err)
	}
	if err := in.Check(); err != nil {
		t.Error(err)
	}
	in.Loops[0].Prepare()()
	if len(in.Notes) == 0 || !strings.HasPrefix(in.Notes[0], "60000 trips of ") {
		t.Errorf("notes: %q", in.Notes)
	}
}

// city1 has two stations with a dock each.
const city1 = "station_id,name,lat,long,dock_count,landmark,install_date\n1,A,0,0,9,X,2013-01-01\n1,A moved,0,0,1,X,2014-01-01\n2,B,0,0,1,X,2013-01-01\n"

const header = "trip_id,start_ts,start_station,end_ts,end_station,bike_id,rider\n"

// files writes both files, unless the trips are empty, and returns their configuration.
func files(t *testing.T, trips, stations string) *program.Config {
	t.Helper()
	dir := t.TempDir()
	c := config(t, map[string]string{"spare": "0"})
	c.Input = filepath.Join(dir, "x_trips.csv")
	for name, content := range map[string]string{"x_trips.csv": trips, "x_stations.csv": stations} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestRules(t *testing.T) {
	for _, test := range []struct {
		name, trips string
		places      map[uint32]uint32
		reasons     map[string]int
	}{
		{
			"a trip, and back in the minute of its end", header + "1,60,1,120,2,7,S\n2,120,2,180,1,7,S\n",
			map[uint32]uint32{7: 1},
			map[string]int{"undock: ": 2, "dock: ": 2},
		},
		{
			"a van takes the bike to the next trip", header + "1,60,1,120,2,7,S\n2,180,1,240,2,7,C\n",
			map[uint32]uint32{7: 2},
			map[string]int{"undock: ": 2, "dock: ": 2, "relocate: ": 1},
		},
		{
			"the second bike finds no dock", header + "1,60,1,120,2,7,S\n2,60,2,180,2,8,S\n",
			map[uint32]uint32{7: 2, 8: Out},
			map[string]int{"undock: ": 2, "dock: ": 1, "dock: station is full": 1},
		},
		{
			"and is lost until its next trip ends", header + "1,60,1,120,2,7,S\n2,60,2,180,2,8,S\n3,240,2,300,1,8,S\n",
			map[uint32]uint32{7: 2, 8: 1},
			map[string]int{"undock: ": 2, "dock: ": 2, "dock: station is full": 1, "undock: bike is not here": 1},
		},
		{
			"of two trips that overlap the first dock counts", header + "1,60,1,240,2,7,S\n2,120,1,180,1,7,S\n3,300,1,360,2,7,S\n",
			map[uint32]uint32{7: 2},
			map[string]int{"undock: ": 2, "undock: bike is not here": 1, "dock: ": 2, "dock: bike is not out": 1},
		},
		{
			"a van that finds no dock keeps the bike", header + "1,60,1,120,2,7,S\n2,60,2,120,1,8,S\n3,180,1,240,1,7,S\n",
			map[uint32]uint32{7: Out, 8: 1},
			map[string]int{"undock: ": 2, "dock: ": 2, "relocate: ": 1, "undock: bike is not here": 1, "dock: station is full": 1},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, _, reasons := replay(t, files(t, test.trips, city1), engine.Options{Strategy: "ns-op-eager", Verify: true})
			if diff := cmp.Diff(test.places, maps.Collect(a.Bikes.All())); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.reasons, reasons); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
		})
	}
}

// A bike for which its first station has no dock starts elsewhere, the same for
// the same seed; spare docks make room.
func TestOpening(t *testing.T) {
	trips := []trip{{1, 7, 1, 1, 60, 120}, {2, 8, 1, 1, 60, 120}}
	docks := map[uint32]int32{1: 1, 2: 1, 3: 5}
	a, err := newCity(docks, trips, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newCity(docks, trips, 1)
	if err != nil {
		t.Fatal(err)
	}
	if a.bikes[7] != 1 || a.bikes[8] == 1 || a.homeless != 1 || !maps.Equal(a.bikes, b.bikes) {
		t.Errorf("bikes %v and %v", a.bikes, b.bikes)
	}
	if _, err := newCity(map[uint32]int32{1: 1}, trips, 1); err == nil {
		t.Error("two bikes stand in one dock")
	}
}

func TestMalformedRows(t *testing.T) {
	good := "1,60,1,120,2,7,S\n"
	stations := "station_id,name,lat,long,dock_count,landmark,install_date\n"
	for _, c := range []struct {
		name, trips, stations string
		line, column          int
		what                  string
	}{
		{"trip id", header + good + "x,60,1,120,2,7,S\n", city1, 3, 1, "trip_id"},
		{"start", header + "1,-60,1,120,2,7,S\n", city1, 2, 3, "start_ts"},
		{"unknown station", header + good + "1,60,3,120,2,7,S\n", city1, 3, 6, "station 3 is not in the file"},
		{"unknown end station", header + "1,60,1,120,44,7,S\n", city1, 2, 12, "station 44 is not in the file"},
		{"station 0", header + "1,60,0,120,2,7,S\n", city1, 2, 6, "start_station"},
		{"end before start", header + "1,60,1,59,2,7,S\n", city1, 2, 8, "must be after start_ts 60"},
		{"end at start", header + "1,60,1,60,2,7,S\n", city1, 2, 8, "must be after"},
		{"bike", header + "1,60,1,120,2,4294967296,S\n", city1, 2, 14, "bike_id"},
		{"rider", header + "1,60,1,120,2,7,X\n", city1, 2, 16, "rider"},
		{"field missing", header + "1,60,1,120,2,7\n", city1, 2, 1, "6 fields"},
		{"no header", good, city1, 1, 1, "trip_id"},
		{"docks", header + good, stations + "1,A,0,0,-1,X,Y\n", 2, 9, "dock_count"},
		{"station id", header + good, stations + "A,A,0,0,1,X,Y\n", 2, 1, "station_id"},
	} {
		cfg := files(t, c.trips, c.stations)
		_, err := Program.New(cfg)
		var at *program.InputError
		if !errors.As(err, &at) {
			t.Errorf("%s: %v is no InputError", c.name, err)
			continue
		}
		file := cfg.Input
		if strings.HasPrefix(c.stations, stations) && c.stations != city1 {
			file = strings.Replace(file, "_trips", "_stations", 1)
		}
		if at.File != file || at.Line != c.line || at.Column != c.column || !strings.Contains(at.What, c.what) {
			t.Errorf("%s: %v; want line %d, column %d: ... %s", c.name, err, c.line, c.column, c.what)
		}
	}
}

func TestFilesThatAreMissing(t *testing.T) {
	c := config(t, nil)
	c.Input = filepath.Join(t.TempDir(), "x_trips.csv")
	if _, err := Program.New(c); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such input: %v", err)
	}
	if err := os.WriteFile(c.Input, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Program.New(c); err == nil || !strings.Contains(err.Error(), "--stations") {
		t.Errorf("no file of stations: %v", err)
	}
	c = config(t, map[string]string{"stations": "x"})
	var param *program.ParamError
	if _, err := Program.New(c); !errors.As(err, &param) {
		t.Errorf("stations without input: %v", err)
	}
}

// A check that cannot fail tells nothing.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	stations, bikes := map[uint32]Station{1: {1, 2}, 2: {0, 1}}, map[uint32]uint32{7: 1}
	for want, spoil := range map[string]func(a *App){
		"bike 8 was not there":     func(a *App) { a.Bikes.Load(8, Out) },
		"station 1 has a stock":    func(a *App) { a.Bikes.Load(7, Out) },
		"station 2 has a stock":    func(a *App) { a.Stations.Load(2, Station{1, 1}) },
		"a stock of 1 and 0 docks": func(a *App) { a.Stations.Load(1, Station{1, 0}) },
		"stations of 2":            func(a *App) { a.Stations.Load(3, Station{0, 1}) },
	} {
		a := New(stations, bikes, program.Cost{})
		if err := a.check(bikes, 2); err != nil {
			t.Fatal(err)
		}
		if spoil(a); a.check(bikes, 2) == nil || !strings.Contains(a.check(bikes, 2).Error(), want) {
			t.Errorf("%s: %v", want, a.check(bikes, 2))
		}
	}
	if err := New(stations, nil, program.Cost{}).check(bikes, 2); err == nil {
		t.Error("a bike is gone")
	}
}

func FuzzTrips(f *testing.F) {
	f.Add(header + "1,60,1,120,2,7,S\n")
	f.Add(header + "1,60,1,120,2,7,S\n2,60,2,180,2,8,S\n3,240,2,300,1,8,S\n")
	f.Fuzz(func(t *testing.T, content string) {
		rows, err := program.NewRows("f", io.NopCloser(strings.NewReader(content)), tripColumns...)
		if err != nil {
			return
		}
		trips, err := readTrips(rows, map[uint32]int32{1: 1, 2: 1})
		if err != nil {
			return
		}
		input, err := newCity(map[uint32]int32{1: 1, 2: 1}, trips, 1)
		if err != nil {
			return
		}
		a := New(input.stations, input.bikes, program.Cost{})
		if _, err := engine.Run(context.Background(), a.App, a.source(input.events), engine.Options{Workers: 1, Verify: true}); err != nil {
			t.Fatal(err)
		}
		if err := a.check(input.bikes, 2); err != nil {
			t.Fatal(err)
		}
	})
}

// What is known of the full file.
func TestFullData(t *testing.T) {
	c := config(t, nil)
	if c.Input = fulldata.Path(t, "bayarea_bikeshare_2014_trips.csv.gz"); c.Input == "" {
		return
	}
	docks, trips, err := read(c)
	if err != nil {
		t.Fatal(err)
	}
	input, err := newCity(docks, trips, c.Seed)
	if err != nil {
		t.Fatal(err)
	}
	for _, fact := range []struct {
		what      string
		got, want int
	}{
		{"trips", len(trips), 326_339},
		{"bikes", len(input.bikes), 687},
		{"stations", len(docks), 70},
		{"trips that start where the bike did not last end", input.astray, 63_816},
		{"trips that do", len(trips) - len(input.bikes) - input.astray, 261_836},
		{"bikes without a dock at their first station", input.homeless, 12},
	} {
		if fact.got != fact.want {
			t.Errorf("%s: %d, want %d", fact.what, fact.got, fact.want)
		}
	}
	t.Log(strings.Join(input.notes(input.events), "\n"))
	_, m, reasons := replay(t, c, engine.Options{})
	t.Logf("%d of %d aborted: %v", m.Aborted, m.Events, reasons)
	if rate := float64(m.Aborted) / float64(m.Events); rate < 0.05 || rate > 0.15 {
		t.Errorf("%.1f %% aborted", 100*rate)
	}
	if got := reasons["undock: station is empty"] + reasons["relocate: station is empty"]; got != 0 {
		t.Errorf("%d times a bike was at a station that had none", got)
	}
	c = config(t, map[string]string{"spare": "100"})
	c.Input = fulldata.Path(t, "bayarea_bikeshare_2014_trips.csv.gz")
	_, m, reasons = replay(t, c, engine.Options{})
	if m.Aborted != 88 || reasons["undock: bike is not here"] != 44 || reasons["dock: bike is not out"] != 44 {
		t.Errorf("with docks for all, the 44 overlapping trips alone should abort: %v", reasons)
	}
}
