package bikeshare

import (
	"bytes"
	_ "embed" // the sample
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/heddle-stream/heddle/program"
)

// The sample: the first trips of the published file, and all stations.
var (
	//go:embed sample_trips.csv.gz
	sampleTrips []byte
	//go:embed sample_stations.csv.gz
	sampleStations []byte
)

// trip is a row of the trips.
type trip struct {
	id, bike       uint32
	from, to       uint32
	started, ended int64
}

// Columns of the two files.
var (
	tripColumns    = []string{"trip_id", "start_ts", "start_station", "end_ts", "end_station", "bike_id", "rider"}
	stationColumns = []string{"station_id", "name", "lat", "long", "dock_count", "landmark", "install_date"}
)

// read returns the docks of each station and the trips in file order.
func read(c *program.Config) (docks map[uint32]int32, trips []trip, err error) {
	stationRows, tripRows, err := open(c)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, stationRows.Close(), tripRows.Close()) }()
	if docks, err = readStations(stationRows); err != nil {
		return nil, nil, err
	}
	trips, err = readTrips(tripRows, docks)
	return docks, trips, err
}

func open(c *program.Config) (stations, trips *program.Rows, err error) {
	if c.Input == "" {
		if path := c.Text("stations"); path != "" {
			return nil, nil, &program.ParamError{Param: "stations", Value: path, Allowed: "only together with --input is it allowed"}
		}
		if stations, err = embedded("sample_stations.csv.gz", sampleStations, stationColumns); err != nil {
			return nil, nil, err
		}
		trips, err = embedded("sample_trips.csv.gz", sampleTrips, tripColumns)
		return stations, trips, err
	}
	path := c.Text("stations")
	if path == "" {
		if path, err = program.Beside(c.Input, "_trips", "_stations", "stations"); err != nil {
			return nil, nil, err
		}
	}
	if stations, err = program.OpenRows(path, stationColumns...); err != nil {
		return nil, nil, err
	}
	if trips, err = program.OpenRows(c.Input, tripColumns...); err != nil {
		return nil, nil, errors.Join(err, stations.Close())
	}
	return stations, trips, nil
}

func embedded(name string, content []byte, columns []string) (*program.Rows, error) {
	r, err := program.Decompress(io.NopCloser(bytes.NewReader(content)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return program.NewRows(name, r, columns...)
}

// maxDocks bounds what a station may have, far above what there is anywhere.
const maxDocks = 100_000

// readStations reads the docks of each station. A station that was moved has
// several rows, of which the last one counts.
func readStations(rows *program.Rows) (map[uint32]int32, error) {
	docks := map[uint32]int32{}
	for rows.Next() {
		docks[uint32(rows.Int(0, 1, math.MaxUint32))] = int32(rows.Int(4, 0, maxDocks))
	}
	return docks, rows.Err()
}

func readTrips(rows *program.Rows, docks map[uint32]int32) ([]trip, error) {
	var trips []trip
	for rows.Next() {
		t := trip{
			id: uint32(rows.Int(0, 0, math.MaxUint32)), bike: uint32(rows.Int(5, 0, math.MaxUint32)),
			started: rows.Int(1, 0, math.MaxInt64), from: station(rows, 2, docks),
			ended: rows.Int(3, 0, math.MaxInt64), to: station(rows, 4, docks),
		}
		if t.ended <= t.started {
			_ = rows.Fail(3, fmt.Sprintf("end_ts %d: must be after start_ts %d", t.ended, t.started))
		}
		if rider := rows.Text(6); rider != "S" && rider != "C" {
			_ = rows.Fail(6, fmt.Sprintf("rider %.20q: S (subscriber) or C (customer) is allowed", rider))
		}
		trips = append(trips, t)
	}
	return trips, rows.Err()
}

func station(rows *program.Rows, field int, docks map[uint32]int32) uint32 {
	id := uint32(rows.Int(field, 1, math.MaxUint32))
	if _, ok := docks[id]; !ok {
		_ = rows.Fail(field, fmt.Sprintf("station %d is not in the file of stations", id))
	}
	return id
}
