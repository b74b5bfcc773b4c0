package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
	"github.com/heddle-stream/heddle/workloads/gs"
	"github.com/heddle-stream/heddle/workloads/sl"
	"github.com/heddle-stream/heddle/workloads/tp"
)

// heddle runs a command line and returns status and outputs.
func heddle(args ...string) (status int, out, err string) {
	var o, e bytes.Buffer
	status = Run(args, strings.NewReader(""), &o, &e, sl.Program, gs.Program, tp.Program)
	return status, o.String(), e.String()
}

func TestRunPrintsOneJSONObject(t *testing.T) {
	status, out, errs := heddle("run", "sl", "--events", "2000", "--keys", "50", "--abort", "5", "--verify", "--json", "--strategy", "ns-chain-lazy")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, %s", status, errs)
	}
	dec := json.NewDecoder(strings.NewReader(out))
	var got map[string]any
	if err := dec.Decode(&got); err != nil || dec.More() {
		t.Fatalf("not one object (%v): %s", err, out)
	}
	for _, field := range strings.Fields(`workload strategy workers batch events committed aborted seconds events_per_sec ops latency_us
		breakdown_ns peak_rss_bytes allocs_per_event state_hash results_hash verified`) {
		if _, ok := got[field]; !ok {
			t.Errorf("%s is missing", field)
		}
	}
	for object, fields := range map[string]string{"latency_us": "p50 p95 p99 max", "breakdown_ns": "plan build explore useful abort wait install"} {
		inner := got[object].(map[string]any)
		for _, field := range strings.Fields(fields) {
			if _, ok := inner[field]; !ok {
				t.Errorf("%s.%s is missing", object, field)
			}
		}
	}
	if got["verified"] != true || got["events"] != 2000.0 || got["aborted"] == 0.0 {
		t.Errorf("verified %v, events %v, aborted %v", got["verified"], got["events"], got["aborted"])
	}
}

// Whatever is wrong on the command line is one line that says what is allowed,
// and status 2.
func TestMistakesAreOneLine(t *testing.T) {
	dir := t.TempDir()
	notATrace := filepath.Join(dir, "x.trace")
	if err := os.WriteFile(notATrace, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"fly":                                `unknown command "fly": one of .*run`,
		"run":                                "which workload\\? one of gs, sl, tp",
		"run nothing":                        `unknown workload "nothing": one of gs, sl, tp`,
		"run sl extra":                       `unexpected argument "extra"`,
		"run sl --color":                     "unknown flag: --color; allowed are --abort, --batch",
		"run sl --events many":               `invalid argument "many" for "--events"`,
		"run sl --events -1":                 "--events -1: 0 or more is allowed",
		"run sl --keys 1":                    "--keys 1: an int from 2 to 50000000 is allowed",
		"run sl --skew x":                    "--skew x: a float from 0 to 2 is allowed",
		"run sl --complexity 10":             "--complexity 10: a duration from 0s to 1s is allowed",
		"run sl --strategy quick":            `unknown strategy "quick": one of auto, serial`,
		"run sl --state=":                    "--state is empty",
		"run sl --workers 0":                 "--workers 0 .*1 or more is allowed",
		"run sl --workers 99":                "workers 99: 1 to 64 are allowed",
		"run sl --batch 9999999":             "batch 9999999: 1 to 1048576 are allowed",
		"compare sl --strategies a,b":        `unknown strategy "a": one of`,
		"compare sl --reps 0":                "--reps 0: 1 to 1000 is allowed",
		"record sl":                          "-o TRACE is missing",
		"record sl -o /no/such/dir/t":        "no such file or directory",
		"replay":                             "0 arguments, expected one: a trace",
		"replay /no/such.trace":              "no such file or directory",
		"replay " + notATrace:                "x.trace: offset 0: not a trace",
		"inspect " + notATrace:               "not a trace",
		"inspect t --dot -":                  "say which with --batch",
		"inspect t --batch -2":               "--batch -2: 0 or more is allowed",
		"inspect t --batch 0 --dot - --json": "only one of --dot, --svg, --text and --json",
		"simulate":                           "0 arguments, expected one: a trace",
		"simulate " + notATrace:              "not a trace",
		"simulate t --workers 0":             "--workers 0: numbers from 1 to 1024, separated by commas",
		"simulate t --strategies auto":       "--strategies auto: it chooses among others",
		"simulate t --reps 0":                "--reps 0: 1 or more is allowed",
		"bench":                              "0 arguments, expected one: an experiment, or list",
		"record sl -o /":                     "-o /: it is there and not a file",
		"record sl -o /nowhere/x":            "-o /nowhere/x: stat /nowhere",
		"run sl --rate 1e-9":                 "rate 1e-09: 0, or 0.001 to 1e\\+09",
		"bench nothing":                      `unknown experiment "nothing": one of \[engine F10 DYN`,
		"bench engine --scale huge":          `unknown scale "huge": small or full`,
	} {
		status, out, errs := heddle(strings.Fields(line)...)
		if status != 2 || out != "" {
			t.Errorf("%s: status %d, output %q", line, status, out)
		}
		if strings.Count(errs, "\n") != 1 || !regexp.MustCompile(want).MatchString(errs) {
			t.Errorf("%s: expected one line with %q, got %q", line, want, errs)
		}
	}
}

func TestRecordReplayInspect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.trace")
	if status, _, errs := heddle("record", "tp", "--events", "3000", "--keys", "40", "--vehicles", "60", "--abort", "10", "--batch", "500", "-o", path); status != 0 {
		t.Fatal(errs)
	}
	for _, flags := range []string{"", "--strategy bfs-op-lazy", "--strategy serial --workers 1", "--batch 77 --strategy ns-chain-eager --verify", "--strategy lock --workers 4"} {
		status, out, errs := heddle(append([]string{"replay", path}, strings.Fields(flags)...)...)
		if status != 0 || !strings.Contains(out, "equals the recording") {
			t.Errorf("replay %s: status %d: %s%s", flags, status, out, errs)
		}
	}
	status, out, errs := heddle("inspect", path)
	if status != 0 || strings.Count(out, "\n") != 2+6+1 {
		t.Errorf("inspect: status %d: %s%s", status, out, errs)
	}
	for flag, want := range map[string]string{"--dot": "digraph batch {", "--svg": "</svg>", "--text": "average speeds["} {
		if status, out, errs := heddle("inspect", path, "--batch", "2", flag, "-"); status != 0 || !strings.Contains(out, want) {
			t.Errorf("inspect %s: status %d, %q is missing: %s%s", flag, status, want, out, errs)
		}
	}
	if status, _, errs := heddle("inspect", path, "--batch", "6"); status != 2 || !strings.Contains(errs, "--batch 6: the trace has 6 batches") {
		t.Errorf("status %d: %s", status, errs)
	}
}

// withApp is tp with another application behind its name.
func withApp(app func() *txn.App) program.Program {
	p := tp.Program
	p.New = func(*program.Config) (*program.Instance, error) { return &program.Instance{App: app()}, nil }
	return p
}

// A trace stands for itself: it is replayed from its own state. An application
// with other events is refused, and one that computes something else is found out.
func TestReplayNoticesADifference(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.trace")
	if status, _, errs := heddle("record", "tp", "--events", "500", "--keys", "4", "-o", path); status != 0 {
		t.Fatal(errs)
	}
	for _, c := range []struct {
		app    func() *txn.App
		status int
		want   string
	}{
		{func() *txn.App { return tp.New(9, program.Cost{}).App }, 0, ""},
		{func() *txn.App { return gs.New(40, program.Cost{}).App }, 2, "recorded with events [report]"},
		{forgetful, 1, "replay differs from the recording"},
	} {
		var out, errs bytes.Buffer
		if status := Run([]string{"replay", path}, nil, &out, &errs, withApp(c.app)); status != c.status || !strings.Contains(errs.String(), c.want) {
			t.Errorf("status %d, expected %d with %q: %s", status, c.status, c.want, errs.String())
		}
	}
}

// forgetful has the events and tables of tp and does nothing.
func forgetful() *txn.App {
	app := txn.New("tp")
	txn.NewTable[uint32, float64](app, "speeds")
	txn.NewTable[uint32, int64](app, "counts")
	txn.NewTable[tp.Seen, bool](app, "vehicles")
	txn.On(app, "report", func(*txn.Plan, tp.Report) {}, func(txn.Outcome, tp.Report) tp.Toll { return tp.Toll{} })
	return app
}

func TestCompareWritesAReport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	status, out, errs := heddle("compare", "sl", "--events", "3000", "--keys", "100", "--complexity", "1us", "--strategies", "serial,ns-op-eager,lock", "--reps", "2", "--verify", "--json", "--report", dir)
	if status != 0 {
		t.Fatal(errs)
	}
	dec := json.NewDecoder(strings.NewReader(out))
	n := 0
	for ; dec.More(); n++ {
		var row map[string]any
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"serial_loop_ratio", "serial_ratio", "efficiency", "events_per_sec", "state_hash"} {
			if _, ok := row[field]; !ok {
				t.Errorf("%s is missing", field)
			}
		}
		if row["verified"] != true {
			t.Errorf("%v was not verified", row["strategy"])
		}
	}
	if n != 3 {
		t.Errorf("%d objects, expected 3", n)
	}
	html, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(html, []byte("<svg")); n != 4 {
		t.Errorf("%d plots, expected 4", n)
	}
	if outside := regexp.MustCompile(`(src|href)=|https?://[^w]`).Find(html); outside != nil {
		t.Errorf("the page is not self-contained: %s", outside)
	}
}

func TestListsNameEverything(t *testing.T) {
	if _, out, _ := heddle("workloads"); strings.Count(out, "\n") != 3 {
		t.Error(out)
	}
	if _, out, _ := heddle("strategies"); strings.Count(out, "\n") != 17 {
		t.Error(out)
	}
	if _, out, _ := heddle("bench", "list"); !strings.Contains(out, "engine") {
		t.Error(out)
	}
}

// With one program its name may be left out.
func TestSingleProgram(t *testing.T) {
	var out, errs bytes.Buffer
	if status := Run([]string{"run", "--events", "100", "--keys", "9"}, nil, &out, &errs, sl.Program); status != 0 || !strings.Contains(out.String(), "100 events") {
		t.Fatal(status, out.String(), errs.String())
	}
}

// Messages name the binary, which may be somebody's own.
func TestMessagesNameTheBinary(t *testing.T) {
	var out, errs bytes.Buffer
	if status := run("ledger", []string{"run", "--keys", "many"}, nil, &out, &errs, []Runnable{sl.Program}, nil); status != 2 || !strings.HasPrefix(errs.String(), "ledger: ") {
		t.Fatal(status, errs.String())
	}
}
