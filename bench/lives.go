package bench

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/txn"
)

// life is a job with what happens to it on its way.
type life struct {
	name, way string
	program   string
	params    map[string]string
	events    int
	rate      float64
	asks      map[uint64]reconfig.Request // when so many events have ended
	dies      int                         // the node that sends so many groups dies before the last of them; 0: none
	drift     uint64                      // event from which on other answers are right
}

// lives are the experiments of a job's whole life, of about five seconds each.
func lives() []life {
	step := map[string]string{"keys": "16384", "bytes": "4096", "turn": "2.5", "then": "12.5"}
	crash := map[string]string{"keys": "16384", "bytes": "4096", "access": "10"}
	out := map[uint64]reconfig.Request{40_000: {Nodes: 4}, 101_000: {Nodes: 2}}
	in := map[uint64]reconfig.Request{40_000: {Nodes: 1}}
	fraud := map[string]string{"drift": "30000"}
	swap := map[uint64]reconfig.Request{60_000: {Settings: reconfig.Settings{Logic: map[string]string{"tree": "bursts"}}}}
	return []life{
		{name: "E7 40,000 to 5,000 events/s", way: "two nodes", program: "micro", params: step, events: 110_000, rate: 40_000},
		{name: "E7 40,000 to 5,000 events/s", way: "two nodes to four to two", program: "micro", params: step, events: 110_000, rate: 40_000, asks: out},
		{name: "E8 a tree is exchanged", way: "at event 60,000", program: "fraud", params: fraud, events: 100_000, rate: 20_000, asks: swap, drift: 30_000},
		{name: "E9 a node dies", way: "nobody dies", program: "micro", params: crash, events: 80_000, rate: 20_000, asks: in},
		{name: "E9 a node dies", way: "while groups leave it", program: "micro", params: crash, events: 80_000, rate: 20_000, asks: in, dies: 100},
	}
}

// lived measures the lives.
func (m *Measuring) lived() error {
	all := lives()
	for i, l := range all {
		m.tell(i, len(all), l.name+", "+l.way)
		line := Line{Experiment: m.Name, Point: l.name, Strategy: l.way, Reps: 1}
		var err error
		if line.Values, line.EventsPerSec, err = m.live(&l); err != nil {
			return fmt.Errorf("%s, %s: %w", l.name, l.way, err)
		}
		line.NsPerEvent = 1e9 / line.EventsPerSec
		if err := m.Emit(line); err != nil {
			return err
		}
	}
	return nil
}

// answers is how right the results of a life are, and when they came.
type answers struct {
	right, of []uint8
	last, gap int64
}

func (a *answers) add(c cluster.Completion, score func([]byte) (right, of int)) {
	if now := clock.NowNanos(); a.last > 0 {
		a.gap, a.last = max(a.gap, now-a.last), now
	} else {
		a.last = now
	}
	if score == nil {
		return
	}
	for uint64(len(a.of)) <= c.Seq {
		a.right, a.of = append(a.right, 0), append(a.of, 0)
	}
	right, of := score(c.Result)
	a.right[c.Seq], a.of[c.Seq] = uint8(right), uint8(of)
}

// quality returns how right the events from lo on and before hi are.
func (a *answers) quality(lo, hi uint64) float64 {
	right, of := 0, 0
	for i := lo; i < min(hi, uint64(len(a.of))); i++ {
		right, of = right+int(a.right[i]), of+int(a.of[i])
	}
	return float64(right) / float64(max(of, 1))
}

// live runs a job through its life once.
func (m *Measuring) live(l *life) (values map[string]float64, perSec float64, err error) {
	prog, err := find(m.Programs, l.program)
	if err != nil {
		return nil, 0, err
	}
	instance := func(events int) (*program.Instance, error) {
		c, err := prog.Config(l.params)
		if err != nil {
			return nil, err
		}
		c.Events = events
		return prog.New(c)
	}
	var sent atomic.Int64
	local := &cluster.Local{
		LinkRate: 100 << 20, Engine: engine.Options{Workers: 1},
		New: func() (*txn.App, error) {
			in, err := instance(0)
			if err != nil {
				return nil, err
			}
			return in.App, nil
		},
		Dies: func(_, _ reconfig.Node, msg cluster.Message) bool {
			_, group := msg.(*cluster.Image)
			return group && l.dies > 0 && sent.Add(1) == int64(l.dies)
		},
	}
	in, err := instance(l.events)
	if err != nil {
		return nil, 0, err
	}
	var j *cluster.Job
	var a answers
	o := cluster.JobOptions{
		Nodes: 2, LinkRate: 100 << 20, Keep: &cluster.Memory{}, Checkpoints: time.Second,
		Pace: func(seconds float64) float64 { return l.rate * seconds },
		Completed: func(c cluster.Completion) {
			a.add(c, in.Score)
			if q, asked := l.asks[c.Seq]; asked {
				j.Ask(q)
			}
		},
	}
	if in.Pace != nil {
		o.Pace = in.Pace(l.rate)
	}
	local.Keep = o.Keep
	if j, err = cluster.NewJob(in.App, in.Source, o, local, local.Box()); err != nil {
		return nil, 0, err
	}
	out, err := j.Run(m.Ctx)
	if err != nil {
		return nil, 0, err
	}
	return l.values(out, &a, in.Score != nil)
}

// values sums up a life.
func (l *life) values(out *cluster.Outcome, a *answers, scored bool) (map[string]float64, float64, error) {
	v := map[string]float64{
		"p99_ms": float64(out.Latency.ValueAtPercentile(99)) / 1e6, "max_ms": float64(out.Latency.Max()) / 1e6,
		"no_results_ms": float64(a.gap) / 1e6, "recoveries": float64(out.Recoveries), "checkpoints": float64(out.Checkpoints),
	}
	for i, r := range out.Reports {
		if r.State != cluster.Done {
			return nil, 0, fmt.Errorf("request %d is %s: %s", i, r.State, r.Error)
		}
		v[fmt.Sprintf("completion_%d_ms", i+1)], v[fmt.Sprintf("pause_max_%d_ms", i+1)] = r.CompletionMs, r.PauseMaxMs
	}
	if scored {
		swapped := out.Changes[0].Seq
		v["quality_before_drift"], v["quality_after_drift"] = a.quality(0, l.drift), a.quality(l.drift, swapped)
		v["quality_after_change"], v["changed_at_event"] = a.quality(swapped, uint64(l.events)), float64(swapped)
	}
	return v, float64(out.Events) / out.Seconds, nil
}
