package osed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

func config(t *testing.T, events int, params map[string]string) *program.Config {
	t.Helper()
	c, err := Program.Config(params)
	if err != nil {
		t.Fatal(err)
	}
	c.Events = events
	return c
}

func same[K comparable, V any](t *testing.T, name string, want map[K]V, table *txn.Table[K, V]) {
	t.Helper()
	if diff := cmp.Diff(want, maps.Collect(table.All())); diff != "" {
		t.Errorf("%s: the loop and the engine differ (-loop +engine):\n%s", name, diff)
	}
}

// detect runs the texts. What is wrong is a failure: the check, and any
// difference from the loop.
func detect(t *testing.T, texts []Text, r rules, o engine.Options) (*App, engine.Metrics, []Found) {
	t.Helper()
	a := New(r, program.Cost{})
	var told sums
	var results []Found
	a.Events.Each(told.add)
	a.Events.Each(func(f Found) { results = append(results, f) })
	m, err := engine.Run(context.Background(), a.App, a.Events.Slice(texts), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.check(told); err != nil {
		t.Error(err)
	}
	s := newState()
	for i := range texts {
		s.text(&r, &texts[i], program.Cost{})
	}
	// The engine makes a row for each word of a text, if only of cluster 0.
	for w := range s.statistics {
		s.index[w] += 0
	}
	same(t, "contents", s.seen, a.Seen)
	same(t, "texts", s.texts, a.Texts)
	same(t, "statistics", s.statistics, a.Statistics)
	same(t, "trends", s.trends, a.Trends)
	same(t, "index", s.index, a.Index)
	same(t, "clusters", s.clusters, a.Clusters)
	return a, m, results
}

func texts(t *testing.T, c *program.Config) []Text {
	t.Helper()
	list, _, err := textsOf(c)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestSampleVerified(t *testing.T) {
	c := config(t, 0, nil)
	list := texts(t, c)
	if len(list) != 4520 {
		t.Errorf("%d texts", len(list))
	}
	for _, s := range []string{"serial", "ns-op-eager", "dfs-chain-lazy"} {
		a, m, results := detect(t, list, rulesOf(c), engine.Options{Strategy: s, Verify: true, Workers: 2})
		var told sums
		for _, f := range results {
			told.add(f)
		}
		joined := 0
		for _, cluster := range a.Clusters.All() {
			if cluster.Kept > 0 && cluster.Size > 1 {
				joined++
			}
		}
		t.Logf("%s: %+v, %d aborted, %d clusters of several texts, %d keys moved", s, told, m.Aborted, joined, m.Moved)
		if !m.Verified || m.Aborted < 50 || told.bursting < 500 || told.events < 10 || joined < 50 {
			t.Errorf("%s: verified %v, %d aborted, %+v, %d clusters of several texts", s, m.Verified, m.Aborted, told, joined)
		}
	}
}

// crowded returns texts of few words, so that all of them meet on words and
// clusters. Words come and go, so that some burst.
func crowded(n int) []Text {
	r := rng.New(7, 1)
	c := corpus{window: 40}
	now := int64(1000)
	for range n {
		now += int64(r.IntN(4))
		var words []string
		for range r.IntN(5) {
			words = append(words, fmt.Sprintf("word%d", (now/60+int64(r.IntN(5)))%26))
		}
		c.texts = append(c.texts, Text{Time: now, Source: "s", Words: tokenize(strings.Join(words, " "))})
	}
	out := make([]Text, n)
	for i := range out {
		out[i] = c.text(i)
	}
	return out
}

var crowdedRules = rules{repeat: 2, burstMin: 2, burst: 150, similar: 40, recent: 60, eventSize: 3, eventRate: 100}

func TestVerifiedUnderContention(t *testing.T) {
	list := crowded(1500)
	for _, s := range []string{"serial", "ns-op-eager", "ns-op-lazy", "bfs-op-eager", "dfs-chain-lazy", "lock", "tstream", "auto"} {
		for _, batch := range []int{1, 30, 500} {
			_, m, results := detect(t, list, crowdedRules, engine.Options{Strategy: s, Verify: true, Workers: 3, Batch: batch})
			var told sums
			for _, f := range results {
				told.add(f)
			}
			if !m.Verified || m.Aborted == 0 || told.bursting < 300 || told.bursting > told.texts*9/10 || told.events < 5 {
				t.Errorf("%s, batches of %d: verified %v, %d aborted, %+v", s, batch, m.Verified, m.Aborted, told)
			}
			if s == "ns-op-eager" && batch == 500 && m.Moved == 0 {
				t.Error("no computed key was another one than foreseen: the test tests nothing")
			}
		}
	}
}

func TestTokens(t *testing.T) {
	for text, want := range map[string][]Word{
		"":                            nil,
		"a of the I/O":                nil,
		"Fix the FIX, fix_it! [#123]": {{"fix", 3}, {"123", 1}},
		"naïve café\u212aelvin":       {{"caf", 1}, {"elvin", 1}},
		"\xffabc\xff":                 {{"abc", 1}},
	} {
		if diff := cmp.Diff(want, tokenize(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	long := tokenize("w01 w02 w03 w04 w05 w06 w07 w08 w09 w10 w11 w12 w13 w14 w15 w16 w17 w01")
	if len(long) != wordsMax || long[0].N != 2 || long[15].Text != "w16" {
		t.Errorf("%v", long)
	}
}

const header = "ts,source,text\n"

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "texts.csv")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Worked out by hand from the rules.
func TestRules(t *testing.T) {
	var rows strings.Builder
	rows.WriteString(header)
	want := []Found{}
	add := func(f Found, row string) {
		f.ID = uint32(len(want) + 1)
		if f.Done && f.Cluster == 0 { // alone
			f.Cluster, f.Size, f.Rate = f.ID, 1, 100
		}
		want = append(want, f)
		rows.WriteString(row + "\n")
	}
	for i := range 14 { // nothing is rare enough at the start
		add(Found{Done: true, Words: 1}, fmt.Sprintf("0,s,pad%d", i))
	}
	add(Found{}, "10,s,the")                                                                                 // no words
	add(Found{Done: true, Words: 1}, "10,s,storm")                                                           // not twice yet
	add(Found{}, "14,s,Storm!")                                                                              // the same within 5 seconds
	add(Found{Done: true, Words: 2, Burst: 1}, "14,s,storm coming")                                          // founds cluster 18
	add(Found{Done: true, Words: 2, Burst: 2, Cluster: 18, Size: 2, Rate: 200}, "15,s,big storm storm")      // joins it
	add(Found{Done: true, Words: 1, Burst: 1, Cluster: 18, Size: 3, Rate: 300, Started: true}, "16,q,storm") // another source repeats nothing
	for i := range 6 {
		add(Found{Done: true, Words: 1}, fmt.Sprintf("30,s,more%d", i))
	}
	add(Found{Done: true, Words: 2}, "38,s,storm warning")         // the first in its window
	add(Found{Done: true, Words: 2, Burst: 1}, "39,s,storm again") // cluster 18 is too old
	add(Found{Done: true, Words: 1}, "40,s,storm")                 // the window is another one
	c := config(t, 0, map[string]string{"window": "10", "repeat": "5", "burst-min": "2", "burst": "100", "recent": "15", "event-size": "3", "event-rate": "200"})
	c.Input = file(t, rows.String())
	_, m, got := detect(t, texts(t, c), rulesOf(c), engine.Options{Strategy: "ns-op-eager", Verify: true})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m.Aborted != 2 {
		t.Errorf("%d aborted", m.Aborted)
	}
}

func TestRepeatedRounds(t *testing.T) {
	c := config(t, 7, map[string]string{"window": "10"})
	c.Input = file(t, header+"100,a,first text\n104,b,second text\n125,c,third text\n")
	var at []int64
	for i, x := range texts(t, c) {
		if x.ID != uint32(i+1) || x.Window != (x.Time-100)/10 {
			t.Errorf("text %d has id %d and window %d", i, x.ID, x.Window)
		}
		at = append(at, x.Time)
	}
	if want := []int64{100, 104, 125, 135, 139, 160, 170}; !slices.Equal(at, want) {
		t.Errorf("times %v, want %v", at, want)
	}
}

func TestMalformedRows(t *testing.T) {
	for _, c := range []struct {
		name, content string
		line, column  int
		what          string
	}{
		{"no texts", header, 2, 1, "no texts"},
		{"other header", "ts,text,source\n", 1, 4, `"source" is expected`},
		{"no time", header + "1,a,x\n,a,x\n", 3, 1, "ts"},
		{"negative time", header + "-1,a,x\n", 2, 1, "ts"},
		{"far time", header + "17179869185,a,x\n", 2, 1, "ts"},
		{"back in time", header + "5,a,x\n4,a,x\n", 3, 1, "before"},
		{"no source", header + "5,,x\n", 2, 3, "no source"},
		{"long text", header + "5,a," + strings.Repeat("x", maxText+1) + "\n", 2, 5, "10001 bytes"},
		{"too few fields", header + "5,a\n", 2, 1, "3 are expected"},
		{"quote", header + "5,a,\"x\n", 2, 8, "quote"},
	} {
		config := config(t, 0, nil)
		config.Input = file(t, c.content)
		_, err := Program.New(config)
		var at *program.InputError
		if !errors.As(err, &at) {
			t.Errorf("%s: %v is no InputError", c.name, err)
			continue
		}
		if at.File != config.Input || at.Line != c.line || at.Column != c.column || !strings.Contains(at.What, c.what) {
			t.Errorf("%s: %v; want line %d, column %d: ... %s", c.name, at, c.line, c.column, c.what)
		}
	}
}

func TestInstance(t *testing.T) {
	in, err := Program.New(config(t, 5000, nil))
	if err != nil {
		t.Fatal(err)
	}
	m, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{})
	if err != nil || m.Events != 5000 || in.Total != 5000 {
		t.Fatalf("%d events of %d ran: %v", m.Events, in.Total, err)
	}
	if err := in.Check(); err != nil {
		t.Error(err)
	}
	in.Loops[0].Prepare()()
	if len(in.Notes) != 2 || !strings.HasPrefix(in.Notes[0], "5000 texts, from an input of 4520;") {
		t.Errorf("notes: %q", in.Notes)
	}
}

// One thing is put wrong at a time, in a state that is right.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	list := crowded(300)
	for name, spoil := range map[string]func(a *App, told *sums){
		"text":      func(a *App, _ *sums) { a.Texts.Load(1000, Place{Cluster: 1}) },
		"place":     func(a *App, _ *sums) { a.Texts.Load(1, Place{Cluster: 2, Burst: 1}) },
		"statistic": func(a *App, _ *sums) { a.Statistics.Load("a", Statistic{Total: 1}) },
		"trend":     func(a *App, _ *sums) { a.Trends.Load("zz", Trend{Bursts: 1}) },
		"cluster":   func(a *App, _ *sums) { a.Clusters.Load(5000, Cluster{ID: 5000}) },
		"index":     func(a *App, _ *sums) { a.Index.Load("a", 5000) },
		"event":     func(_ *App, told *sums) { told.events++ },
		"bursting":  func(_ *App, told *sums) { told.bursting-- },
	} {
		a := New(crowdedRules, program.Cost{})
		var told sums
		a.Events.Each(told.add)
		if _, err := engine.Run(context.Background(), a.App, a.Events.Slice(list), engine.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := a.check(told); err != nil {
			t.Fatal(err)
		}
		if spoil(a, &told); a.check(told) == nil {
			t.Errorf("a wrong %s passed", name)
		}
	}
}
