// Package fulldata finds the full data sets for tests. They are not part of the
// repository, and a test without them says so and compares nothing.
package fulldata

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a file of the full data, "" where it is absent. The
// folder is what HEDDLE_DATA says, or shared/data in a folder above the test.
func Path(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("HEDDLE_DATA")
	for up := "."; dir == ""; up = filepath.Join(up, "..") {
		if abs, err := filepath.Abs(up); err != nil || abs == filepath.Dir(abs) {
			break
		}
		if info, err := os.Stat(filepath.Join(up, "shared", "data")); err == nil && info.IsDir() {
			dir = filepath.Join(up, "shared", "data")
		}
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); dir == "" || err != nil {
		t.Logf("%s is absent (HEDDLE_DATA, or shared/data above this package): nothing to compare with", name)
		return ""
	}
	return path
}
