package micro

import (
	"encoding/binary"
	"fmt"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Program is the workload.
var Program = program.Program{
	Name:   "micro",
	About:  "count keys that have much state: for what moving state costs",
	Events: 200_000,
	Params: []program.Param{
		{Name: "keys", Kind: program.Int, Default: "32768", Min: 2, Max: 50_000_000, Usage: "keys of the table"},
		{Name: "bytes", Kind: program.Int, Default: "1024", Min: 0, Max: 1 << 20, Usage: "bytes of state of each key"},
		{Name: "skew", Kind: program.Float, Default: "0", Min: 0, Max: 2, Usage: "zipf exponent of the keys"},
		{Name: "access", Kind: program.Float, Default: "100", Min: 0.001, Max: 100, Usage: "keys that are used at one time, in percent; others are after every 40,000 events"},
		{Name: "pairs", Kind: program.Float, Default: "0", Min: 0, Max: 100, Usage: "events that change two keys together, in percent"},
		{Name: "phases", Kind: program.Int, Default: "1", Min: 1, Max: 1000, Usage: "parts of the run, of equal length, each with other keys the most frequent"},
		{Name: "swing", Kind: program.Float, Default: "0", Min: 0, Max: 100, Usage: "how far the rate goes up and down, in percent"},
		{Name: "period", Kind: program.Float, Default: "10", Min: 0.001, Max: 1e6, Usage: "seconds from peak to peak"},
		{Name: "turn", Kind: program.Float, Default: "0", Min: 0, Max: 1e6, Usage: "seconds after which the second phase of the rate begins; 0: never"},
		{Name: "then", Kind: program.Float, Default: "100", Min: 1, Max: 10000, Usage: "rate of the second phase, in percent of the first one's"},
		program.Complexity,
	},
	New: newInstance,
}

// period is for how many events the keys in use stay the same.
const period = 40_000

// Touch counts a key, or two.
type Touch struct {
	Key, Other uint32
	Two        bool
}

// State is what a key has. Nobody writes into the payload, so that values may share it.
type State struct {
	Count   uint64
	Payload []byte
}

// App is the declared application.
type App struct {
	App     *txn.App
	States  *txn.Table[uint32, State]
	Touches *txn.Event[Touch, uint64]
}

// New declares the application with keys 0 to keys-1, each with so many bytes.
func New(keys, bytes int, cost program.Cost) *App {
	app := txn.New("micro")
	a := &App{App: app, States: txn.NewTable[uint32, State](app, "states", txn.Clone[uint32](func(s State) State { return s }))}
	for k := range uint32(keys) {
		a.States.Load(k, State{Payload: payload(k, bytes)})
	}
	count := txn.Update(a.States, "count", func(c txn.Ctx, _ struct{}, s *State) txn.Verdict {
		cost.Spend(c)
		s.Count++
		return txn.OK
	})
	a.Touches = txn.On(app, "touch", func(p *txn.Plan, e Touch) {
		count.At(p, e.Key, struct{}{})
		if e.Two {
			count.At(p, e.Other, struct{}{})
		}
	}, func(out txn.Outcome, _ Touch) uint64 {
		s, _ := count.After(out)
		return s.Count
	})
	return a
}

// payload returns bytes that differ from key to key and do not compress.
func payload(k uint32, bytes int) []byte {
	if bytes == 0 {
		return nil
	}
	out := make([]byte, 0, bytes+8)
	c := rng.Of(uint64(k), 0)
	for len(out) < bytes {
		out = binary.LittleEndian.AppendUint64(out, c.Uint64())
	}
	return out[:bytes]
}

// generator makes the events, the same for equal parameters and seed.
type generator struct {
	r              *rng.RNG
	zipf           *rng.Zipf
	scatter        rng.Scatter
	seed           uint64
	keys, used     int
	phases, events int
	made           int
	pairs          float64
}

func newGenerator(c *program.Config) *generator {
	keys := c.Int("keys")
	used := max(2, int(float64(keys)*c.Float("access")/100))
	return &generator{
		r: rng.New(c.Seed, 1), zipf: rng.NewZipf(used, c.Float("skew")), scatter: rng.NewScatter(keys), seed: c.Seed,
		keys: keys, used: used, phases: c.Int("phases"), events: c.Events, pairs: c.Float("pairs") / 100,
	}
}

func (g *generator) next() Touch {
	e := Touch{Key: g.key()}
	if g.pairs > 0 && g.r.Float64() < g.pairs {
		e.Two = true
		for e.Other = g.key(); e.Other == e.Key; {
			e.Other = (e.Other + 1) % uint32(g.keys)
		}
	}
	g.made++
	return e
}

// key draws one of those in use, which are the ranks from an offset on.
func (g *generator) key() uint32 {
	phase := uint64(0)
	if g.events > 0 {
		phase = uint64(g.made) * uint64(g.phases) / uint64(g.events)
	}
	rank := g.zipf.Draw(g.r)
	offset := rng.Mix(g.seed^phase<<32^uint64(g.made/period)) % uint64(g.keys)
	if g.used == g.keys {
		offset = rng.Mix(g.seed^phase) % uint64(g.keys)
	}
	return uint32(g.scatter.Index((rank + int(offset)) % g.keys))
}

func newInstance(c *program.Config) (*program.Instance, error) {
	a := New(c.Int("keys"), c.Int("bytes"), c.Cost("complexity"))
	g := newGenerator(c)
	return &program.Instance{
		App:    a.App,
		Total:  c.Events,
		Source: program.Generated(c.Events, func(f *txn.Feed) { a.Touches.Push(f, g.next()) }),
		Check:  func() error { return a.check(c) },
		Pace:   pace(c),
		Loops:  loops(c),
	}, nil
}

// pace is that of the parameters: a sine, with other rates after a while. It is nil where the rate stays as it is.
func pace(c *program.Config) func(rate float64) func(seconds float64) float64 {
	swing, period, turn, then := c.Float("swing")/100, c.Float("period"), c.Float("turn"), c.Float("then")/100
	if swing == 0 && turn == 0 {
		return nil
	}
	return func(rate float64) func(float64) float64 {
		first := program.Phase{Seconds: turn, Rate: rate, Swing: swing, Period: period}
		if turn == 0 {
			return program.Pace(first)
		}
		return program.Pace(first, program.Phase{Rate: rate * then, Swing: swing, Period: period})
	}
}

// check verifies that every key counted as often as it came.
func (a *App) check(c *program.Config) error {
	want := make([]uint64, c.Int("keys"))
	count(list(c), func(k uint32) *uint64 { return &want[k] }, program.Cost{})
	for k, s := range a.States.All() {
		if int(k) >= len(want) || s.Count != want[k] {
			return fmt.Errorf("key %d counted to %d", k, s.Count)
		}
		want[k] = 0
	}
	for k, n := range want {
		if n > 0 {
			return fmt.Errorf("key %d came %d times and is gone", k, n)
		}
	}
	return nil
}

// loops are serial programs over the same events.
func loops(c *program.Config) []program.Loop {
	cost := c.Cost("complexity")
	return []program.Loop{
		{Name: "go maps", Prepare: func() func() {
			states := map[uint32]*State{}
			for k := range uint32(c.Int("keys")) {
				states[k] = &State{}
			}
			events := list(c)
			return func() { count(events, func(k uint32) *uint64 { return &states[k].Count }, cost) }
		}},
		{Name: "dense slots", Prepare: func() func() {
			states := make([]State, c.Int("keys"))
			events := list(c)
			return func() { count(events, func(k uint32) *uint64 { return &states[k].Count }, cost) }
		}},
	}
}

func list(c *program.Config) []Touch {
	g := newGenerator(c)
	out := make([]Touch, c.Events)
	for i := range out {
		out[i] = g.next()
	}
	return out
}

func count(events []Touch, at func(uint32) *uint64, cost program.Cost) {
	for i := range events {
		cost.SpendTimes(1)
		*at(events[i].Key)++
		if events[i].Two {
			cost.SpendTimes(1)
			*at(events[i].Other)++
		}
	}
}
