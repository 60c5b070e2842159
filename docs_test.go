package holdfast_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Each module that we require directly has a line of why in the README.
func TestDependenciesAreExplained(t *testing.T) {
	readme := readFile(t, "README.md")
	_, table, ok := strings.Cut(readme, "## Dependencies")
	if !ok {
		t.Fatal("README.md has no table of dependencies")
	}
	direct := regexp.MustCompile(`(?m)^\s*(?:require )?([a-z0-9.]+\.[a-z]+/\S+) v\S+$`).FindAllStringSubmatch(readFile(t, "go.mod"), -1)
	if len(direct) == 0 {
		t.Fatal("no requirement was found in go.mod")
	}
	for _, m := range direct {
		if !strings.Contains(table, "`"+m[1]+"`") {
			t.Errorf("README.md does not say why %s is needed", m[1])
		}
	}
}

// Links between our pages lead somewhere.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, page := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		for _, m := range link.FindAllStringSubmatch(readFile(t, page), -1) {
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// ARCHITECTURE.md names tests that exist.
func TestInvariantsHaveTheirTests(t *testing.T) {
	_, section, ok := strings.Cut(readFile(t, "ARCHITECTURE.md"), "## Invariants")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no section of invariants")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	named := regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)[A-Za-z0-9_]+)`").FindAllStringSubmatch(section, -1)
	if len(named) == 0 {
		t.Fatal("no test is named")
	}
	for _, m := range named {
		if !hasTest(t, m[1], m[2]) {
			t.Errorf("ARCHITECTURE.md names %s in %s, which is not there", m[2], m[1])
		}
	}
}

// hasTest looks for a test function in the test files of a folder; "root" is this
// one.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	if dir == "root" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "_test.go") && strings.Contains(readFile(t, dir+"/"+e.Name()), "func "+name+"(") {
			return true
		}
	}
	return false
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A row of docs/features.md that says "done" is named by a test or a scenario.
func TestWhatIsDoneIsTested(t *testing.T) {
	named := rowsNamedByTests(t)
	rows := regexp.MustCompile(`(?m)^\| ([A-Z]{2}-[^|]+) \|[^|]+\| done \|`).FindAllStringSubmatch(readFile(t, "docs/features.md"), -1)
	if len(rows) < 20 {
		t.Fatalf("only %d rows are done", len(rows))
	}
	for _, row := range rows {
		for _, id := range expandRows(t, row[1]) {
			if !named[id] {
				t.Errorf("docs/features.md: %s is done, and no test names it", id)
			}
		}
	}
}

// expandRows gives the ids of "HP-10–12", "HP-33, 34" or "HP-41".
func expandRows(t *testing.T, s string) []string {
	t.Helper()
	family, rest, _ := strings.Cut(s, "-")
	var out []string
	for part := range strings.SplitSeq(rest, ", ") {
		from, to, isRange := strings.Cut(part, "–")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		if err != nil {
			t.Fatalf("row %q: %v", s, err)
		}
		last, err := strconv.Atoi(to)
		if err != nil {
			t.Fatalf("row %q: %v", s, err)
		}
		for n := first; n <= last; n++ {
			out = append(out, fmt.Sprintf("%s-%02d", family, n))
		}
	}
	return out
}

func rowsNamedByTests(t *testing.T) map[string]bool {
	t.Helper()
	row := regexp.MustCompile(`\b(?:HP|IN|SV|TD|EX|CC|GW|HF)-\d\d\b`)
	out := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != "." {
			return filepath.SkipDir
		}
		isScenario := strings.HasPrefix(file, "e2e") && strings.HasSuffix(file, ".yaml")
		if !d.IsDir() && (isScenario || strings.HasSuffix(file, "_test.go")) {
			for _, id := range row.FindAllString(readFile(t, file), -1) {
				out[id] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
