package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run with less memory than its rows take ends as one with enough, also when it goes on
// where another one stopped, and leaves no file behind.
func TestMemoryLimit(t *testing.T) {
	dir := t.TempDir()
	args := []string{"run", "sl", "--keys", "400000", "--events", "20000", "--json"}
	status, enough, errs := heddle(args...)
	if status != 0 {
		t.Fatal(errs)
	}
	state := filepath.Join(dir, "state")
	want := objects(t, enough)[0]
	for _, more := range [][]string{nil, {"--verify"}, {"--state", state, "--durability", "wal"}, {"--state", state}} {
		status, out, errs := heddle(append(append(args, "--memory-limit", "32MiB"), more...)...)
		if status != 0 {
			t.Fatal(more, errs)
		}
		got := objects(t, out)[0]
		if got["state_hash"] != want["state_hash"] || got["results_hash"] != want["results_hash"] {
			t.Errorf("%v: state %v, results %v; with enough memory %v and %v", more, got["state_hash"], got["results_hash"], want["state_hash"], want["results_hash"])
		}
		if rows, _ := got["spilled_rows"].(float64); rows < 10_000 {
			t.Errorf("%v: %v rows on disk", more, got["spilled_rows"])
		}
	}
	names, err := os.ReadDir(state)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if strings.HasPrefix(n.Name(), "heddle-") {
			t.Errorf("%s is left", n.Name())
		}
	}
	for _, size := range []string{"much", "-1", "1KB"} {
		if status, _, errs := heddle("run", "sl", "--memory-limit", size); status != 2 || !strings.Contains(errs, "memory") || strings.Count(errs, "\n") > 2 {
			t.Errorf("--memory-limit %s: status %d, %s", size, status, errs)
		}
	}
}
