package holdfast_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/holdfast-xds/holdfast/"

// mayImport says which of our packages each of them may import. Tests may
// import more.
var mayImport = map[string][]string{
	"index":           {},
	"index/indextest": {"index"},
	"kinds":           {"index"},
	"tracing":         {},
	"k8swatch":        {"index", "kinds", "tracing"},
	"translate":       {"index", "kinds"},
	"delta":           {"index"},
	"delta/ads":       {"delta", "index", "tracing"},
	"admin":           {"delta", "index", "kinds", "translate", "tracing"},
	"cmd/holdfast":    {"admin", "delta", "delta/ads", "index", "k8swatch", "kinds", "tracing", "translate"},
}

// drivers are programs and tests around the product: they may import all of it,
// and none of it imports them.
var drivers = []string{"e2e", "benchmarks", "simulation", "tools"}

// pure packages decide; effects are in the shells.
var pure = []string{"index", "kinds", "translate", "delta"}

// impure are the packages, and the names of others, by which a clock, I/O or the
// environment would come into a pure package.
var (
	impureImports = []string{"context", "net", "os", "os/exec", "io/fs", "log", "log/slog"}
	impureNames   = []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc", "time.NewTimer", "time.NewTicker", "time.Tick"}
	environment   = []string{"os.Getenv", "os.LookupEnv", "os.Environ", "os.ExpandEnv"}
)

// Imports go one way: cmd → everything, delta/ads → delta → index, translate →
// index, k8swatch → index; index imports none of ours.
func TestImportsGoOneWay(t *testing.T) {
	seen := map[string]bool{}
	for file, parsed := range goFiles(t) {
		dir := path.Dir(file)
		allowed, known := mayImport[dir]
		if !known {
			t.Errorf("%s: package %s is not in mayImport", file, dir)
			continue
		}
		seen[dir] = true
		for _, x := range importsOf(t, parsed) {
			ours, ok := strings.CutPrefix(x, module)
			if ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s; %s may import only %v", file, ours, dir, allowed)
			}
		}
	}
	for dir := range mayImport {
		if !seen[dir] {
			t.Errorf("mayImport names %s, where there is no Go file", dir)
		}
	}
}

// Decisions are in pure code: no clock, no I/O, no goroutine.
func TestPurePackagesArePure(t *testing.T) {
	for file, parsed := range goFiles(t) {
		if !slices.Contains(pure, path.Dir(file)) {
			continue
		}
		for _, x := range importsOf(t, parsed) {
			if slices.Contains(impureImports, x) {
				t.Errorf("%s imports %s", file, x)
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if _, starts := n.(*ast.GoStmt); starts {
				t.Errorf("%s starts a goroutine", file)
			}
			if name := selector(n); slices.Contains(impureNames, name) {
				t.Errorf("%s uses %s", file, name)
			}
			return true
		})
	}
}

// The environment is read in cmd alone, and nothing happens by being imported.
func TestNoHiddenInputs(t *testing.T) {
	for file, parsed := range goFiles(t) {
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function", file)
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if name := selector(n); slices.Contains(environment, name) && path.Dir(file) != "cmd/holdfast" {
				t.Errorf("%s uses %s", file, name)
			}
			return true
		})
	}
}

// selector gives "package.Name" of a selector expression, else nothing.
func selector(n ast.Node) string {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return x.Name + "." + s.Sel.Name
}

func isDriver(dir string) bool {
	top, _, _ := strings.Cut(dir, "/")
	return slices.Contains(drivers, top)
}

func importsOf(t *testing.T, f *ast.File) []string {
	t.Helper()
	var out []string
	for _, x := range f.Imports {
		name, err := strconv.Unquote(x.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, name)
	}
	return out
}

// goFiles parses each Go file of the product that is not a test.
func goFiles(t *testing.T) map[string]*ast.File {
	t.Helper()
	out := map[string]*ast.File{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (isDriver(file) || file == "bin" || (strings.HasPrefix(d.Name(), ".") && file != ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		out[filepath.ToSlash(file)] = parsed
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
