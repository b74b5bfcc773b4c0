package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run with a state directory goes on where it stopped, refuses what is not its
// own, and tells what it keeps.
func TestStateDirectory(t *testing.T) {
	dir := t.TempDir()
	state, output := filepath.Join(dir, "state"), filepath.Join(dir, "out.jsonl")
	args := []string{"run", "sl", "--events", "3000", "--keys", "50", "--batch", "500", "--state", state, "--output", output, "--json"}
	status, first, errs := heddle(args...)
	if status != 0 {
		t.Fatal(errs)
	}
	lines, err := os.ReadFile(output)
	if err != nil || strings.Count(string(lines), "\n") != 3000 || !strings.Contains(string(lines), `{"event":2999,"type":`) {
		t.Fatalf("%d lines of output, error %v", strings.Count(string(lines), "\n"), err)
	}
	status, second, errs := heddle(args...)
	if status != 0 {
		t.Fatal(errs)
	}
	a, b := objects(t, first)[0], objects(t, second)[0]
	for _, field := range []string{"events", "committed", "aborted", "ops", "state_hash", "results_hash"} {
		if a[field] != b[field] {
			t.Errorf("%s: %v, and %v when run again", field, a[field], b[field])
		}
	}
	if b["resumed"] != 3000.0 {
		t.Errorf("resumed with %v events", b["resumed"])
	}
	if status, _, errs := heddle("run", "sl", "--events", "3000", "--keys", "51", "--state", state); status != 2 || !strings.Contains(errs, `--keys "50", now "51"`) {
		t.Errorf("status %d: %s", status, errs)
	}
	if status, out, _ := heddle("inspect", state); status != 0 || !strings.Contains(out, "3000 events") {
		t.Errorf("status %d: %s", status, out)
	}
	if status, _, errs := heddle("inspect", dir); status != 2 || !strings.Contains(errs, "no state directory") {
		t.Errorf("status %d: %s", status, errs)
	}
	if status, _, errs := heddle("run", "sl", "--durability", "paper", "--state", state); status != 2 || !strings.Contains(errs, "none, command, wal, dependency, views") {
		t.Errorf("status %d: %s", status, errs)
	}
}
