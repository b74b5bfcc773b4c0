package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Events that were written are read again with the same results, whatever the format,
// and what cannot be read goes where the flags say.
func TestInputOfEvents(t *testing.T) {
	dir := t.TempDir()
	want := result(t, "run", "sl", "--events", "2000", "--keys", "50")
	for _, format := range []string{"jsonl", "bin"} {
		name := filepath.Join(dir, "events."+format)
		if status, _, errs := heddle("record", "sl", "--events", "2000", "--keys", "50", "-o", name); status != 0 {
			t.Fatal(errs)
		}
		got := result(t, "run", "sl", "--keys", "50", "--input", name)
		for _, field := range []string{"events", "state_hash", "results_hash"} {
			if got[field] != want[field] {
				t.Errorf("%s: %s %v, expected %v", format, field, got[field], want[field])
			}
		}
	}
	name := filepath.Join(dir, "events.jsonl")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad.jsonl")
	if err := os.WriteFile(bad, append([]byte("{\"deposit\":{\"What\":1}}\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := heddle("run", "sl", "--keys", "50", "--input", bad); status != 2 || !strings.Contains(errs, bad+":1:12: event deposit") {
		t.Errorf("status %d: %s", status, errs)
	}
	state, out := filepath.Join(dir, "state"), filepath.Join(dir, "out.jsonl")
	got := result(t, "run", "sl", "--keys", "50", "--input", bad, "--state", state, "--output", out)
	if got["state_hash"] != want["state_hash"] || got["discarded"] != 1.0 {
		t.Errorf("%v", got)
	}
	letters, err := os.ReadFile(filepath.Join(state, "dead-letters.jsonl"))
	if err != nil || !strings.Contains(string(letters), `"line":1,"column":12`) || strings.Count(string(letters), "\n") != 1 {
		t.Errorf("%s, %v", letters, err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	tr := filepath.Join(t.TempDir(), "t.trace")
	result(t, "record", "sl", "--keys", "50", "--events", "100", "-o", tr)
	for args, text := range map[string]string{
		"replay " + tr + " --output " + tr:                       "--output is the trace",
		"run sl --input " + name + " --output " + link:           "--input and --output are one file",
		"run sl --input " + dir + " --output " + dir + "/x":      "the directory of --input is no place for it",
		"run sl --input " + dir + "/none.jsonl":                  "no such file",
		"run sl --input " + name + " --events 5":                 "--events is about events that are made",
		"run sl --format csv":                                    "--input, which is missing",
		"run sl --input " + name + " --format xml":               `format "xml": one of jsonl, csv, bin`,
		"run sl --input " + name + " --output " + name:           "--input and --output are one file",
		"run sl --output " + dir:                                 "it is a directory",
		"run sl --state " + name:                                 "it is a file, a directory is wanted",
		"run sl --state " + state + " --output " + state + "/x":  "the state directory is no place for it",
		"run sl --durability wal":                                "--state, which is missing",
		"record sl -o " + dir + "/x.csv":                         "events are written as .jsonl or .bin",
		"run sl --input -":                                       "give --format, one of",
		"run sl --savepoint x":                                   "a savepoint needs a state directory",
		"run sl --state " + dir + "/new --from " + dir + "/none": "no such file",
	} {
		if status, _, errs := heddle(strings.Fields(args)...); status != 2 && !strings.HasSuffix(args, "none") || status == 0 || !strings.Contains(errs, text) {
			t.Errorf("%s: status %d: %s", args, status, errs)
		}
	}
}

// result runs a command that prints one object.
func result(t *testing.T, args ...string) map[string]any {
	t.Helper()
	status, out, errs := heddle(append(args, "--json")...)
	if status != 0 {
		t.Fatal(errs)
	}
	return objects(t, out)[0]
}
