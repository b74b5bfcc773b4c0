package retail

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/fulldata"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/storage"
)

func config(t *testing.T, k string) *program.Config {
	t.Helper()
	c, err := Program.Config(map[string]string{"k": k})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// replay runs the invoices. What is wrong is a failure: the check, and any
// difference from the loop.
func replay(t *testing.T, invoices []Invoice, opening map[string]int64, opts engine.Options) (*App, engine.Metrics, []Result) {
	t.Helper()
	a := New(opening, program.Cost{})
	var done sums
	var results []Result
	a.Invoices.Each(done.add)
	a.Invoices.Each(func(r Result) { results = append(results, r) })
	m, err := engine.Run(context.Background(), a.App, a.Invoices.Slice(invoices), opts)
	if err != nil {
		t.Fatal(err)
	}
	if m.Events != len(invoices) {
		t.Errorf("%d invoices ran, want %d", m.Events, len(invoices))
	}
	if err := a.check(opening, done); err != nil {
		t.Error(err)
	}
	compareWithLoop(t, a, invoices, opening)
	return a, m, results
}

func compareWithLoop(t *testing.T, a *App, invoices []Invoice, opening map[string]int64) {
	t.Helper()
	left, sold, customers := maps.Clone(opening), map[string]int64{}, map[uint32]int64{}
	overMaps(invoices, left, sold, customers, program.Cost{})
	want := map[string]Stock{}
	for code, n := range left {
		want[code] = Stock{n, sold[code]}
	}
	if diff := cmp.Diff(want, maps.Collect(a.Stock.All())); diff != "" {
		t.Errorf("stock differs from the loop's (-loop +engine):\n%s", diff)
	}
	if diff := cmp.Diff(customers, maps.Collect(a.Customers.All())); diff != "" {
		t.Errorf("customers differ from the loop's (-loop +engine):\n%s", diff)
	}
}

// list returns all invoices of a file, or of the sample for "".
func list(t *testing.T, path string) []Invoice {
	t.Helper()
	invoices, err := readAll(path, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	return invoices
}

func survey1(t *testing.T, path string) *survey {
	t.Helper()
	s, err := look(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The model, the loop and the check are the oracles.
func TestSample(t *testing.T) {
	s := survey1(t, "")
	if s.invoices != 8000 || len(s.numbers) != 7999 || s.lines != 160_026 {
		t.Errorf("%d invoices, %d numbers, %d lines", s.invoices, len(s.numbers), s.lines)
	}
	opening := s.opening(config(t, "16").Int("k"))
	invoices := list(t, "")
	hashes := map[storage.Hash]bool{}
	// Small batches, see TestFullData.
	for _, strategy := range []string{"serial", "ns-op-eager", "bfs-chain-lazy"} {
		a, m, _ := replay(t, invoices, opening, engine.Options{Strategy: strategy, Verify: true, Batch: 250})
		hashes[storage.StateHash(a.App)] = true
		t.Logf("%s: %d of %d invoices out of stock", strategy, m.Aborted, m.Events)
		if rate := float64(m.Aborted) / float64(m.Events); rate < 0.05 || rate > 0.1 {
			t.Errorf("%.1f %% of the invoices abort", 100*rate)
		}
	}
	if len(hashes) != 1 {
		t.Errorf("strategies end in %d different states", len(hashes))
	}
}

func TestInstance(t *testing.T) {
	c := config(t, "16")
	c.Events = 1000
	in, err := Program.New(c)
	if err != nil {
		t.Fatal(err)
	}
	m, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{})
	if err != nil || m.Events != 1000 || in.Total != 1000 {
		t.Fatalf("%d events of %d ran: %v", m.Events, in.Total, err)
	}
	if err := errors.Join(in.Check(), in.Close()); err != nil {
		t.Error(err)
	}
	in.Loops[0].Prepare()()
	if len(in.Notes) == 0 || !strings.HasPrefix(in.Notes[0], "8000 invoices ") {
		t.Errorf("notes: %q", in.Notes)
	}
}

const header = "invoice,ts,stock_code,qty,unit_price,customer\n"

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lines.csv")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRules(t *testing.T) {
	path := file(t, header+
		"1,60,A,3,1.50,7\n1,60,B,2,0.005,7\n"+ // 3 of 5, 2 of 2
		"2,60,A,1,2,8\n2,60,A,2,2,8\n"+ // 1 and then 2 of 2 that are left: nothing of it
		"C3,61,A,-1,1.50,7\n"+ // back to 3
		"4,62,A,1,2,8\n4,62,A,2,2,8\n"+ // now there are enough
		"5,62,B,1,1,\n"+ // none left
		"6,62,B,-4,0,\n"+ // a correction by the shop
		"5,62,B,1,-1.239,\n") // the same number again is another invoice
	a, m, results := replay(t, list(t, path), map[string]int64{"A": 5, "B": 2}, engine.Options{Strategy: "ns-op-eager", Verify: true})
	if diff := cmp.Diff([]Result{
		{"1", true, 5, 452}, {Number: "2"}, {"C3", true, -1, -150}, {"4", true, 3, 600}, {Number: "5"}, {"6", true, -4, 0}, {"5", true, 1, -124},
	}, results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]Stock{"A": {0, 5}, "B": {3, -1}}, maps.Collect(a.Stock.All())); diff != "" {
		t.Errorf("stock (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[uint32]int64{0: -124, 7: 302, 8: 600}, maps.Collect(a.Customers.All())); diff != "" {
		t.Errorf("customers (-want +got):\n%s", diff)
	}
	if m.Aborted != 2 {
		t.Errorf("%d aborted", m.Aborted)
	}
}

func TestOpening(t *testing.T) {
	lines := strings.Repeat("1,60,A,3,1,7\n", 1) + "2,60,A,10,1,7\n3,60,A,4,1,7\n3,60,A,5,1,7\n4,60,B,-5,1,7\n"
	s := survey1(t, file(t, header+lines))
	if diff := cmp.Diff(map[string]int64{"A": 4 * 200 * 4 / 100, "B": 0}, s.opening(200)); diff != "" {
		t.Error(diff)
	}
}

func TestParseCents(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "1": 100, "2.5": 250, "2.55": 255, "0.001": 0, "0.005": 1, "0.0149": 1, "-0.005": -1, "-11062.1": -1106210, "1.230": 123, "000000000001": 100,
	} {
		if got, _, ok := parseCents(s); got != want || !ok {
			t.Errorf("%s: %d, %v; want %d", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "-", ".", "1.", ".5", "1e3", "1,5", " 1", "+1", "--1", "0x1", "1.2.3", "1.-2", "NaN", "1234567890123"} {
		if got, _, ok := parseCents(s); ok {
			t.Errorf("%q is taken for %d cents", s, got)
		}
	}
	if _, whole, _ := parseCents("1.2300"); !whole {
		t.Error("1.2300 is whole cents")
	}
	if _, whole, _ := parseCents("0.001"); whole {
		t.Error("0.001 is no whole cents")
	}
}

func TestMalformedRows(t *testing.T) {
	good := "1,60,A,3,1.50,7\n"
	for _, c := range []struct {
		name, content string
		line, column  int
		what          string
	}{
		{"no invoice", header + good + ",60,A,3,1.50,7\n", 3, 1, "no invoice number"},
		{"time", header + "1,x,A,3,1.50,7\n", 2, 3, "ts"},
		{"time of a later line", header + good + "1,,B,3,1.50,7\n", 3, 3, "ts"},
		{"no code", header + good + "1,60,,3,1.50,7\n", 3, 6, "no stock code"},
		{"quantity", header + good + "1,60,A,3.5,1.50,7\n", 3, 8, "qty"},
		{"no pieces", header + good + "2,60,A,0,1.50,7\n", 3, 8, "qty 0"},
		{"too many pieces", header + good + "2,60,A,1000001,1.50,7\n", 3, 8, "qty"},
		{"a cancellation that sells", header + good + "C2,60,A,1,1.50,7\n", 3, 9, "a cancellation returns"},
		{"price", header + good + "2,60,A,1,free,7\n", 3, 10, "unit_price"},
		{"too high a price", header + good + "2,60,A,1,1000000.01,7\n", 3, 10, "unit_price"},
		{"customer", header + good + "2,60,A,1,1.5,-7\n", 3, 14, "customer"},
		{"two customers", header + good + "1,60,A,1,1.5,8\n", 3, 14, "the same one"},
		{"field missing", header + good + "1,60,A,1,1.5\n", 3, 1, "5 fields"},
		{"no header", good, 1, 1, "invoice"},
		{"empty", "", 1, 1, "empty"},
	} {
		cfg := config(t, "16")
		cfg.Input = file(t, c.content)
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
}

func TestCompressedInput(t *testing.T) {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	want.WriteString(header + "1,60,A,3,1.50,7\n")
	s := survey1(t, file(t, string(w.EncodeAll(want.Bytes(), nil))))
	if s.invoices != 1 || s.lines != 1 {
		t.Errorf("%d invoices, %d lines", s.invoices, s.lines)
	}
}

// A check that cannot fail tells nothing.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	opening := map[string]int64{"A": 3, "B": 0}
	for want, spoil := range map[string]func(a *App){
		"article C was not there": func(a *App) { a.Stock.Load("C", Stock{}) },
		"a stock of -1":           func(a *App) { a.Stock.Load("B", Stock{-1, 1}) },
		"opening stock was 3":     func(a *App) { a.Stock.Load("A", Stock{2, 0}) },
		"1 pieces were sold":      func(a *App) { a.Stock.Load("A", Stock{2, 1}) },
		"charged 5 cents":         func(a *App) { a.Customers.Load(7, 5) },
	} {
		a := New(opening, program.Cost{})
		if err := a.check(opening, sums{}); err != nil {
			t.Fatal(err)
		}
		if spoil(a); a.check(opening, sums{}) == nil || !strings.Contains(a.check(opening, sums{}).Error(), want) {
			t.Errorf("%s: %v", want, a.check(opening, sums{}))
		}
	}
	if err := New(nil, program.Cost{}).check(opening, sums{}); err == nil {
		t.Error("articles are gone")
	}
}

func FuzzLines(f *testing.F) {
	f.Add(header + "1,60,A,3,1.50,7\n1,60,A,-3,1.50,7\n")
	f.Add(header + "C1,60,A,-3,1.50,\n")
	f.Fuzz(func(t *testing.T, content string) {
		rows, err := program.NewRows("f", io.NopCloser(strings.NewReader(content)), columns...)
		if err != nil {
			return
		}
		r := &reader{rows: rows, codes: map[string]string{}}
		a := New(map[string]int64{"A": 3, "B": 1}, program.Cost{})
		m, err := engine.Run(context.Background(), a.App, a.source(r, 1000), engine.Options{Workers: 1, Verify: true})
		var at *program.InputError
		if err != nil && !errors.As(err, &at) {
			t.Fatal(m.Events, err)
		}
	})
}

// What is known of the full file.
func TestFullData(t *testing.T) {
	path := fulldata.Path(t, "uci_online_retail_lines.csv.gz")
	if path == "" {
		return
	}
	s := survey1(t, path)
	for _, fact := range []struct {
		what      string
		got, want int
	}{
		{"lines", s.lines, 541_909},
		{"numbers", len(s.numbers), 25_900},
		{"cancellations", s.cancellations, 3836},
		{"invoices, one of them in two parts", s.invoices, 25_901},
		{"articles", len(s.demand), 4070},
		{"rounded prices", s.rounded, 4},
	} {
		if fact.got != fact.want {
			t.Errorf("%s: %d, want %d", fact.what, fact.got, fact.want)
		}
	}
	opening := s.opening(config(t, "16").Int("k"))
	t.Log(strings.Join(s.notes(opening), "\n"))
	// Not an eager strategy: with large batches, what those redo for the aborts
	// of this application takes minutes.
	invoices := list(t, path)
	lazy := engine.Options{Strategy: "bfs-chain-lazy"}
	_, m, _ := replay(t, invoices, opening, lazy)
	t.Logf("%d of %d aborted", m.Aborted, m.Events)
	if rate := float64(m.Aborted) / float64(m.Events); rate < 0.05 || rate > 0.1 {
		t.Errorf("%.1f %% of the invoices abort", 100*rate)
	}
	if _, m, _ = replay(t, invoices, s.opening(0), lazy); m.Aborted != 19_223 {
		t.Errorf("from zero stock %d invoices abort, want 19,223", m.Aborted)
	}
}
