package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// objects decodes what a command printed as JSON, an object a line.
func objects(t *testing.T, out string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		var o map[string]any
		if err := dec.Decode(&o); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		all = append(all, o)
	}
	return all
}

func TestSimulate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "t.trace")
	if status, _, errs := heddle("record", "sl", "--events", "3000", "--keys", "60", "--abort", "5", "--batch", "500", "-o", path); status != 0 {
		t.Fatal(errs)
	}
	status, out, errs := heddle("simulate", path, "--events", "1600", "--batches", "2", "--workers", "1,3,9", "--json")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, %s", status, errs)
	}
	all := objects(t, out)
	if len(all) != 16*3 {
		t.Fatalf("%d objects, expected 16 strategies on 3 numbers of workers", len(all))
	}
	for _, o := range all {
		for _, field := range strings.Fields("trace strategy workers speedup events_per_sec critical_path_bound work_bound batches events redone") {
			if _, ok := o[field]; !ok {
				t.Errorf("%s is missing", field)
			}
		}
		if o["strategy"] == "serial" && o["speedup"] != 1.0 {
			t.Errorf("serial is %v times as fast as itself", o["speedup"])
		}
		if o["trace"] != "t.trace" || o["batches"] != 2.0 || o["events"] != 1000.0 || o["work_bound"] != o["workers"] {
			t.Errorf("%v", o)
		}
	}
	report := filepath.Join(dir, "out")
	status, out, errs = heddle("simulate", path, "--workers", "1,2", "--strategies", "serial,ns-op-lazy,tstream", "--validate", "--reps", "1", "--report", report)
	if status != 0 || !strings.Contains(out, "bound: path") || strings.Count(out, "\ntstream ") != 3 || !strings.Contains(out, "error: median") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	page, err := os.ReadFile(filepath.Join(report, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(page, []byte("<polyline")) != 4 || !bytes.Contains(page, []byte("Prediction and engine")) {
		t.Errorf("%s", page)
	}
	if outside := regexp.MustCompile(`(src|href)=|https?://[^w]`).Find(page); outside != nil {
		t.Errorf("the page is not self-contained: %s", outside)
	}
}

func TestSimulateAndValidateAsJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.trace")
	if status, _, errs := heddle("record", "gs", "--events", "700", "--keys", "100", "-o", path); status != 0 {
		t.Fatal(errs)
	}
	status, out, errs := heddle("simulate", path, "--workers", "1,2,4", "--strategies", "lock", "--validate", "--reps", "1", "--json")
	all := objects(t, out)
	if status != 0 || len(all) != 3+2 {
		t.Fatalf("status %d: %s%s", status, out, errs)
	}
	for _, field := range strings.Fields("trace strategy workers predicted measured error cores turns calm_turns") {
		if _, ok := all[4][field]; !ok {
			t.Errorf("%s is missing: %v", field, all[4])
		}
	}
}
