package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
)

// Experiment is a named set of measurements: points that are measured one after
// the other, or a course of its own.
type Experiment struct {
	Name   string
	About  string
	Points func(scale Scale) []Point
	// Course, if set, measures instead of Points.
	Course func(m *Measuring) error
	// XName tells what the points stand for on the x axis of one figure for all of
	// them; "" draws a figure for each point.
	XName string
}

// Scale is how large an experiment is run.
type Scale struct {
	Events int // per run of a program without work
	Reps   int
	Dense  bool // more points between the ends of each range
}

// The scales by name.
var scales = map[string]Scale{"small": {Events: 200_000, Reps: 3}, "full": {Events: 2_000_000, Reps: 7, Dense: true}}

// ScaleNamed returns a scale.
func ScaleNamed(name string) (Scale, error) {
	s, ok := scales[name]
	if !ok {
		return Scale{}, fmt.Errorf("unknown scale %q: small or full", name)
	}
	return s, nil
}

// Point is one setting of an experiment.
type Point struct {
	Name       string
	X          string // its place on the x axis
	Program    string
	Params     map[string]string
	Events     int
	Batch      int // 0 for the default
	Workers    int // 0 for as many as there are processors
	Strategies []string
}

// Line is what a point came to under one strategy, as `bench --json` prints it.
type Line struct {
	Experiment      string             `json:"experiment"`
	Point           string             `json:"point"`
	Strategy        string             `json:"strategy"`
	EventsPerSec    float64            `json:"events_per_sec"`
	NsPerEvent      float64            `json:"ns_per_event"`
	SerialLoopRatio float64            `json:"serial_loop_ratio"`
	SerialRatio     float64            `json:"serial_ratio"`
	Efficiency      float64            `json:"efficiency"`
	BuildNsPerEvent float64            `json:"build_ns_per_event"` // plan and link, wall time
	AllocsPerEvent  float64            `json:"allocs_per_event"`
	LoopsNsPerEvent map[string]float64 `json:"loops_ns_per_event"`
	Reps            int                `json:"reps"`
	ChoosingShare   float64            `json:"choosing_share,omitempty"` // of the time, on statistics and on choosing
	Workers         int                `json:"workers,omitempty"`
	X               string             `json:"x,omitempty"`
	PeakRSSBytes    int64              `json:"peak_rss_bytes,omitempty"`
	BreakdownNs     *engine.Breakdown  `json:"breakdown_ns,omitempty"`
	Repetition      int                `json:"repetition,omitempty"` // from 1, of a line about one
	Batches         map[string]int     `json:"batches,omitempty"`    // by strategy
	Values          map[string]float64 `json:"values,omitempty"`     // what else the experiment measures
	*MigrationFigures
}

// enginePoints are the settings of the engine's speed targets.
func enginePoints(s Scale) []Point {
	var out []Point
	graphs := []string{"auto", "serial", "ns-op-eager", "ns-chain-eager"}
	work := func(name, keys, cost string, events int) {
		out = append(out, Point{
			Name: name, Program: "sl", Events: events, Strategies: []string{"auto", "serial", "ns-op-eager"},
			Params: map[string]string{"keys": keys, "complexity": cost, "deposit": "50"},
		})
	}
	work("sl 500k keys, 10us", "500000", "10us", max(80_000, s.Events/20))
	work("sl 500k keys, 1us", "500000", "1us", max(200_000, s.Events/4))
	skews, costs := []string{"0", "0.99"}, []string{"25ns", "100ns", "400ns"}
	if s.Dense {
		skews, costs = []string{"0", "0.3", "0.6", "0.9", "0.99"}, []string{"25ns", "50ns", "100ns", "200ns", "400ns"}
	}
	for _, program := range []string{"sl", "gs"} {
		for _, keys := range []string{"10000", "100000", "1000000"} {
			for _, skew := range skews {
				p := Point{
					Name: fmt.Sprintf("%s %s keys, skew %s", program, keys, skew), Program: program, Events: s.Events, Strategies: graphs,
					Params: map[string]string{"keys": keys, "skew": skew},
				}
				if program == "sl" {
					p.Params["deposit"] = "50"
				}
				out = append(out, p)
			}
		}
	}
	// Where parallel execution starts to pay on a table that fits the caches.
	for _, cost := range costs {
		work("break-even, sl 10k keys, "+cost+" per operation", "10000", cost, s.Events)
	}
	return out
}

// Measuring is an experiment under way.
type Measuring struct {
	Ctx      context.Context
	Name     string
	Scale    Scale
	Programs []program.Program
	Progress func(done, total int, what string) // or nil
	Emit     func(Line) error                   // gets each line as it is there
}

// RunExperiment measures an experiment.
func RunExperiment(ctx context.Context, e Experiment, scale Scale, programs []program.Program, progress func(done, total int, what string), emit func(Line) error) error {
	m := &Measuring{ctx, e.Name, scale, programs, progress, emit}
	if e.Course != nil {
		return e.Course(m)
	}
	return m.points(e.Points(scale))
}

// tell shows progress.
func (m *Measuring) tell(done, total int, what string) {
	if m.Progress != nil {
		m.Progress(done, total, what)
	}
}

// points measures points one after the other.
func (m *Measuring) points(points []Point) error {
	for i, p := range points {
		m.tell(i, len(points), p.Name)
		c, err := m.measure(p)
		if err != nil {
			return err
		}
		for j := range c.Rows {
			line := c.line(m.Name, p.Name, &c.Rows[j])
			line.X, line.Workers = p.X, c.Spec.Options.Workers
			if err := m.Emit(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure compares the strategies of a point.
func (m *Measuring) measure(p Point) (*Comparison, error) {
	spec, err := m.spec(p)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Spec: spec, Strategies: p.Strategies, Reps: m.Scale.Reps}
	if err := c.Run(m.Ctx); err != nil {
		return nil, fmt.Errorf("%s, %s: %w", m.Name, p.Name, err)
	}
	return c, nil
}

func (m *Measuring) spec(p Point) (Spec, error) {
	prog, err := find(m.Programs, p.Program)
	if err != nil {
		return Spec{}, err
	}
	workers := p.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	return Spec{
		Program: prog, Params: p.Params, Events: p.Events, Seed: 1, Options: engine.Options{Workers: workers, Batch: p.Batch},
	}, nil
}

func find(programs []program.Program, name string) (*program.Program, error) {
	var names []string
	for i := range programs {
		if programs[i].Name == name {
			return &programs[i], nil
		}
		names = append(names, programs[i].Name)
	}
	return nil, fmt.Errorf("unknown workload %q: one of %s", name, strings.Join(names, ", "))
}

func (c *Comparison) line(experiment, point string, r *Row) Line {
	l := Line{
		Experiment: experiment, Point: point, Strategy: r.Strategy, EventsPerSec: Median(r.PerSec), NsPerEvent: 1e9 / Median(r.PerSec),
		SerialLoopRatio: r.SerialLoopRatio, SerialRatio: r.SerialRatio, Efficiency: r.Efficiency,
		BuildNsPerEvent: float64(r.BreakdownNs.Plan+r.BreakdownNs.Build) / float64(max(1, r.Events)),
		AllocsPerEvent:  r.AllocsPerEvent, LoopsNsPerEvent: map[string]float64{}, Reps: c.Reps,
		PeakRSSBytes: r.PeakRSSBytes, BreakdownNs: &r.BreakdownNs, Batches: r.Metrics.Strategies,
	}
	if r.Seconds > 0 {
		l.ChoosingShare = float64(r.Metrics.ChoosingNs) / 1e9 / r.Seconds
	}
	for _, loop := range c.Loops {
		l.LoopsNsPerEvent[loop.Name] = 1e9 / Median(loop.PerSec)
	}
	return l
}

func sortedNames(m map[string]float64) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// WriteLine prints a line as JSON.
func WriteLine(w io.Writer, l any) error { return json.NewEncoder(w).Encode(l) }

// Text is the line for people. Lines about one repetition are for programs.
func (l *Line) Text() string {
	if l.Repetition > 0 {
		return ""
	}
	out := fmt.Sprintf("%-44s %-15s %9.1f ns/event", l.Point, l.Strategy, l.NsPerEvent)
	for _, f := range []struct {
		format string
		value  float64
	}{{"  %5.2fx loop", l.SerialLoopRatio}, {"  %5.2fx serial", l.SerialRatio}, {"  eff. %.2f", l.Efficiency}} {
		if f.value > 0 {
			out += fmt.Sprintf(f.format, f.value)
		}
	}
	if f := l.MigrationFigures; f != nil {
		out += fmt.Sprintf("  spike %.1f ms (others %.1f, steady %.1f), %.0f ms for %.0f of %.0f MiB, pause %.1f ms",
			f.SpikeP99Ms, f.OthersSpikeMs, f.SteadyP99Ms, f.CompletionMs, float64(f.BytesMoved)/(1<<20), float64(f.BytesToMove)/(1<<20), f.PauseMaxMs)
	}
	for _, name := range sortedNames(l.Values) {
		out += fmt.Sprintf("  %s %.4g", name, l.Values[name])
	}
	return out + "\n"
}
