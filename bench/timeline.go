package bench

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/heddle-stream/heddle/bench/plot"
	"github.com/heddle-stream/heddle/cluster"
)

// timeline is the latencies of a run by when events arrived.
type timeline struct {
	first        int64
	tenths       []tenth
	asked, ended atomic.Int64 // of a change, by the process' clock
}

// tenth is the latencies in 100 ms, in microseconds.
type tenth struct{ affected, others []float32 }

const tenthNanos = 100_000_000

// add takes an event that came to its end.
func (t *timeline) add(c cluster.Completion) {
	if t.first == 0 {
		t.first = c.Arrival
	}
	i := int(max(0, c.Arrival-t.first) / tenthNanos)
	for len(t.tenths) <= i {
		t.tenths = append(t.tenths, tenth{})
	}
	us := float32(c.Nanos) / 1e3
	if c.Affected {
		t.tenths[i].affected = append(t.tenths[i].affected, us)
	} else {
		t.tenths[i].others = append(t.tenths[i].others, us)
	}
}

// p99 returns what 99 in 100 stay below, in ms; NaN of nothing.
func p99(lists ...[]float32) float64 {
	all := slices.Concat(lists...)
	if len(all) == 0 {
		return math.NaN()
	}
	slices.Sort(all)
	return float64(all[min(len(all)-1, len(all)*99/100)]) / 1e3
}

// figures sums up what the change did.
func (t *timeline) figures() *MigrationFigures {
	f := &MigrationFigures{}
	asked, ended := t.asked.Load(), t.ended.Load()
	var before, during tenth
	for i, x := range t.tenths {
		at := t.first + int64(i)*tenthNanos // the beginning
		point := Tenth{Seconds: float64(at-asked) / 1e9, Events: len(x.affected) + len(x.others), AffectedMs: orZero(p99(x.affected)), OthersMs: orZero(p99(x.others))}
		f.Timeline = append(f.Timeline, point)
		switch {
		case at+tenthNanos <= asked && at >= asked-1e9:
			before.affected, before.others = append(before.affected, x.affected...), append(before.others, x.others...)
		case at+tenthNanos > asked && at <= ended+1e9:
			f.SpikeP99Ms = max(f.SpikeP99Ms, orZero(p99(x.affected, x.others)))
			f.OthersSpikeMs = max(f.OthersSpikeMs, point.OthersMs)
			if at <= ended {
				during.others = append(during.others, x.others...)
			}
		}
	}
	f.SteadyP99Ms = orZero(p99(before.affected, before.others))
	f.OthersP99Ms = orZero(p99(during.others))
	return f
}

func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// plotTimelines draws the p99 of each 100 ms around the changes of an experiment, a figure for each line.
func plotTimelines(dir string, lines []Line) error {
	for _, l := range lines {
		if l.MigrationFigures == nil || len(l.Timeline) == 0 {
			continue
		}
		c := plot.Places{Title: l.Point + ", " + l.Strategy, Unit: "p99 of each 100 ms, ms", XName: "seconds since the change was asked for"}
		affected, others := plot.Series{Label: "groups that move"}, plot.Series{Label: "others"}
		for i, x := range l.Timeline {
			label := ""
			if i%10 == 0 {
				label = fmt.Sprintf("%.1f", x.Seconds)
			}
			c.X = append(c.X, label)
			affected.Values, others.Values = append(affected.Values, nanIfZero(x.AffectedMs)), append(others.Values, nanIfZero(x.OthersMs))
		}
		c.Series = []plot.Series{affected, others}
		name := strings.NewReplacer(" ", "_", ",", "").Replace(l.Experiment+"_"+l.Point+"_"+l.Strategy) + ".svg"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(c.SVG()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func nanIfZero(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}
