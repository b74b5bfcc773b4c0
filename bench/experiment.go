package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/bench/plot"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
)

// Experiment is a named set of measurements.
type Experiment struct {
	Name   string
	About  string
	Points func(scale Scale) []Point
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
	Program    string
	Params     map[string]string
	Events     int
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
}

// Experiments returns all experiments.
func Experiments() []Experiment {
	return []Experiment{{
		Name: "engine", About: "sl and gs from 10k to 1M keys, with and without work, beside hand-written loops", Points: enginePoints,
	}}
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

// RunExperiment measures the points of an experiment one after the other and
// hands each line to emit as it is there.
func RunExperiment(ctx context.Context, e Experiment, scale Scale, programs []program.Program, progress func(done, total int, what string), emit func(Line) error) error {
	points := e.Points(scale)
	for i, p := range points {
		if progress != nil {
			progress(i, len(points), p.Name)
		}
		prog, err := find(programs, p.Program)
		if err != nil {
			return err
		}
		c := Comparison{
			Spec:       Spec{Program: prog, Params: p.Params, Events: p.Events, Seed: 1, Options: engine.Options{Workers: runtime.GOMAXPROCS(0)}},
			Strategies: p.Strategies, Reps: scale.Reps,
		}
		if err := c.Run(ctx); err != nil {
			return fmt.Errorf("%s, %s: %w", e.Name, p.Name, err)
		}
		for j := range c.Rows {
			if err := emit(c.line(e.Name, p.Name, &c.Rows[j])); err != nil {
				return err
			}
		}
	}
	return nil
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
	}
	for _, loop := range c.Loops {
		l.LoopsNsPerEvent[loop.Name] = 1e9 / Median(loop.PerSec)
	}
	return l
}

// PlotLines writes one SVG per point into dir.
func PlotLines(dir string, lines []Line) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i := 0; i < len(lines); {
		chart := plot.Chart{Title: lines[i].Point, Unit: "ns per event, less is better"}
		point, first := lines[i].Point, lines[i]
		for ; i < len(lines) && lines[i].Point == point; i++ {
			chart.Bars = append(chart.Bars, plot.Bar{Label: lines[i].Strategy, Values: []float64{lines[i].NsPerEvent}})
		}
		for _, name := range sortedNames(first.LoopsNsPerEvent) {
			chart.Bars = append(chart.Bars, plot.Bar{Label: "loop: " + name, Values: []float64{first.LoopsNsPerEvent[name]}})
		}
		file := strings.NewReplacer(" ", "_", ",", "", ".", "_").Replace(first.Experiment+"_"+point) + ".svg"
		if err := os.WriteFile(filepath.Join(dir, file), []byte(chart.SVG()), 0o644); err != nil {
			return err
		}
	}
	return nil
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
