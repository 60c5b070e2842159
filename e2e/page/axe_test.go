package page

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe gives the source of axe-core, or skips the test.
func axe(t *testing.T) string {
	t.Helper()
	file := os.Getenv("HOLDFAST_TEST_AXE")
	if file == "" {
		t.Skip("HOLDFAST_TEST_AXE is not set: no axe-core to test with (make page-test sets it)")
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// violation is what axe-core finds wrong.
type violation struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Nodes  []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

func (v violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s", v.ID, v.Impact, v.Help)
	for i, n := range v.Nodes {
		if i == 3 {
			fmt.Fprintf(&b, "\n  and %d more", len(v.Nodes)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %.200s\n    %s", n.HTML, strings.ReplaceAll(n.Summary, "\n", "\n    "))
	}
	return b.String()
}

// violations runs axe-core on the page as it is.
func (t *Tab) violations(source string) ([]violation, error) {
	if _, err := chromedp.Run(t.ctx, chromedp.Evaluate[chromedp.Void](source+";undefined")); err != nil {
		return nil, fmt.Errorf("axe-core: %w", err)
	}
	const run = `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"]}).then(r => r.violations)`
	return Eval[[]violation](t, run)
}
