package program_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/heddle-stream/heddle/program"
)

func gzipped(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zstandard(t *testing.T, s string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(w.EncodeAll([]byte(s), nil))
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The names say nothing of the format on purpose.
func TestOpenKnowsFormatsByContent(t *testing.T) {
	long := strings.Repeat("a,b\n1,2\n", 50_000)
	for _, text := range []string{"", "x", "a,b\n", long} {
		for format, content := range map[string]string{"plain": text, "gzip": gzipped(t, text), "zstd": zstandard(t, text)} {
			r, err := program.Open(write(t, "data.bin", content))
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			got, err := io.ReadAll(r)
			if err != nil || string(got) != text {
				t.Errorf("%s: %d bytes, %v; want %d", format, len(got), err, len(text))
			}
			if err := r.Close(); err != nil {
				t.Errorf("%s: close: %v", format, err)
			}
		}
	}
}

func TestOpenNamesTheFile(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "none.csv"), write(t, "broken.gz", "\x1f\x8bxx"), t.TempDir()} {
		if _, err := program.Open(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v does not name it", path, err)
		}
	}
}

// read sums up the rows of a table of an integer and a text.
func read(file, content string) (n int64, text string, err error) {
	r, err := program.Decompress(io.NopCloser(strings.NewReader(content)))
	if err != nil {
		return 0, "", err
	}
	rows, err := program.NewRows(file, r, "n", "text")
	if err != nil {
		return 0, "", err
	}
	for rows.Next() {
		n += rows.Int(0, -5, 1000)
		text += rows.Text(1)
	}
	return n, text, errors.Join(rows.Err(), rows.Close())
}

func TestRows(t *testing.T) {
	n, text, err := read("f", "n,text\r\n1,a\n\n-5,\"b,\n\"\n1000,c")
	if n != 996 || text != "ab,\nc" || err != nil {
		t.Errorf("%d, %q, %v", n, text, err)
	}
	if n, text, err = read("f", "n,text\n"); n != 0 || text != "" || err != nil {
		t.Errorf("only a header: %d, %q, %v", n, text, err)
	}
}

func TestRowsTellWhere(t *testing.T) {
	damaged := gzipped(t, "n,text\n"+strings.Repeat("1,a\n", 1000))
	for _, c := range []struct {
		name, content string
		line, column  int
		what          string
	}{
		{"empty", "", 1, 1, "n,text"},
		{"other header", "n,what\n1,a\n", 1, 3, `"text" is expected`},
		{"short header", "n\n", 1, 1, "2 are expected"},
		{"too few fields", "n,text\n1,a\n2\n", 3, 1, "1 fields; 2 are expected"},
		{"too many fields", "n,text\n1,a,b\n", 2, 1, "3 fields; 2 are expected"},
		{"no integer", "n,text\n1,a\nx,b\n", 3, 1, `n "x": an integer from -5 to 1000`},
		{"out of range", "n,text\n1001,a\n", 2, 1, "-5 to 1000"},
		{"below range", "n,text\n-6,a\n", 2, 1, "-5 to 1000"},
		{"plus sign", "n,text\n+1,a\n", 2, 1, "-5 to 1000"},
		{"leading zero", "n,text\n01,a\n", 2, 1, "-5 to 1000"},
		{"blank", "n,text\n 1,a\n", 2, 1, "-5 to 1000"},
		{"beyond 64 bits", "n,text\n99999999999999999999,a\n", 2, 1, "-5 to 1000"},
		{"after a field of two lines", "n,text\n1,\"a\nb\"\nx,c\n", 4, 1, `"x"`},
		{"open quote", "n,text\n1,\"a\n", 2, 6, "quote"},
		{"quote inside", "n,text\n1,a\"b\n", 2, 4, "quote"},
		{"cut off compression", damaged[:len(damaged)-9], 1002, 1, "EOF"},
	} {
		_, _, err := read("dir/f.csv", c.content)
		var at *program.InputError
		if !errors.As(err, &at) {
			t.Errorf("%s: %v is no InputError", c.name, err)
			continue
		}
		if at.File != "dir/f.csv" || at.Line != c.line || at.Column != c.column || !strings.Contains(at.What, c.what) {
			t.Errorf("%s: %v; want dir/f.csv:%d:%d: ... %s", c.name, at, c.line, c.column, c.what)
		}
	}
}

func TestInputErrorMessage(t *testing.T) {
	err := &program.InputError{File: "a.csv", Line: 3, Column: 7, What: "so"}
	if err.Error() != "a.csv:3:7: so" {
		t.Error(err)
	}
}

func FuzzRows(f *testing.F) {
	f.Add("n,text\n1,a\n")
	f.Add("n,text\n1,\"a\n")
	f.Fuzz(func(t *testing.T, content string) {
		_, _, err := read("f", content)
		var at *program.InputError
		if errors.As(err, &at) && (at.Line < 1 || at.Column < 1) {
			t.Fatalf("%v: lines and columns count from 1", at)
		}
	})
}

func TestBeside(t *testing.T) {
	path := write(t, "eth_txs.csv.gz", "")
	dir := filepath.Dir(path)
	if _, err := program.Beside(path, "_txs", "_pre", "pre"); err == nil || !strings.Contains(err.Error(), "eth_pre.csv.gz") || !strings.Contains(err.Error(), "--pre") {
		t.Errorf("absent: %v", err)
	}
	if _, err := program.Beside(filepath.Join(dir, "other.csv"), "_txs", "_pre", "pre"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
	if _, err := program.Beside(write(t, "other.csv", ""), "_txs", "_pre", "pre"); err == nil || !strings.Contains(err.Error(), "--pre") {
		t.Errorf("other name: %v", err)
	}
	for _, name := range []string{"eth_pre.csv.zst", "eth_pre.csv", "eth_pre.csv.gz"} { // each preferred to the one before
		want := filepath.Join(dir, name)
		if err := os.WriteFile(want, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := program.Beside(path, "_txs", "_pre", "pre"); got != want || err != nil {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}
