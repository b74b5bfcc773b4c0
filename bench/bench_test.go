package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/bench/plot"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/workloads/gs"
	"github.com/heddle-stream/heddle/workloads/sl"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 3}} {
		if got := bench.Median(c.v); got != c.want {
			t.Errorf("median of %v is %v, expected %v", c.v, got, c.want)
		}
	}
	if got := bench.Thousands(1234567.4); got != "1,234,567" {
		t.Error(got)
	}
}

func TestExperimentEmitsALinePerPointAndStrategy(t *testing.T) {
	x := bench.Experiments()[0]
	points := x.Points(bench.Scale{Events: 2000, Reps: 1})
	small := bench.Experiment{Name: x.Name, Points: func(bench.Scale) []bench.Point {
		out := points[:3]
		for i := range out {
			out[i].Events = 2000
			out[i].Params["keys"] = "100"
		}
		return out
	}}
	var lines []bench.Line
	err := bench.RunExperiment(context.Background(), small, bench.Scale{Events: 2000, Reps: 1}, []program.Program{sl.Program, gs.Program}, nil, func(l bench.Line) error {
		lines = append(lines, l)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, p := range points[:3] {
		want += len(p.Strategies)
	}
	if len(lines) != want {
		t.Fatalf("%d lines, expected %d", len(lines), want)
	}
	for _, l := range lines {
		if l.Experiment != "engine" || l.EventsPerSec <= 0 || l.SerialLoopRatio <= 0 || l.SerialRatio <= 0 || len(l.LoopsNsPerEvent) != 3 {
			text, _ := json.Marshal(l)
			t.Errorf("incomplete line %s", text)
		}
		if hasWork := strings.Contains(l.Point, "us"); hasWork != (l.Efficiency > 0) {
			t.Errorf("%s: efficiency %v", l.Point, l.Efficiency)
		}
	}
	dir := t.TempDir()
	if err := bench.PlotLines(dir, bench.Experiment{Name: "engine"}, lines); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.svg"))
	if len(files) != 3 {
		t.Errorf("%d plots, expected 3", len(files))
	}
}

// A comparison fails when a check of the program fails.
func TestFailedCheckIsAnError(t *testing.T) {
	broken := sl.Program
	broken.New = func(c *program.Config) (*program.Instance, error) {
		in, err := sl.Program.New(c)
		in.Check = func() error { return errors.New("money is missing") }
		return in, err
	}
	_, err := bench.Run(context.Background(), bench.Spec{Program: &broken, Events: 10, Seed: 1})
	var check *bench.CheckError
	if !errors.As(err, &check) || !strings.Contains(err.Error(), "money is missing") {
		t.Fatal(err)
	}
}

func TestCancelledRunHasAResult(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := bench.Spec{Program: &sl.Program, Events: 1 << 30, Seed: 1, Params: map[string]string{"keys": "10"}}
	s.Options.Listener.BatchDone = func(engine.BatchInfo) { cancel() }
	r, err := bench.Run(ctx, s)
	if !engine.Interrupted(err) || r == nil || r.Events == 0 || r.StateHash == "" {
		t.Fatal(r, err)
	}
}

func TestPlotsCarryTheirFigures(t *testing.T) {
	c := plot.Chart{Title: "a < b", Unit: "x", Bars: []plot.Bar{{Label: "one", Values: []float64{2}, Low: 1, High: 3}, {Label: "two", Values: []float64{4}}}}
	svg := c.SVG()
	for _, want := range []string{"a &lt; b (x)", ">one<", ">two<", ">2<", ">4<", "</svg>"} {
		if !strings.Contains(svg, want) {
			t.Errorf("%q is missing in %s", want, svg)
		}
	}
}

// Both axes double at equal distances, and names do not cover each other.
func TestLinesAreLogarithmic(t *testing.T) {
	c := plot.Lines{Title: "a <b>", X: []float64{1, 2, 4}, Curves: []plot.Curve{{Label: "one", Values: []float64{1, 2, 4}}, {Label: "two", Values: []float64{1, 2, 4}, Dashed: true}}}
	svg := c.SVG()
	var points []string
	for part := range strings.SplitSeq(svg, `points="`) {
		if coordinates, _, ok := strings.Cut(part, `"`); ok && strings.Contains(coordinates, ",") {
			points = strings.Fields(coordinates)
			break
		}
	}
	var x, y [3]float64
	for i, p := range points {
		if _, err := fmt.Sscanf(p, "%f,%f", &x[i], &y[i]); err != nil {
			t.Fatal(err)
		}
	}
	if math.Abs(x[1]-x[0]-(x[2]-x[1])) > 0.2 || math.Abs(y[1]-y[0]-(y[2]-y[1])) > 0.2 || y[2] >= y[0] {
		t.Errorf("points %v", points)
	}
	if strings.Count(svg, "<polyline") != 2 || !strings.Contains(svg, "a &lt;b&gt;") || !strings.Contains(svg, ">one 4</text>") {
		t.Error(svg)
	}
	if !strings.Contains(svg, `x="658" y="44.0"`) || !strings.Contains(svg, `x="658" y="58.0"`) {
		t.Errorf("the names are not one below the other: %s", svg)
	}
}
