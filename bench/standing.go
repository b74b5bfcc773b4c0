package bench

import (
	"fmt"
	"maps"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/txn"
)

// costs is a job as it is and in another way, without any change of it: what being able to change costs.
type costs struct {
	name, way string
	params    map[string]string
	nodes     int
	plain     cluster.JobOptions
	other     cluster.JobOptions
	keeps     bool                      // the other one does
	asks      func() []reconfig.Request // and of the other one
}

// standing measures the throughput of jobs in two ways, one after the other, again and again.
func (m *Measuring) standing() error {
	micro := map[string]string{"keys": "65536", "bytes": "1024", "access": "10"}
	workers := func() (all []reconfig.Request) {
		for i := range 20 {
			all = append(all, reconfig.Request{Settings: reconfig.Settings{Workers: 1 + i%2}})
		}
		return all
	}
	all := []costs{
		{name: "E10 one node", way: "1024 groups, not one", nodes: 1, plain: cluster.JobOptions{Groups: 1}, other: cluster.JobOptions{Groups: 1024}},
		{name: "E10 one node", way: "4096 groups, not one", nodes: 1, plain: cluster.JobOptions{Groups: 1}, other: cluster.JobOptions{Groups: 4096}},
		{name: "two nodes", way: "copies of 0.75, not none", nodes: 2, plain: cluster.JobOptions{Replicas: -1}, other: cluster.JobOptions{Replicas: 0.75}},
		{name: "two nodes", way: "copies as chosen, not none", nodes: 2, plain: cluster.JobOptions{Replicas: -1}},
		{name: "two nodes", way: "a log and checkpoints in memory, not none", nodes: 2, plain: cluster.JobOptions{Replicas: -1}, other: cluster.JobOptions{Replicas: -1}, keeps: true},
		{name: "one node", way: "workers 1-2-1, ten times", nodes: 1, asks: workers},
		{name: "one node", way: "twenty noops", nodes: 1, asks: func() []reconfig.Request { return make([]reconfig.Request, 20) }},
	}
	events, reps := 600_000, 3
	if m.Scale.Dense {
		events, reps = 3_000_000, 7
	}
	for i, c := range all {
		m.tell(i, len(all), c.name+", "+c.way)
		c.params = micro
		line := Line{Experiment: m.Name, Point: c.name, Strategy: c.way, Reps: reps, Values: map[string]float64{}}
		var ratios, perSec []float64
		for range reps {
			plain, err := m.throughput(&c, c.plain, false, events)
			if err != nil {
				return err
			}
			other, err := m.throughput(&c, c.other, true, events)
			if err != nil {
				return err
			}
			ratios, perSec = append(ratios, other/plain), append(perSec, other)
		}
		line.EventsPerSec = Median(perSec)
		line.NsPerEvent = 1e9 / line.EventsPerSec
		line.Values["throughput_ratio"] = Median(ratios)
		if err := m.Emit(line); err != nil {
			return err
		}
	}
	return nil
}

// throughput runs a job as fast as it goes, and returns events per second.
func (m *Measuring) throughput(c *costs, o cluster.JobOptions, other bool, events int) (float64, error) {
	prog, err := find(m.Programs, "micro")
	if err != nil {
		return 0, err
	}
	s := scenario{params: maps.Clone(c.params)}
	local := &cluster.Local{Engine: engine.Options{Workers: 1}, New: func() (*txn.App, error) {
		in, err := s.instance(prog, s.params["bytes"], 0)
		if err != nil {
			return nil, err
		}
		return in.App, nil
	}}
	in, err := s.instance(prog, "0", events)
	if err != nil {
		return 0, err
	}
	o.Nodes = c.nodes
	if other && c.keeps {
		o.Keep = &cluster.Memory{}
		local.Keep = o.Keep
	}
	j, err := cluster.NewJob(in.App, in.Source, o, local, local.Box())
	if err != nil {
		return 0, err
	}
	var replies []<-chan cluster.Report
	if other && c.asks != nil {
		for _, q := range c.asks() {
			replies = append(replies, j.Ask(q))
		}
	}
	out, err := j.Run(m.Ctx)
	if err != nil {
		return 0, err
	}
	for _, reply := range replies {
		if r := <-reply; r.State != cluster.Done {
			return 0, fmt.Errorf("%s: %s %s", c.way, r.State, r.Error)
		}
	}
	return float64(out.Events) / out.Seconds, nil
}
