package source_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/source"
	"github.com/heddle-stream/heddle/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type pay struct {
	From, To string
	Amount   int64 `json:"amount"`
}

type rate struct {
	Currency string  `json:"currency"`
	Rate     float64 `json:"rate"`
	Fixed    bool    `json:"fixed"`
}

// bank is an application with two event types, or only the first one.
func bank(types int) (*txn.App, *txn.Event[pay, int], *txn.Event[rate, int]) {
	app := txn.New("bank")
	pays := txn.On[pay, int](app, "pay", func(*txn.Plan, pay) {}, nil)
	if types == 1 {
		return app, pays, nil
	}
	return app, pays, txn.On[rate, int](app, "rate", func(*txn.Plan, rate) {}, nil)
}

// read reads everything and returns the events as lines, with the dead letters at
// their places.
func read(t *testing.T, app *txn.App, s txn.Source, limit int) (lines []string, at txn.Position, err error) {
	t.Helper()
	f := app.NewFeed()
	for err == nil {
		f.Reset()
		err = s.Fill(context.Background(), f, limit)
		told, terr := f.AppendTold(nil)
		if terr != nil {
			t.Fatal(terr)
		}
		for i := range f.Len() {
			line, lerr := source.AppendLine(nil, app, f, i)
			if lerr != nil {
				t.Fatal(lerr)
			}
			lines = append(lines, strings.TrimSpace(string(line)))
		}
		if f.Discards() > 0 {
			lines = append(lines, string(told))
		}
		at, _ = f.Position()
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return lines, at, err
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	paid  = `{"pay":{"From":"a","To":"b","amount":5}}`
	rated = `{"rate":{"currency":"EUR","rate":1.5,"fixed":true}}`
)

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		name, text string
		types      int
		want       string
	}{
		{"a.jsonl", paid + "\n" + rated + "\n", 2, paid + rated},
		{"a.ndjson", "\n  " + paid + " \r\n\n" + rated, 2, paid + rated},
		{"bare.jsonl", `{"From":"a","To":"b","amount":5}` + "\n" + paid, 1, paid + paid},
		{"a.csv", "event,From,To,amount,currency,rate,fixed\npay,a,b,5,,,\nrate,,,,EUR,1.5,true\n", 2, paid + rated},
		{"bare.csv", "From,To,amount\na,b,5\n\na,b,5", 1, paid + paid},
		{"quoted.csv", "From,To,amount\n\"x\ny\",\"\"\"b\",5\n", 1, `{"pay":{"From":"x\ny","To":"\"b","amount":5}}`},
		{"mark.csv", "\xef\xbb\xbfFrom,To,amount\na,b,5\n", 1, paid},
		{"mark.jsonl", "\xef\xbb\xbf" + paid, 2, paid},
		{"empty.jsonl", "", 2, ""},
		{"empty.csv", "", 1, ""},
		{"empty.bin", "", 2, ""},
	} {
		app, _, _ := bank(c.types)
		s, err := source.Open(app, file(t, c.name, c.text), source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		lines, _, err := read(t, app, s, 10)
		if got := strings.Join(lines, ""); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; expected %s", c.name, got, err, c.want)
		}
	}
}

// What is no event names its place and what is wrong, or becomes a dead letter.
func TestDeadLetters(t *testing.T) {
	for _, c := range []struct {
		name, bad, what string
		line, column    int
	}{
		{"a.jsonl", `{"pay":{"From":"a","T`, "an object with the name of the event's type is expected", 2, 1},
		{"a.jsonl", `{"gift":{"From":"a"}}`, `there is no event type "gift"`, 2, 1},
		{"a.jsonl", `{"pay":{"Frm":"a"}}`, "event pay: ", 2, 8},
		{"a.jsonl", `{"pay":{"amount":"x"}}`, "event pay: ", 2, 8},
		{"a.jsonl", `{"pay":{"amount":99999999999999999999}}`, "event pay: ", 2, 8},
		{"a.jsonl", `null`, "an object with the name", 2, 1},
		{"a.csv", "pay,a,b,x", `amount "x": a int64 is expected`, 3, 4},
		{"a.csv", "rate,a,b,1", `event rate has no field From`, 3, 2},
		{"a.csv", "pay,a,b", "3 fields; 4 are expected", 3, 1},
		{"a.csv", "gift,a,b,5", `there is no event type "gift"`, 3, 1},
		{"a.csv", `pay,a"b,c,5`, `bare "`, 3, 6},
	} {
		good := paid + "\n"
		if c.name == "a.csv" {
			good = "event,From,To,amount\npay,a,b,5\n"
			c.bad = strings.TrimSuffix(c.bad, "\n")
		}
		path := file(t, c.name, good+c.bad+"\n"+strings.TrimPrefix(good, "event,From,To,amount\n"))
		app, _, _ := bank(2)
		s, err := source.Open(app, path, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		lines, _, err := read(t, app, s, 10)
		var at *program.InputError
		if !errors.As(err, &at) || at.Line != c.line || at.Column != c.column || !strings.Contains(at.What, c.what) || len(lines) != 1 {
			t.Errorf("%s: %v after %d events; expected line %d, column %d, %s", c.bad, err, len(lines), c.line, c.column, c.what)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if s, err = source.Open(app, path, source.Options{Discard: true}); err != nil {
			t.Fatal(err)
		}
		lines, _, err = read(t, app, s, 10)
		if err != nil || len(lines) != 3 || lines[0] != paid || lines[1] != paid || !strings.Contains(lines[2], fmt.Sprintf(`"line":%d,"column":%d`, c.line, c.column)) {
			t.Errorf("%s: %v, %v", c.bad, lines, err)
		}
	}
}

// mixed writes a directory of files in all formats with things that are wrong.
func mixed(t *testing.T, app *txn.App, pays *txn.Event[pay, int], rates *txn.Event[rate, int]) (dir string) {
	t.Helper()
	dir = t.TempDir()
	r := rng.New(1, 41)
	f := app.NewFeed()
	var all, broken []byte
	for i := range 200 {
		if r.IntN(3) == 0 {
			rates.Push(f, rate{fmt.Sprint("c", i), float64(i) / 3, i%2 == 0})
		} else {
			pays.Push(f, pay{fmt.Sprint("a", i), strings.Repeat("b", r.IntN(300)), int64(i)})
		}
		var err error
		if broken, err = source.AppendLine(broken, app, f, i); err != nil {
			t.Fatal(err)
		}
		if r.IntN(5) == 0 {
			broken = append(broken, "{nothing\n\n"...)
		}
		all = source.AppendRecord(all, f, i)
	}
	half := len(all) / 3
	for ; !endsRecord(all[:half]); half++ {
	}
	for name, text := range map[string][]byte{
		"1.jsonl": broken, "2.bin": all[:half], "3.bin": all[half:], ".hidden": []byte("x"),
		"4.csv": []byte("event,currency,rate\nrate,\"x\n\"\"y\",4\nrate,z,5\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// readSome reads piece by piece and stops after so many.
func readSome(t *testing.T, app *txn.App, s *source.Files, pieces int) (lines []string, at txn.Position) {
	t.Helper()
	f := app.NewFeed()
	for range pieces {
		f.Reset()
		if err := s.Fill(context.Background(), f, 1); err != nil {
			break
		}
		if at, _ = f.Position(); f.Len() > 0 {
			line, err := source.AppendLine(nil, app, f, 0)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, strings.TrimSpace(string(line)))
		}
		if f.Discards() > 0 {
			told, err := f.AppendTold(nil)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(told))
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return lines, at
}

// A source that goes on where another one stopped delivers the rest, whatever that is.
func TestResume(t *testing.T) {
	app, pays, rates := bank(2)
	dir := mixed(t, app, pays, rates)
	open := func() *source.Files {
		s, err := source.Open(app, dir, source.Options{Discard: true})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want, _, err := read(t, app, open(), 1)
	if err != nil || len(want) < 400 {
		t.Fatalf("%d lines, %v", len(want), err)
	}
	for stop := range 450 {
		got, at := readSome(t, app, open(), stop)
		s := open()
		if stop > 0 {
			if err := s.Resume(at); err != nil {
				t.Fatal(err)
			}
		}
		rest, _, err := read(t, app, s, 1)
		if got = append(got, rest...); err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("stopped after %d at %+v: %d lines, %d are expected, or they differ; %v", stop, at, len(got), len(want), err)
		}
	}
	if err := open().Resume(txn.Position{File: "other"}); err == nil {
		t.Error("a position in another file is accepted")
	}
}

// endsRecord reports whether bytes are whole records.
func endsRecord(b []byte) bool {
	for len(b) >= 4 {
		n := int(b[0]) | int(b[1])<<8
		if len(b) < 4+n {
			return false
		}
		b = b[4+n:]
	}
	return len(b) == 0
}

func TestCutOffRecord(t *testing.T) {
	app, pays, _ := bank(2)
	f := app.NewFeed()
	pays.Push(f, pay{"a", "b", 5})
	whole := source.AppendRecord(nil, f, 0)
	for n := 1; n < len(whole); n++ {
		s, err := source.Open(app, file(t, "a.bin", string(whole)+string(whole[:n])), source.Options{Discard: true})
		if err != nil {
			t.Fatal(err)
		}
		if lines, _, err := read(t, app, s, 10); err == nil || len(lines) != 1 || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("%d bytes: %v, %v", n, lines, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Who waits for standard input can be interrupted, and gets what is there.
func TestStandardInput(t *testing.T) {
	app, _, _ := bank(2)
	in, out := io.Pipe()
	s, err := source.Open(app, "-", source.Options{Format: "jsonl", Stdin: in})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(out, "%s\n%s\n", paid, rated); err != nil {
		t.Fatal(err)
	}
	f := app.NewFeed()
	for f.Len() < 2 {
		if err := s.Fill(context.Background(), f, 100); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Fill(ctx, f, 100); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if lines, _, err := read(t, app, s, 100); len(lines) != 0 || err != nil {
		t.Errorf("%v, %v", lines, err)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	app, _, _ := bank(2)
	for name, text := range map[string]string{file(t, "a.txt", ""): "one of jsonl, csv, bin", filepath.Join(t.TempDir(), "none.csv"): "no such file"} {
		if _, err := source.Open(app, name, source.Options{}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for text, what := range map[string]string{"event,what\n": `column "what"`, "From,To\n": "a column event is expected"} {
		s, err := source.Open(app, file(t, "a.csv", text), source.Options{Discard: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := read(t, app, s, 1); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v", text, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add("jsonl", []byte(paid+"\n"+rated))
	f.Add("csv", []byte("event,From,To,amount\npay,a,\"b\n\",5\n"))
	f.Add("bin", []byte{3, 0, 0, 0, 0, 1, 'a'})
	f.Fuzz(func(t *testing.T, format string, data []byte) {
		app, _, _ := bank(2)
		s, err := source.Open(app, file(t, "a", string(data)), source.Options{Format: format, Discard: true})
		if err != nil {
			return
		}
		_, at, err := read(t, app, s, 3)
		if err == nil && at.Offset > int64(len(data)) && data[0] != 0x1f && data[0] != 0x28 {
			t.Fatalf("%d of %d bytes read", at.Offset, len(data))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A quote that is never closed takes time in proportion to the file, and a mistake in the
// first row is told with its line.
func TestQuotesInCSV(t *testing.T) {
	app, _, _ := bank(1)
	s, err := source.Open(app, file(t, "a.csv", "\nFrom,To,amount\n\"x,a,5\n"+strings.Repeat("a,b,5\n", 100_000)), source.Options{Discard: true})
	if err != nil {
		t.Fatal(err)
	}
	if lines, _, err := read(t, app, s, 10); err != nil || len(lines) != 1 || !strings.Contains(lines[0], "a quote without its end") {
		t.Errorf("%d lines, %v", len(lines), err)
	}
	if s, err = source.Open(app, file(t, "a.csv", "From,To,amount\na,b,x\n"), source.Options{}); err != nil {
		t.Fatal(err)
	}
	var at *program.InputError
	if _, _, err = read(t, app, s, 10); !errors.As(err, &at) || at.Line != 2 {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A part of an event holds back nobody.
func TestPartOfALine(t *testing.T) {
	app, _, _ := bank(2)
	in, out := io.Pipe()
	s, err := source.Open(app, "-", source.Options{Format: "jsonl", Stdin: in})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = fmt.Fprintf(out, "%s\n%s", paid, rated[:10]) }() // ends with the pipe
	f := app.NewFeed()
	if err := s.Fill(context.Background(), f, 100); err != nil || f.Len() != 1 {
		t.Errorf("%d events, %v", f.Len(), err)
	}
	if err := errors.Join(out.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

// Event types need not be structs.
func TestPlainEvents(t *testing.T) {
	app := txn.New("plain")
	txn.On[int64, int](app, "count", func(*txn.Plan, int64) {}, nil)
	txn.On[string, int](app, "name", func(*txn.Plan, string) {}, nil)
	text := `{"count":5}` + `{"name":"x"}`
	s, err := source.Open(app, file(t, "a.jsonl", `{"count":5}`+"\n"+`{"name":"x"}`), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if lines, _, err := read(t, app, s, 10); err != nil || strings.Join(lines, "") != text {
		t.Errorf("%v, %v", lines, err)
	}
}
