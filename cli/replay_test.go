package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// A replay can stop and begin anywhere, and two traces can be compared.
func TestTimeTravel(t *testing.T) {
	dir := t.TempDir()
	name, other := filepath.Join(dir, "a.trace"), filepath.Join(dir, "b.trace")
	args := []string{"record", "sl", "--events", "200000", "--keys", "50", "--abort", "10"}
	whole := result(t, append(args, "-o", name)...)
	result(t, append(args, "-o", other, "--strategy", "ns-op-eager", "--batch", "1000")...)
	if late := result(t, "replay", name, "--from", "150000", "--strategy", "bfs-op-lazy"); late["state_hash"] != whole["state_hash"] || late["results_hash"] != whole["results_hash"] {
		t.Errorf("from a point: %v, expected %v", late, whole)
	} else if at := late["resumed"].(float64); at < 50_000 || at > 150_000 {
		t.Errorf("it began with event %v", at)
	}
	short := result(t, "run", "sl", "--events", "160001", "--keys", "50", "--abort", "10")
	for _, from := range []string{"0", "150000", "160000"} {
		if part := result(t, "replay", name, "--from", from, "--until", "160001"); part["state_hash"] != short["state_hash"] || part["results_hash"] != short["results_hash"] || part["events"] != 160001.0 {
			t.Errorf("from %s: %v, expected %v", from, part, short)
		}
	}
	if status, out, errs := heddle("replay", name, "--diff", other); status != 0 || !strings.Contains(out, "the same events and results") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	result(t, "record", "sl", "--events", "1000", "--keys", "50", "--abort", "10", "-o", other)
	if status, out, errs := heddle("replay", name, "--diff", other); status != 1 || !strings.HasPrefix(out, "event 1000: "+other+" ends before it") && !strings.Contains(out, "event 1000: ") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	for _, args := range []string{"--from 10 --until 5", "--from -1", "--from 999999999", "--diff " + dir + "/none"} {
		if status, _, errs := heddle(append([]string{"replay", name}, strings.Fields(args)...)...); status != 2 {
			t.Errorf("%s: status %d: %s", args, status, errs)
		}
	}
}

// miscounting is a program whose result depends on more than its event: it counts the
// calls for one key. The serial model calls it, too, and so they differ.
func miscounting() program.Program {
	return program.Program{
		Name: "miscounting", About: "a program with a mistake", Events: 5000,
		New: func(c *program.Config) (*program.Instance, error) {
			app := txn.New("miscounting")
			table := txn.NewTable[int, int](app, "table")
			calls := 0
			add := txn.Upsert(table, "add", func(_ txn.Ctx, n int, v *int, _ bool) txn.Verdict {
				if *v += n; n == 77 {
					calls++
					*v += calls
				}
				return txn.OK
			})
			events := txn.On[int, int](app, "add", func(p *txn.Plan, n int) { add.At(p, n%10, n) }, nil)
			next := 0
			return &program.Instance{App: app, Source: program.Generated(c.Events, func(f *txn.Feed) {
				events.Push(f, next%1000)
				next++
			})}, nil
		},
	}
}

// What makes a run fail is found among the events, and fails again.
func TestMinimize(t *testing.T) {
	name := filepath.Join(t.TempDir(), "small.trace")
	run := func(args ...string) (int, string, string) {
		var o, e bytes.Buffer
		return Run(args, strings.NewReader(""), &o, &e, miscounting()), o.String(), e.String()
	}
	status, out, errs := run("record", "--minimize", "-o", name, "--strategy", "serial")
	if status != 0 || !strings.Contains(out, name+": 1 of 88 events") {
		t.Fatalf("status %d: %s%s", status, out, errs)
	}
	if status, out, errs = run("replay", name, "--verify"); status != 1 || !strings.Contains(errs, "differs from the serial model") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	if status, out, errs := heddle("record", "sl", "--events", "100", "--minimize", "-o", name+".none"); status != 1 || !strings.Contains(errs, "does not fail") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
}
