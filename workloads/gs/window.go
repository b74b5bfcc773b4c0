package gs

import (
	"fmt"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Windowed is grep and sum with windowed reads: now and then an event takes the
// means of what many keys held during the last events.
var Windowed = program.Program{
	Name:   "gsw",
	About:  "grep and sum where some events take the means of what many keys held during the last events",
	Events: 1_000_000,
	Params: []program.Param{
		{Name: "keys", Kind: program.Int, Default: "1024", Min: 32, Max: 50_000_000, Usage: "keys of the table"},
		{Name: "skew", Kind: program.Float, Default: "0", Min: 0, Max: 2, Usage: "zipf exponent of the keys"},
		{Name: "accesses", Kind: program.Int, Default: "1", Min: 1, Max: accessesMax, Usage: "keys that a write reads, the written one included"},
		{Name: "trigger", Kind: program.Int, Default: "100", Min: 1, Max: 1_000_000_000, Usage: "of so many events the last one is a windowed read"},
		{Name: "length", Kind: program.Int, Default: "100", Min: 1, Max: 10_000, Usage: "keys of a windowed read"},
		{Name: "window", Kind: program.Int, Default: "1024", Min: 1, Max: 1_000_000_000, Usage: "events that a window reaches back over"},
		{Name: "fold", Kind: program.Text, Default: "yes", OneOf: []string{"yes", "no"}, Usage: "yes keeps running totals, no goes over the versions"},
		{Name: "abort", Kind: program.Float, Default: "0", Min: 0, Max: 100, Usage: "events that abort, in percent"},
		program.Complexity,
	},
	New: newWindowed,
}

// Look asks for the means of what the keys held during the last events.
type Look struct {
	Keys  []uint32
	Abort bool
}

// Mean is what a look found for a key: the mean of that many versions.
type Mean struct{ Value, Versions int64 }

// held is what the versions of a window add up to.
type held struct{ sum, versions int64 }

func (h held) mean() Mean {
	if h.versions == 0 {
		return Mean{}
	}
	return Mean{h.sum / h.versions, h.versions}
}

// WindowApp is the declared application.
type WindowApp struct {
	App   *txn.App
	Vals  *txn.Table[uint32, int64]
	Means *txn.Table[uint32, Mean]
	Sums  *txn.Event[Sum, int64]
	Looks *txn.Event[Look, int64]
}

// NewWindowed declares the application with keys 0 to keys-1, each holding its
// number. A window reaches back over the given number of events.
func NewWindowed(keys, window int, fold bool, cost program.Cost) *WindowApp {
	app := txn.New("gsw")
	a := &WindowApp{App: app, Vals: txn.NewTable[uint32, int64](app, "values"), Means: txn.NewTable[uint32, Mean](app, "means")}
	refused := app.Reason("refused")
	a.Sums = declareSums(app, a.Vals, keys, refused, cost)
	last, of := a.lastEvents(window, fold)
	mean := txn.Upsert(a.Means, "mean", func(c txn.Ctx, abort bool, m *Mean, _ bool) txn.Verdict {
		cost.Spend(c)
		h := last(c)
		if abort {
			return refused
		}
		*m = h.mean()
		return txn.OK
	})
	a.Looks = txn.On(app, "look", func(p *txn.Plan, e Look) {
		for i, k := range e.Keys {
			mean.At(p, k, e.Abort && i == len(e.Keys)-1, of(p, k))
		}
	}, func(out txn.Outcome, _ Look) int64 {
		total := int64(0)
		for _, m := range mean.All(out) {
			total += m.Value
		}
		return total
	})
	return a
}

// lastEvents declares the windowed read, by running totals or by going over the
// versions: get returns what it adds up to, and of lists it in a plan.
func (a *WindowApp) lastEvents(window int, fold bool) (get func(txn.Ctx) held, of func(*txn.Plan, uint32) txn.Arg) {
	add := func(h *held, v int64) { h.sum, h.versions = h.sum+v, h.versions+1 }
	span := txn.LastEvents(window)
	if fold {
		f := txn.NewFold(a.Vals, "total of the last events", span, add, func(later, earlier held) held {
			return held{later.sum - earlier.sum, later.versions - earlier.versions}
		})
		return f.Get, f.Of
	}
	w := txn.NewWindow(a.Vals, "last events", span)
	return func(c txn.Ctx) (h held) {
		for _, v := range w.All(c) {
			add(&h, v)
		}
		return h
	}, w.Of
}

// check verifies that no value and no mean lies outside of what the table held
// at the start, and that no window had more versions than events.
func (a *WindowApp) check(keys, window int) error {
	for k, v := range a.Vals.All() {
		if v < 0 || v >= int64(keys) {
			return fmt.Errorf("values[%d] is %d; means of 0 to %d stay within", k, v, keys-1)
		}
	}
	if n := a.Vals.Len(); n != keys {
		return fmt.Errorf("%d keys of %d are left", n, keys)
	}
	for k, m := range a.Means.All() {
		if m.Value < 0 || m.Value >= int64(keys) {
			return fmt.Errorf("means[%d] is %d; means of 0 to %d stay within", k, m.Value, keys-1)
		}
		if k >= uint32(keys) || m.Versions < 0 || m.Versions > int64(window) {
			return fmt.Errorf("means[%d] is of %d versions; of %d keys each leaves one at most in each of %d events", k, m.Versions, keys, window)
		}
	}
	return nil
}

// windowEvent is a write, or a look if it has keys for one.
type windowEvent struct {
	sum  Sum
	look Look
}

// windowGenerator makes the events, the same for equal parameters and seed.
type windowGenerator struct {
	generator
	trigger, length, made int
}

func newWindowGenerator(c *program.Config) *windowGenerator {
	g := &windowGenerator{generator: *drawsOf(c), trigger: c.Int("trigger"), length: c.Int("length")}
	g.multiple = 1
	return g
}

func (g *windowGenerator) next() windowEvent {
	if g.made++; g.made%g.trigger != 0 {
		return windowEvent{sum: g.generator.next()}
	}
	keys := make([]uint32, g.length)
	for i := range keys {
		keys[i] = g.another(keys[:i])
	}
	return windowEvent{look: Look{keys, g.r.Float64() < g.abort}}
}

func newWindowed(c *program.Config) (*program.Instance, error) {
	keys, window := c.Int("keys"), c.Int("window")
	if n := c.Int("length"); n > keys {
		return nil, &program.ParamError{Param: "length", Value: c.Text("length"), Allowed: fmt.Sprintf("at most all %d keys are allowed", keys)}
	}
	a := NewWindowed(keys, window, c.Text("fold") == "yes", c.Cost("complexity"))
	g := newWindowGenerator(c)
	return &program.Instance{
		App:   a.App,
		Total: c.Events,
		Source: program.Generated(c.Events, func(f *txn.Feed) {
			if e := g.next(); e.look.Keys != nil {
				a.Looks.Push(f, e.look)
			} else {
				a.Sums.Push(f, e.sum)
			}
		}),
		Check: func() error { return a.check(keys, window) },
		Loops: []program.Loop{{Name: "go maps", Prepare: func() func() { return windowLoop(c).run }}},
	}, nil
}

// overWindows is the serial program: it keeps a list of versions for each key,
// which it shortens when it adds to it.
type overWindows struct {
	events []windowEvent
	window int64
	cost   program.Cost
	vals   map[uint32]int64
	means  map[uint32]Mean
	past   map[uint32][]past
}

// past is a value that a key had from an event on.
type past struct{ event, val int64 }

func windowLoop(c *program.Config) *overWindows {
	l := &overWindows{
		window: int64(c.Int("window")), cost: c.Cost("complexity"),
		vals: map[uint32]int64{}, means: map[uint32]Mean{}, past: map[uint32][]past{},
	}
	for k := range uint32(c.Int("keys")) {
		l.vals[k] = int64(k)
	}
	g := newWindowGenerator(c)
	l.events = make([]windowEvent, c.Events)
	for i := range l.events {
		l.events[i] = g.next()
	}
	return l
}

func (l *overWindows) run() {
	for i := range l.events {
		if e := &l.events[i]; e.look.Keys != nil {
			l.look(int64(i), &e.look)
		} else {
			l.sum(int64(i), &e.sum)
		}
	}
}

func (l *overWindows) sum(now int64, e *Sum) {
	l.cost.SpendTimes(1)
	total := int64(0)
	for _, k := range e.Keys[:e.N] {
		total += l.vals[k]
	}
	if e.Abort {
		return
	}
	key, v := e.Keys[0], total/int64(e.N)
	l.vals[key] = v
	l.past[key] = append(l.recent(now, key), past{now, v})
}

// recent returns the versions of a key in the window before an event.
func (l *overWindows) recent(now int64, key uint32) []past {
	versions := l.past[key]
	for len(versions) > 0 && versions[0].event < now-l.window {
		versions = versions[1:]
	}
	return versions
}

func (l *overWindows) look(now int64, e *Look) {
	l.cost.SpendTimes(len(e.Keys))
	found := make([]Mean, len(e.Keys))
	for i, k := range e.Keys {
		var h held
		for _, v := range l.recent(now, k) {
			h.sum, h.versions = h.sum+v.val, h.versions+1
		}
		found[i] = h.mean()
	}
	if e.Abort {
		return
	}
	for i, k := range e.Keys {
		l.means[k] = found[i]
	}
}
