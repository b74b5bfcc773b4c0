package stock

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/fulldata"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/storage"
)

func config(t *testing.T, values map[string]string) *program.Config {
	t.Helper()
	c, err := Program.Config(values)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// outcome is what a run came to.
type outcome struct {
	app     *App
	flow    *flow
	metrics engine.Metrics
	reasons map[string]int
	results []Result
}

// replay runs the configuration's rows. The check, and any difference from the
// loop, are failures.
func replay(t *testing.T, c *program.Config, opts engine.Options) outcome {
	t.Helper()
	f, err := read(c)
	if err != nil {
		t.Fatal(err)
	}
	window := c.Int("window")
	o := outcome{app: New(window, program.Cost{}), flow: f, reasons: map[string]int{}}
	orders := o.app.count()
	o.app.Rows.Each(func(r Result) {
		o.reasons[r.Reason]++
		o.results = append(o.results, r)
	})
	if o.metrics, err = engine.Run(context.Background(), o.app.App, o.app.Rows.Slice(f.rows), opts); err != nil {
		t.Fatal(err)
	}
	if o.metrics.Events != len(f.rows) {
		t.Errorf("%d events ran, want %d", o.metrics.Events, len(f.rows))
	}
	if err := o.app.check(*orders); err != nil {
		t.Error(err)
	}
	b := newBook(window, program.Cost{})
	b.run(f.rows)
	if diff := cmp.Diff(b.orders, maps.Collect(o.app.Orders.All())); diff != "" {
		t.Errorf("orders differ from the loop's (-loop +engine):\n%s", diff)
	}
	if diff := cmp.Diff(b.levels, maps.Collect(o.app.Levels.All())); diff != "" {
		t.Errorf("levels differ from the loop's (-loop +engine):\n%s", diff)
	}
	if diff := cmp.Diff(b.executions, maps.Collect(o.app.Executions.All())); diff != "" {
		t.Errorf("executions differ from the loop's (-loop +engine):\n%s", diff)
	}
	return o
}

// The model, the loop and the check are the oracles; batches are small, so that
// windows reach over many of them.
func TestSample(t *testing.T) {
	c := config(t, nil)
	c.Events = 8000
	hashes := map[storage.Hash]bool{}
	for _, strategy := range []string{"serial", "ns-op-eager", "ns-op-lazy", "bfs-chain-lazy", "dfs-op-eager", "lock", "tstream", "auto"} {
		o := replay(t, c, engine.Options{Strategy: strategy, Verify: true, Workers: 3, Batch: 150})
		hashes[storage.StateHash(o.app.App)] = true
		if o.metrics.Aborted == 0 || o.metrics.KeptMax == 0 {
			t.Errorf("%s: %d aborted, %d versions kept: the test tests nothing", strategy, o.metrics.Aborted, o.metrics.KeptMax)
		}
	}
	if len(hashes) != 1 {
		t.Errorf("strategies end in %d different states", len(hashes))
	}
}

// Whatever the length of the run, no more versions are kept than there are
// executions in one window.
func TestWindowBoundsWhatIsKept(t *testing.T) {
	c := config(t, map[string]string{"window": "10000"})
	o := replay(t, c, engine.Options{Batch: 500})
	most, from := 0, 0
	var times []int64
	for i, r := range o.results {
		if r.Done && (r.Kind == Changed || r.Kind == Executed) {
			times = append(times, o.flow.rows[i].Time)
			for times[from] < times[len(times)-1]-10_000 {
				from++
			}
			most = max(most, len(times)-from)
		}
	}
	if o.metrics.KeptMax == 0 || o.metrics.KeptMax > most {
		t.Errorf("%d versions were kept; no 10 s have more than %d executions", o.metrics.KeptMax, most)
	}
}

func TestInstance(t *testing.T) {
	for _, events := range []int{0, 2000} {
		c := config(t, nil)
		c.Events = events
		in, err := Program.New(c)
		if err != nil {
			t.Fatal(err)
		}
		want := events
		if events == 0 {
			want = sampleRows
		}
		m, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{})
		if err != nil || m.Events != want || in.Total != want {
			t.Fatalf("%d events of %d ran, want %d: %v", m.Events, in.Total, want, err)
		}
		if err := in.Check(); err != nil {
			t.Error(err)
		}
		in.Loops[0].Prepare()()
		t.Log(strings.Join(in.Notes, "\n"))
	}
}

const header = "id,timestamp,exchange.timestamp,price,volume,action,direction\n"

// file returns the configuration of a file of rows.
func file(t *testing.T, content string, values map[string]string) *program.Config {
	t.Helper()
	c := config(t, values)
	c.Input = filepath.Join(t.TempDir(), "x_orders.csv")
	if err := os.WriteFile(c.Input, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// bid is the level that most rows of the rules are about.
var bid = Level{Bid, 200}

var rules = []struct {
	name, rows string
	levels     map[Level]Resting
	reasons    []string
	seen       []Turnover
}{
	{
		"in parts, then the rest", "1,10,0,2.00,30,created,bid\n1,20,0,2.00,20,changed,bid\n1,30,0,2.00,0,deleted,bid\n2,40,0,2.00,5,created,bid\n",
		map[Level]Resting{bid: {5, 1}},
		[]string{"", "", "", ""},
		[]Turnover{{}, {}, {2000, 1}, {6000, 2}},
	},
	{
		"the window begins 20 before and ends before the row", "1,10,0,2.00,30,created,bid\n1,20,0,2.00,20,changed,bid\n1,40,0,2.00,10,changed,bid\n1,41,0,2.00,10,deleted,bid\n",
		map[Level]Resting{bid: {}},
		[]string{"", "", "", ""},
		[]Turnover{{}, {}, {2000, 1}, {2000, 1}},
	},
	{
		"a row before of the same time counts", "1,10,0,2.00,30,created,bid\n1,10,0,2.00,20,changed,bid\n2,10,0,2.00,1,created,bid\n3,10,0,2.00,1,created,ask\n",
		map[Level]Resting{bid: {21, 2}, {Ask, 200}: {1, 1}},
		[]string{"", "", "", ""},
		[]Turnover{{}, {}, {2000, 1}, {}},
	},
	{
		"an execution of nothing is no trade", "1,10,0,2.00,30,created,bid\n1,10,0,2.00,30,changed,bid\n2,10,0,2.00,1,created,bid\n",
		map[Level]Resting{bid: {31, 2}},
		[]string{"", "", ""},
		[]Turnover{{}, {}, {}},
	},
	{
		"moves execute nothing, whatever the volume", "1,10,0,2.00,30,created,bid\n1,11,0,1.00,40,changed,bid\n1,12,0,1.00,10,changed,bid\n1,13,0,1.00,0,deleted,bid\n2,14,0,2.00,1,created,bid\n",
		map[Level]Resting{bid: {1, 1}, {Bid, 100}: {}},
		[]string{"", "", "", "", ""},
		[]Turnover{{}, {}, {}, {3000, 1}, {4000, 2}},
	},
	{
		"deleted at another price is of the old one", "1,10,0,2.00,30,created,bid\n1,11,0,1.00,0,deleted,bid\n2,12,0,2.00,1,created,bid\n",
		map[Level]Resting{bid: {1, 1}},
		[]string{"", "", ""},
		[]Turnover{{}, {}, {6000, 1}},
	},
	{
		"unknown orders", "1,10,0,2.00,3,changed,bid\n1,10,0,2.00,0,deleted,bid\n2,10,0,2.00,3,created,bid\n2,10,0,2.00,3,deleted,bid\n2,10,0,2.00,3,deleted,bid\n",
		map[Level]Resting{bid: {}},
		[]string{"unknown order", "unknown order", "", "", "unknown order"},
		[]Turnover{{}, {}, {}, {}, {}},
	},
	{
		"rows that do not fit", "1,10,0,2.00,3,created,bid\n1,10,0,2.00,2,changed,ask\n1,10,0,2.00,4,changed,bid\n1,10,0,2.00,2,deleted,bid\n1,10,0,2.50,3,created,bid\n1,10,0,2.50,3,deleted,bid\n",
		map[Level]Resting{bid: {3, 1}},
		[]string{"", "order of the other side", "volume does not fit", "volume does not fit", "exists", "order has another price"},
		[]Turnover{{}, {}, {}, {}, {}, {}},
	},
}

func TestRules(t *testing.T) {
	for _, test := range rules {
		t.Run(test.name, func(t *testing.T) {
			for _, strategy := range []string{"serial", "ns-op-eager"} {
				o := replay(t, file(t, header+test.rows, map[string]string{"window": "20"}), engine.Options{Strategy: strategy, Verify: true, Batch: 2})
				if diff := cmp.Diff(test.levels, maps.Collect(o.app.Levels.All())); diff != "" {
					t.Errorf("levels (-want +got):\n%s", diff)
				}
				var reasons []string
				var seen []Turnover
				for _, r := range o.results {
					reasons, seen = append(reasons, r.Reason), append(seen, r.Seen)
				}
				if diff := cmp.Diff(test.reasons, reasons); diff != "" {
					t.Errorf("reasons (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.seen, seen); diff != "" {
					t.Errorf("turnovers seen (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestMalformedRows(t *testing.T) {
	good := "1,10,0,2.00,3,created,bid\n"
	for _, c := range []struct {
		name, content string
		line, column  int
		what          string
	}{
		{"id", header + "x,10,0,2.00,3,created,bid\n", 2, 1, "id"},
		{"timestamp", header + "1,-1,0,2.00,3,created,bid\n", 2, 3, "timestamp"},
		{"back in time", header + good + "2,9,0,2.00,3,created,bid\n", 3, 3, "must not be before 10"},
		{"exchange's timestamp", header + "1,10,,2.00,3,created,bid\n", 2, 6, "exchange.timestamp"},
		{"no decimals", header + "1,10,0,2,3,created,bid\n", 2, 8, "price"},
		{"one decimal", header + "1,10,0,2.5,3,created,bid\n", 2, 8, "two decimals"},
		{"three decimals", header + "1,10,0,2.500,3,created,bid\n", 2, 8, "two decimals"},
		{"no whole part", header + "1,10,0,.50,3,created,bid\n", 2, 8, "price"},
		{"leading zero", header + "1,10,0,02.50,3,created,bid\n", 2, 8, "price"},
		{"negative price", header + "1,10,0,-2.50,3,created,bid\n", 2, 8, "price"},
		{"price of nothing", header + "1,10,0,0.00,3,created,bid\n", 2, 8, "price"},
		{"price too high", header + "1,10,0,1000000.01,3,created,bid\n", 2, 8, "price"},
		{"price beyond 64 bits", header + "1,10,0,99999999999999999999.00,3,created,bid\n", 2, 8, "price"},
		{"negative volume", header + "1,10,0,2.00,-3,created,bid\n", 2, 13, "volume"},
		{"volume of nothing", header + "1,10,0,2.00,0,created,bid\n", 2, 13, "volume 0"},
		{"worth too much", header + "1,10,0,1000000.00,100000001,created,bid\n", 2, 19, "at most 100000000"},
		{"action", header + "1,10,0,2.00,3,made,bid\n", 2, 15, "created, changed or deleted"},
		{"direction", header + "1,10,0,2.00,3,created,buy\n", 2, 23, "bid or ask"},
		{"field missing", header + good + "1,10,0,2.00,3,created\n", 3, 1, "6 fields"},
		{"no header", good, 1, 1, `"id" is expected`},
		{"empty", "", 1, 1, "empty"},
	} {
		cfg := file(t, c.content, nil)
		_, err := Program.New(cfg)
		var at *program.InputError
		if !errors.As(err, &at) {
			t.Errorf("%s: %v is no InputError", c.name, err)
			continue
		}
		if at.File != cfg.Input || at.Line != c.line || at.Column != c.column || !strings.Contains(at.What, c.what) {
			t.Errorf("%s: %v; want line %d, column %d: ... %s", c.name, err, c.line, c.column, c.what)
		}
	}
	c := config(t, nil)
	c.Input = filepath.Join(t.TempDir(), "none.csv")
	if _, err := Program.New(c); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such input: %v", err)
	}
}

// A check that cannot fail tells nothing.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	level := Level{Ask, 200}
	for want, spoil := range map[string]func(a *App){
		"order 1 is":         func(a *App) { a.Orders.Load(1, Order{200, -1, Turnover{}, Ask}) },
		"2 orders are in":    func(a *App) { a.Orders.Load(2, Order{200, 1, Turnover{}, Ask}) },
		"ask level at 200":   func(a *App) { a.Levels.Load(level, Resting{4, 1}) },
		"3 in 2 orders":      func(a *App) { a.Levels.Load(level, Resting{3, 2}) },
		"bid level at 5":     func(a *App) { a.Levels.Load(Level{Bid, 5}, Resting{1, 1}) },
		"without a level":    func(a *App) { a.Orders.Load(1, Order{201, 3, Turnover{}, Ask}); a.Levels.Load(level, Resting{}) },
		"last execution":     func(a *App) { a.Executions.Load(Ask, Execution{1, -1, 1}) },
		"order 1 is {Price:": func(a *App) { a.Orders.Load(1, Order{200, 3, Turnover{-1, 0}, Ask}) },
	} {
		a := New(1, program.Cost{})
		a.Orders.Load(1, Order{200, 3, Turnover{}, Ask})
		a.Levels.Load(level, Resting{3, 1})
		if err := a.check(1); err != nil {
			t.Fatal(err)
		}
		if spoil(a); a.check(1) == nil || !strings.Contains(a.check(1).Error(), want) {
			t.Errorf("%s: %v", want, a.check(1))
		}
	}
}

// The generated input is the same for the same seed, and a shorter one is its
// beginning.
func TestSampleIsReproducible(t *testing.T) {
	content := func(seed uint64, rows int) string {
		b, err := io.ReadAll(newSample(seed, rows))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	long := content(1, 3000)
	if n := strings.Count(long, "\n"); n != 3001 {
		t.Errorf("%d lines", n)
	}
	if long != content(1, 3000) || !strings.HasPrefix(long, content(1, 1000)) || long == content(2, 3000) {
		t.Error("the input does not depend on seed and length alone")
	}
}

func FuzzRows(f *testing.F) {
	f.Add(header + "1,10,0,2.00,30,created,bid\n1,20,0,2.00,20,changed,bid\n1,30,0,2.00,0,deleted,bid\n")
	f.Add(header + "1,10,0,2.00,30,created,bid\n1,11,0,1.00,40,changed,bid\n1,13,0,1.00,40,deleted,bid\n")
	f.Fuzz(func(t *testing.T, content string) {
		rows, err := program.NewRows("f", io.NopCloser(strings.NewReader(content)), columns...)
		if err != nil {
			return
		}
		input, err := readFlow(rows, 0)
		if err != nil {
			return
		}
		a := New(20, program.Cost{})
		orders := a.count()
		if _, err := engine.Run(context.Background(), a.App, a.Rows.Slice(input.rows), engine.Options{Workers: 1, Verify: true}); err != nil {
			t.Fatal(err)
		}
		if err := a.check(*orders); err != nil {
			t.Fatal(err)
		}
	})
}

// What is known of the full file.
func TestFullData(t *testing.T) {
	c := config(t, nil)
	if c.Input = fulldata.Path(t, "bitstamp_btcusd_orders_2015-05-01.csv.gz"); c.Input == "" {
		return
	}
	o := replay(t, c, engine.Options{Verify: true})
	f := o.flow
	for _, fact := range []struct {
		what      string
		got, want int
	}{
		{"rows", len(f.rows), 50_414},
		{"orders", f.ids, 25_076},
		{"created", f.of[Created], 24_894},
		{"changed", f.of[Changed] + f.of[Moved], 602},
		{"deleted", f.of[Executed] + f.of[Cancelled], 24_918},
		{"executed", f.of[Executed], 580},
		{"rows of unknown orders", f.unknown(), 213},
		{"aborted", o.metrics.Aborted, 213},
		{"aborted for that", o.reasons["unknown order"], 213},
		{"orders left", o.app.Orders.Len(), 184},
	} {
		if fact.got != fact.want {
			t.Errorf("%s: %d, want %d", fact.what, fact.got, fact.want)
		}
	}
	t.Log(strings.Join(f.notes(), "\n"))
	t.Logf("%d levels; %d versions kept at most", o.app.Levels.Len(), o.metrics.KeptMax)
}
