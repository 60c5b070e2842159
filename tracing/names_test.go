package tracing_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// docs/tracing.md names every span, event and attribute, and no other.
func TestNamesAreDocumented(t *testing.T) {
	source, err := os.ReadFile("names.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/tracing.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`(holdfast\\.[a-z_.0-9]+)`").FindAllStringSubmatch(string(page), -1) {
		documented[m[1]] = true
	}
	named := regexp.MustCompile(`= "(holdfast\.[a-z_.0-9]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(named) < 20 {
		t.Fatalf("only %d names were found in names.go", len(named))
	}
	for _, m := range named {
		if !documented[m[1]] {
			t.Errorf("docs/tracing.md lacks %s", m[1])
		}
		delete(documented, m[1])
	}
	for name := range documented {
		t.Errorf("docs/tracing.md names %s, which names.go does not", name)
	}
	if !strings.Contains(string(page), "k8s.namespace.name") || !strings.Contains(string(page), "network.peer.address") {
		t.Error("docs/tracing.md lacks the attributes of the semantic conventions")
	}
}

// docs/operating.md names every metric, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	source, err := os.ReadFile("metric_names.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`(holdfast_[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		documented[strings.TrimSuffix(strings.TrimSuffix(m[1], "_total"), "_seconds")] = true
	}
	named := regexp.MustCompile(`= "(holdfast\.[a-z_.]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(named) < 20 {
		t.Fatalf("only %d names were found in metric_names.go", len(named))
	}
	for _, m := range named {
		name := strings.ReplaceAll(m[1], ".", "_")
		if !documented[name] {
			t.Errorf("docs/operating.md lacks %s", name)
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("docs/operating.md names %s, which metric_names.go does not", name)
	}
}
