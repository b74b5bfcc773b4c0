package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/workloads/nexmark"
	"github.com/heddle-stream/heddle/workloads/sl"
)

func jobs(args ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	status = Run(args, strings.NewReader(""), &o, &e, sl.Program, nexmark.Program)
	return status, o.String(), e.String()
}

func TestRunJobs(t *testing.T) {
	status, out, errs := jobs("run", "nexmark", "--query", "q5,q8", "--events", "20000", "--rate", "1000", "--verify", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != 0 || len(lines) != 2 {
		t.Fatal(status, out, errs)
	}
	for i, want := range []string{"nexmark/q5", "nexmark/q8"} {
		var r bench.JobResult
		if err := json.Unmarshal([]byte(lines[i]), &r); err != nil || r.Workload != want || r.Events != 20_000 || r.Results == 0 || !r.Verified {
			t.Errorf("%s: %+v, %v", want, r, err)
		}
	}
	if status, out, _ := jobs("run", "nexmark", "--query", "q0", "--events", "1000"); status != 0 || !strings.Contains(out, "nexmark/q0") {
		t.Error(status, out)
	}
}

func TestJobUsage(t *testing.T) {
	for args, want := range map[string]string{
		"run nexmark --query q99":                        `nexmark has no job "q99": all, or some of q0, q1`,
		"run nexmark --events 0":                         "--events 0: 1 or more is allowed",
		"run nexmark --rate 0":                           "--rate 0: an int from 1 to 1000000000 is allowed",
		"run nexmark --stream sideways":                  "one of inorder, adversarial is allowed",
		"run nexmark --workers 0":                        "--workers 0: 1 to",
		"run nexmark --batch 0":                          "--batch 0: 1 to",
		"run nexmark --strategy fast":                    `--strategy fast: `,
		"run nexmark --memory-limit 1KiB":                "32 MiB or more",
		"run nexmark q5":                                 "takes flags only",
		"compare nexmark --reps 3":                       "nexmark is jobs over streams, which the commands run and plan take; compare takes one of sl",
		"record nexmarks -o file":                        `unknown workload "nexmarks": one of sl`,
		"plan show":                                      "0 arguments, expected one: a job",
		"plan show sl":                                   `no program "sl" has jobs: one of nexmark is allowed`,
		"plan show nexmark":                              "one is wanted, such as nexmark/q0",
		"plan show nexmark/q5 --svg - --after-each-pass": "standard output takes one picture",
		"plan explain nexmark/q5":                        "expected two",
		"plan explain nexmark/q5 nobody":                 "has no vertex or edge nobody: there are events",
		"plan draw":                                      `unknown command "draw": one of explain, show`,
	} {
		status, out, errs := jobs(strings.Fields(args)...)
		if status != 2 || out != "" || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: status %d, %q, %q; want %q", args, status, out, errs, want)
		}
	}
}

func TestPlanOfAJob(t *testing.T) {
	status, out, errs := jobs("plan", "show", "nexmark/q5", "--after-each-pass")
	if status != 0 || errs != "" {
		t.Fatal(status, errs)
	}
	for _, want := range []string{"-- as described\n", "-- after slicing: ", "slice=2000000000", "access=aligned-rmw"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if status, out, _ := jobs("plan", "explain", "nexmark/q5", "events>bids"); status != 0 || !strings.Contains(out, "fuse = true, set by pass fusion") {
		t.Error(status, out)
	}
	name := filepath.Join(t.TempDir(), "p.svg")
	if status, _, errs := jobs("plan", "show", "nexmark/q7", "--svg", name, "--after-each-pass"); status != 0 {
		t.Fatal(status, errs)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(name), "p-*.svg"))
	if err != nil || len(files) != 9 {
		t.Fatal(files, err)
	}
	if svg, err := os.ReadFile(files[0]); err != nil || !bytes.HasPrefix(svg, []byte("<svg")) {
		t.Errorf("%.20s, %v", svg, err)
	}
}

// A job with a state directory writes each result once, goes on, and refuses what is not its own.
func TestJobState(t *testing.T) {
	dir := t.TempDir()
	state, output := filepath.Join(dir, "state"), filepath.Join(dir, "out.jsonl")
	args := []string{"run", "nexmark", "--query", "q8", "--events", "20000", "--rate", "1000", "--state", state, "--output", output, "--json"}
	status, first, errs := jobs(args...)
	if status != 0 {
		t.Fatal(errs)
	}
	lines, err := os.ReadFile(output)
	if err != nil || !strings.HasPrefix(string(lines), `{"ID":1`) {
		t.Fatalf("%.100s, %v", lines, err)
	}
	status, second, errs := jobs(args...)
	if status != 0 {
		t.Fatal(errs)
	}
	var a, b bench.JobResult
	if err := errors.Join(json.Unmarshal([]byte(first), &a), json.Unmarshal([]byte(second), &b)); err != nil {
		t.Fatal(err)
	}
	if a.Results != int64(bytes.Count(lines, []byte("\n"))) || b.Results != a.Results || b.ResultsHash != a.ResultsHash || b.Resumed != 20_000 {
		t.Errorf("%+v, and again %+v", a, b)
	}
	if again, err := os.ReadFile(output); err != nil || !bytes.Equal(again, lines) {
		t.Errorf("%d bytes of output became %d, %v", len(lines), len(again), err)
	}
	if status, out, errs := jobs("inspect", filepath.Join(state, "q8")); status != 0 || !strings.Contains(out, "state of nexmark/q8 after 20000 events") {
		t.Error(status, out, errs)
	}
	for what, changed := range map[string][]string{
		`--rate "1000", now "1001"`: append(args[:len(args):len(args)], "--rate", "1001"),
		"--query q8,q5 are 2":       append(args[:len(args):len(args)], "--query", "q8,q5"),
		`plan: output "sink`:        append(args[:len(args):len(args)], "--output", ""),
		`lines ` + output:           append(args[:len(args):len(args)], "--output", output+"2"),
	} {
		if status, _, errs := jobs(changed...); status != 2 || !strings.Contains(errs, what) {
			t.Errorf("%v: %d, %s", changed, status, errs)
		}
	}
}

// What nobody asks for is left to the job: only so the pass that looks for the size of batches may change it.
func TestJobFlagsThatAreNotGiven(t *testing.T) {
	for args, want := range map[string]struct {
		batch    int
		strategy string
		passes   int // besides those of every job
	}{
		"":                  {0, "", 0},
		"--batch 16384":     {plan.BatchSize.Default(), "", 0},
		"--strategy auto":   {0, "auto", 1},
		"--strategy serial": {0, "serial", 1},
	} {
		f, fs := &jobFlags{}, pflag.NewFlagSet("run", pflag.ContinueOnError)
		f.add(fs, &nexmark.Program)
		if err := fs.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		f.leave(fs)
		o := f.options(&nexmark.Program, "q0", nil)
		if f.batch != want.batch || f.strategy != want.strategy || len(o.Passes) != len(job.Passes())+want.passes {
			t.Errorf("%q: batch %d, strategy %q, %d passes", args, f.batch, f.strategy, len(o.Passes))
		}
	}
}
