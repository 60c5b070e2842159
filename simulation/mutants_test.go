package simulation_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mutant breaks the rule on purpose: in one file, one piece of text is another.
// The production code has no hooks for this; a build overlay puts the changed
// file in the place of the real one.
type mutant struct {
	name     string
	file     string // from the root of the module
	old, new string
}

var (
	only   = flag.String("mutant", "", "try only the mutants whose names match this expression")
	budget = flag.Int("mutant-seeds", 2000, "seeds in which a mutant must be found")
)

// TestMutantsApply: a mutant that no longer fits the code breaks nothing, and
// would be a lie in the count.
func TestMutantsApply(t *testing.T) {
	for _, m := range mutants {
		if _, err := m.apply(); err != nil {
			t.Error(err)
		}
	}
}

// apply gives the changed file.
func (m *mutant) apply() (string, error) {
	src, err := os.ReadFile(filepath.Join("..", m.file))
	if err != nil {
		return "", fmt.Errorf("mutant %q: %w", m.name, err)
	}
	if n := strings.Count(string(src), m.old); n != 1 {
		return "", fmt.Errorf("mutant %q: its text is %d times in %s, want once; adapt it to the code", m.name, n, m.file)
	}
	return strings.Replace(string(src), m.old, m.new, 1), nil
}

// TestMutants sees that the simulation finds each of them. It builds the
// simulation once for each, so it runs only when asked for (make mutants).
func TestMutants(t *testing.T) {
	if os.Getenv("MUTANTS") == "" {
		t.Skip("set MUTANTS=1, or run make mutants")
	}
	pattern := regexp.MustCompile(*only)
	found, tried := 0, 0
	for _, m := range mutants {
		if !pattern.MatchString(m.name) {
			continue
		}
		tried++
		verdict, ok := m.hunt(t)
		if ok {
			found++
		} else {
			t.Errorf("mutant %q is not found within %d seeds", m.name, *budget)
		}
		fmt.Printf("%-45s %s\n", m.name, verdict)
	}
	fmt.Printf("%d of %d mutants found\n", found, tried)
}

var firstFailure = regexp.MustCompile(`seed (\d+), step -?\d+ of \d+: (\w+): (.*)`)

// hunt builds the mutant and runs it until a seed fails.
func (m *mutant) hunt(t *testing.T) (verdict string, found bool) {
	bin := m.build(t)
	out, err := exec.Command(bin, "-test.run", "^TestSimulation$", "-brief", "-seed", "1", "-seeds", fmt.Sprint(*budget)).CombinedOutput()
	if err == nil {
		return "not found", false
	}
	match := firstFailure.FindStringSubmatch(string(out))
	if match == nil {
		t.Errorf("mutant %q: %v\n%s", m.name, err, out)
		return "did not run", false
	}
	return fmt.Sprintf("seed %s, %s: %.110s", match[1], match[2], match[3]), true
}

func (m *mutant) build(t *testing.T) string {
	changed, err := m.apply()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	real, err := filepath.Abs(filepath.Join("..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	mutated := filepath.Join(dir, filepath.Base(m.file))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {real: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, mutated, changed)
	write(t, filepath.Join(dir, "overlay.json"), string(overlay))
	bin := filepath.Join(dir, "simulation.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", bin, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("mutant %q does not build: %v\n%s", m.name, err, out)
	}
	return bin
}

func write(t *testing.T, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
