package bench

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/bench/plot"
)

// PlotLines writes the figures of an experiment into dir: one with a line for each
// strategy over the points, or one with bars for each point.
func PlotLines(dir string, e Experiment, lines []Line) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := plotTimelines(dir, lines); err != nil {
		return err
	}
	if e.XName != "" {
		return figure(dir, e, lines)
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

// figure draws throughput over the points, a line for each strategy, with the
// serial loop and the bound of bare work loops where there are any.
func figure(dir string, e Experiment, lines []Line) error {
	c := plot.Places{Title: e.Name + ": " + e.About, Unit: "events/s", XName: e.XName}
	at := map[string]int{}
	for _, l := range lines {
		if _, ok := at[l.X]; !ok && l.X != "" {
			at[l.X] = len(c.X)
			c.X = append(c.X, l.X)
		}
	}
	set := func(label string, x int, v float64, dashed bool) {
		i := slices.IndexFunc(c.Series, func(l plot.Series) bool { return l.Label == label })
		if i < 0 {
			i = len(c.Series)
			c.Series = append(c.Series, plot.Series{Label: label, Values: slices.Repeat([]float64{math.NaN()}, len(c.X)), Dashed: dashed})
		}
		c.Series[i].Values[x] = v
	}
	for _, l := range lines {
		if l.X == "" || l.Repetition > 0 {
			continue
		}
		x := at[l.X]
		set(l.Strategy, x, l.EventsPerSec, false)
		if l.SerialLoopRatio > 0 {
			set("loop: Go maps", x, l.EventsPerSec/l.SerialLoopRatio, true)
		}
		if l.Efficiency > 0 {
			set("bare work loops", x, l.EventsPerSec/l.Efficiency, true)
		}
	}
	return os.WriteFile(filepath.Join(dir, e.Name+".svg"), []byte(c.SVG()), 0o644)
}
