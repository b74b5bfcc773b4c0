package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/heddle-stream/heddle/"

// floors says how high each package stands. A package imports from lower floors
// only, never sideways or up. The typed rows stand between the slabs that they
// are made of and the tables of txn, whose type parameters they share.
var floors = map[string]float64{
	"internal/invariants": 0, "internal/rng": 0, "internal/clock": 0, "internal/u256": 0, "internal/flat": 0, "internal/fulldata": 0,
	"internal/arena": 1, "internal/blocks": 1, "internal/codec": 1, "internal/image": 1, "internal/work": 1, "internal/arch": 1,
	"storage/keyed": 1.5, "storage/history": 1.5,
	"txn": 2, "storage/vfs": 2, "storage/spill": 2.5,
	"tpg": 3, "storage": 3, "storage/window": 3, "storage/window/windowtest": 3.5, "plan": 3, "internal/oracle": 3, "internal/metamorphic": 3, "program": 3,
	"schedule": 4, "operators": 4, "job": 5.2, "checkpoint": 4, "trace": 4, "source": 4, "reconfig": 4,
	"engine": 5, "workloads": 5.5, "workloads/auction": 5.6, // and everything below workloads
	"bench/plot": 6, "bench/simulate": 6, "internal/sim": 6, "cluster": 6,
	"bench":               7,
	"cli":                 8,
	"cmd/heddle/programs": 8.5,
	"cmd":                 9, "examples": 9,
}

func floor(pkg string) (float64, bool) {
	for p := pkg; ; {
		if f, ok := floors[p]; ok {
			return f, true
		}
		i := strings.LastIndexByte(p, '/')
		if i < 0 {
			return 0, false
		}
		p = p[:i]
	}
}

// file is a parsed Go file of the repository.
type file struct {
	path, pkg string // relative to the root
	test      bool
	fset      *token.FileSet
	ast       *ast.File
	lines     int
}

func files(t *testing.T) []file {
	t.Helper()
	root := filepath.Join("..", "..")
	var out []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || rel == "tools" || rel == "bench/peers" || rel == "cmd/heddle-cluster") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, src, parser.ParseComments)
		if err != nil {
			return err
		}
		out = append(out, file{
			path: rel, pkg: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(path, "_test.go"),
			fset: fset, ast: f, lines: strings.Count(string(src), "\n"),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("only %d files found: this test looks in the wrong place", len(out))
	}
	return out
}

func imports(f file) []string {
	var out []string
	for _, spec := range f.ast.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		out = append(out, path)
	}
	return out
}

func TestFloors(t *testing.T) {
	for _, f := range files(t) {
		if f.test {
			continue
		}
		from, ok := floor(f.pkg)
		if !ok {
			t.Errorf("%s: package %s has no floor", f.path, f.pkg)
			continue
		}
		for _, path := range imports(f) {
			pkg, ours := strings.CutPrefix(path, module)
			if !ours {
				continue
			}
			if to, ok := floor(pkg); !ok || to >= from {
				t.Errorf("%s: %s (floor %v) imports %s (floor %v)", f.path, f.pkg, from, pkg, to)
			}
		}
	}
}

// banned says who may use what.
var banned = []struct {
	path, name string // a package, and a name in it or "" for the whole
	allowed    string // prefix of package paths
}{
	{"math/rand", "", "internal/rng"},
	{"math/rand/v2", "", "internal/rng examples"},
	{"time", "Now", "internal/clock"},
	{"time", "Since", "internal/clock"},
	{"time", "Sleep", "-"},
	{module + "schedule", "", "engine bench cli cmd internal/metamorphic internal/sim"},
	{module + "storage/keyed", "", "txn"},
}

func TestBannedUses(t *testing.T) {
	for _, f := range files(t) {
		names := map[string]string{}
		for _, spec := range f.ast.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			name := path[strings.LastIndexByte(path, '/')+1:]
			if spec.Name != nil {
				name = spec.Name.Name
			}
			names[name] = path
			for _, b := range banned {
				if b.path == path && b.name == "" && !allowed(f.pkg, b.allowed) {
					t.Errorf("%s imports %s, which is for %s", f.path, path, b.allowed)
				}
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			for _, b := range banned {
				if b.name != "" && names[x.Name] == b.path && sel.Sel.Name == b.name && !allowed(f.pkg, b.allowed) {
					t.Errorf("%s uses %s.%s, which is for %s", f.fset.Position(sel.Pos()), b.path, b.name, b.allowed)
				}
			}
			return true
		})
	}
}

func allowed(pkg, list string) bool {
	for _, prefix := range strings.Fields(list) {
		if pkg == prefix || strings.HasPrefix(pkg, prefix+"/") {
			return true
		}
	}
	return false
}

const (
	functionLinesMax = 70
	fileLinesMax     = 600
)

func TestSizes(t *testing.T) {
	for _, f := range files(t) {
		if f.lines > fileLinesMax {
			t.Errorf("%s has %d lines, the guide is %d", f.path, f.lines, fileLinesMax)
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1; n > functionLinesMax {
				t.Errorf("%s: %s has %d lines, the guide is %d", f.path, fn.Name.Name, n, functionLinesMax)
			}
		}
	}
}

func TestNamesAndPackageComments(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range files(t) {
		for _, bad := range []string{"util", "common", "helpers", "types"} {
			if f.ast.Name.Name == bad {
				t.Errorf("%s: a package called %s says nothing", f.path, bad)
			}
		}
		documented[f.pkg] = documented[f.pkg] || f.ast.Doc != nil
	}
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", pkg)
		}
	}
}

// The main binary must build in about a minute on two cores: what it depends
// on is counted, since time cannot be tested.
func TestBinaryDependsOnFewPackages(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../../cmd/heddle").Output()
	if err != nil {
		t.Fatal(err)
	}
	const most = 320
	if n := strings.Count(string(out), "\n"); n > most {
		t.Errorf("cmd/heddle depends on %d packages, %d are allowed", n, most)
	}
}
