package bench

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/txn"
)

// MigrationFigures is what a change of a running job did to it.
type MigrationFigures struct {
	// SpikeP99Ms is the highest p99 of latency in any 100 ms while it lasted and in the second after it.
	SpikeP99Ms   float64 `json:"spike_p99_ms"`
	CompletionMs float64 `json:"completion_ms"`
	PauseMaxMs   float64 `json:"pause_max_ms"` // that a group was nowhere
	BytesMoved   int64   `json:"bytes_moved"`
	BytesToMove  int64   `json:"bytes_to_move"`
	// SteadyP99Ms is the p99 of the second before it, when nobody knows yet which groups will move.
	SteadyP99Ms float64 `json:"steady_p99_ms"`
	// OthersP99Ms is the p99 of events of groups that stay while it lasted, OthersSpikeMs as SpikeP99Ms of these.
	OthersP99Ms   float64 `json:"others_p99_ms"`
	OthersSpikeMs float64 `json:"others_spike_p99_ms"`
	HeldMax       int     `json:"held_max"` // events that waited at one time

	Timeline []Tenth `json:"timeline,omitempty"` // of the last repetition
}

// Tenth is 100 ms of a run.
type Tenth struct {
	Seconds    float64 `json:"seconds"` // since the change was asked for
	Events     int     `json:"events"`
	AffectedMs float64 `json:"affected_p99_ms"` // p99 of events that name keys of groups which move
	OthersMs   float64 `json:"others_p99_ms"`   // and of all others
}

// scenario is a job and a change of it, to be made in several ways.
type scenario struct {
	name    string
	params  map[string]string
	nodes   int
	groups  int
	rate    float64
	link    float64
	request reconfig.Request
	ways    []string
}

// The ways to move groups by name, as migrations and as the part of groups that have copies all the time.
var migrationWays = map[string]struct {
	reconfig.Migration
	replicas float64
}{
	"default":          {},
	"no-replication":   {replicas: -1},
	"fluid":            {Migration: reconfig.Migration{Groups: 1, Order: reconfig.Ascending}, replicas: -1},
	"all-at-once":      {Migration: reconfig.Migration{Groups: reconfig.GroupsMax, Order: reconfig.Ascending}, replicas: -1},
	"full-replication": {Migration: reconfig.Migration{Groups: reconfig.GroupsMax, Order: reconfig.Ascending}, replicas: 1},
	"stop-restart":     {Migration: reconfig.Migration{Stop: true}, replicas: -1},
	"noop":             {},
	"256 KiB a time":   {Migration: reconfig.Migration{Bytes: 256 << 10}, replicas: -1},
}

const migrationSteady = 1200 * time.Millisecond // before a change, and a second of it counts

// scenarios are the experiments of a scale.
func scenarios(s Scale) []scenario {
	keys, bytes := 16_384, 8<<10
	if s.Dense {
		keys = 65_536
	}
	shrink := func(name, access string, ways ...string) scenario {
		return scenario{
			name:   fmt.Sprintf("%s two nodes to one, %d MiB move, %s %% of keys in use", name, keys*bytes/2>>20, access),
			params: map[string]string{"keys": strconv.Itoa(keys), "bytes": strconv.Itoa(bytes), "access": access},
			nodes:  2, groups: reconfig.GroupsDefault, rate: 20_000, link: 100 << 20, request: reconfig.Request{Nodes: 1}, ways: ways,
		}
	}
	if !s.Dense {
		return []scenario{shrink("E1", "10", "default", "fluid", "all-at-once", "stop-restart", "noop"), shrink("E4", "2", "default")}
	}
	all := []scenario{
		shrink("E1", "10", "default", "no-replication", "fluid", "all-at-once", "full-replication", "stop-restart", "noop"),
		shrink("E4", "2", "default", "fluid"),
		shrink("E4", "100", "default", "fluid"),
	}
	small := func(name string, keys int, more ...string) scenario {
		x := shrink(name, "10", "256 KiB a time")
		x.name = fmt.Sprintf("%s %d MiB in all, two nodes to one", name, keys>>10)
		x.params["keys"], x.params["bytes"] = strconv.Itoa(keys), "1024"
		for i := 0; i < len(more); i += 2 {
			x.name += ", " + more[i] + " " + more[i+1]
			x.params[more[i]] = more[i+1]
		}
		return x
	}
	for _, mib := range []int{4, 16, 64, 256} { // of which 2 move, in eight chunks
		x := small("E2", mib<<10)
		x.name = fmt.Sprintf("E2 %d MiB in all, 2 MiB from node to node", mib)
		x.request = reconfig.Request{}
		for g := range x.groups * 2 / mib {
			x.request.Moves = append(x.request.Moves, reconfig.Move{Group: reconfig.Group(g), From: 0, To: 1})
		}
		all = append(all, x)
	}
	for _, skew := range []string{"0.5", "1"} {
		x := small("E3", 64<<10, "skew", skew, "access", "100")
		x.ways = []string{"default", "fluid"}
		all = append(all, x)
	}
	for _, pairs := range []string{"10", "50", "100"} {
		x := small("E5", 64<<10, "pairs", pairs)
		x.ways = []string{"default"}
		all = append(all, x)
	}
	return all
}

// migrationCourse measures changes of running jobs.
func migrationCourse(m *Measuring) error {
	all := scenarios(m.Scale)
	reps := 1
	if m.Scale.Dense {
		reps = 3
	}
	for i, s := range all {
		for _, way := range s.ways {
			m.tell(i, len(all), s.name+", "+way)
			line, err := m.migrate(s, way, reps)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", s.name, way, err)
			}
			if err := m.Emit(line); err != nil {
				return err
			}
		}
	}
	if m.Scale.Dense {
		if err := m.lived(); err != nil {
			return err
		}
	}
	return m.standing()
}

// migrate measures a change made in one way, and returns the medians.
func (m *Measuring) migrate(s scenario, way string, reps int) (Line, error) {
	line := Line{Experiment: m.Name, Point: s.name, Strategy: way, Reps: reps}
	var all []*MigrationFigures
	var perSec []float64
	for range reps {
		f, rate, err := m.migrateOnce(s, way)
		if err != nil {
			return line, err
		}
		all, perSec = append(all, f), append(perSec, rate)
	}
	f := *all[len(all)-1]
	for _, field := range []func(*MigrationFigures) *float64{
		func(f *MigrationFigures) *float64 { return &f.SpikeP99Ms }, func(f *MigrationFigures) *float64 { return &f.CompletionMs },
		func(f *MigrationFigures) *float64 { return &f.PauseMaxMs }, func(f *MigrationFigures) *float64 { return &f.SteadyP99Ms },
		func(f *MigrationFigures) *float64 { return &f.OthersP99Ms }, func(f *MigrationFigures) *float64 { return &f.OthersSpikeMs },
	} {
		var vs []float64
		for _, one := range all {
			vs = append(vs, *field(one))
		}
		*field(&f) = Median(vs)
	}
	line.MigrationFigures = &f
	line.EventsPerSec = Median(perSec)
	line.NsPerEvent = 1e9 / line.EventsPerSec
	return line, nil
}

// migrateOnce runs the job once.
func (m *Measuring) migrateOnce(s scenario, way string) (*MigrationFigures, float64, error) {
	prog, err := find(m.Programs, "micro")
	if err != nil {
		return nil, 0, err
	}
	local := &cluster.Local{LinkRate: s.link, Engine: engine.Options{Workers: 1}, New: func() (*txn.App, error) {
		in, err := s.instance(prog, s.params["bytes"], math.MaxInt32)
		if err != nil {
			return nil, err
		}
		return in.App, nil
	}}
	in, err := s.instance(prog, "0", math.MaxInt32) // control needs no state
	if err != nil {
		return nil, 0, err
	}
	r := &timeline{}
	o := cluster.JobOptions{
		Nodes: s.nodes, Groups: s.groups, LinkRate: s.link, Replicas: migrationWays[way].replicas,
		Pace: func(seconds float64) float64 { return s.rate * seconds }, Completed: r.add,
	}
	j, err := cluster.NewJob(in.App, in.Source, o, local, local.Box())
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithCancel(m.Ctx)
	defer cancel()
	reports := make(chan cluster.Report, 1)
	go func() {
		defer cancel()
		reports <- s.change(ctx, j, way, r)
	}()
	out, err := j.Run(ctx)
	if m.Ctx.Err() != nil {
		return nil, 0, m.Ctx.Err()
	}
	if err != nil && !engine.Interrupted(err) {
		return nil, 0, err
	}
	report := <-reports
	if report.State != cluster.Done {
		return nil, 0, fmt.Errorf("the change is %s: %s", report.State, report.Error)
	}
	f := r.figures()
	f.CompletionMs, f.PauseMaxMs, f.BytesMoved, f.BytesToMove, f.HeldMax = report.CompletionMs, report.PauseMaxMs, report.BytesMoved, report.BytesToMove, out.HeldMax
	return f, float64(out.Events) / out.Seconds, nil
}

// instance makes the workload, with so many bytes to a key.
func (s *scenario) instance(prog *program.Program, bytes string, events int) (*program.Instance, error) {
	values := maps.Clone(s.params)
	values["bytes"] = bytes
	c, err := prog.Config(values)
	if err != nil {
		return nil, err
	}
	c.Events = events
	return prog.New(c)
}

// change asks for the change when the job has run for a while, and waits for what comes after it.
func (s *scenario) change(ctx context.Context, j *cluster.Job, way string, r *timeline) cluster.Report {
	wait := func(d time.Duration) {
		select {
		case <-clock.System{}.After(d):
		case <-ctx.Done():
		}
	}
	if migrationWays[way].replicas >= 0 { // copies are there before anything happens
		wait(time.Duration(float64(s.bytes())/s.link*1e9) + 2500*time.Millisecond)
	}
	wait(migrationSteady)
	request := s.request
	request.Migration = migrationWays[way].Migration
	if way == "noop" {
		request = reconfig.Request{}
	}
	r.asked.Store(clock.NowNanos())
	report := <-j.Ask(request)
	r.ended.Store(clock.NowNanos())
	wait(time.Second)
	return report
}

// bytes returns the state of the scenario's keys.
func (s *scenario) bytes() int {
	keys, _ := strconv.Atoi(s.params["keys"])
	bytes, _ := strconv.Atoi(s.params["bytes"])
	return keys * bytes
}
