package page

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/holdfast-xds/holdfast/e2e/proc"
)

// look is a page with the name of its pictures.
type look struct{ name, path string }

// pages are all pages; those that show the frozen Envoy come first, since it is cut
// off after a while.
func (w *world) pages(t *testing.T) []look {
	t.Helper()
	h, tls := w.edited(), &w.hosts[0]
	return []look{
		{"overview", "/"},
		{"envoys", "/view/envoys"},
		{"host", "/view/explain?q=vhost/" + h.FQDN},
		{"changes", "/view/changes"},
		{"trace", w.trace(t)},
		{"hosts", "/view/hosts"},
		{"hosts-last", "/view/hosts?page=35"},
		{"problems", "/view/problems"},
		{"search", "/view/search?q=site-0005"},
		{"host-tls", "/view/explain?q=vhost/" + tls.FQDN},
		{"object", "/view/explain?q=Service/" + h.Namespace + "/assets"},
		{"listener", "/view/explain?q=listener/ingress_https"},
		{"not-found", "/view/explain?q=vhost/nothing.example"},
	}
}

// trace gives the address of the last change's trace.
func (w *world) trace(t *testing.T) string {
	t.Helper()
	var href string
	err := w.browser.Open(w.url+"/", views["light"], func(tab *Tab) (err error) {
		href, err = Eval[string](tab, `document.querySelector("table.changes tbody td.link a").getAttribute("href")`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return href
}

// Every page, light, dark and narrow: it asks for nothing but what is ours, nothing
// goes wrong, it is not wider than the window, and not longer than a person can use.
// The pictures are there to be looked at.
func TestEveryPageInEveryView(t *testing.T) {
	w := frozen(t)
	for _, p := range w.pages(t) {
		for view, v := range views {
			err := w.browser.Open(w.url+p.path, v, func(tab *Tab) error {
				w.sound(t, p.name+" "+view, tab)
				return tab.Shot(filepath.Join(shots(), p.name+"-"+view+".png"))
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
	t.Logf("pictures are in %s", shots())
}

func (w *world) sound(t *testing.T, what string, tab *Tab) {
	t.Helper()
	for _, e := range tab.Errors() {
		if !strings.Contains(what, "not-found") || !strings.Contains(e, "404") {
			t.Errorf("%s: %s", what, e)
		}
	}
	for _, r := range tab.Requested() {
		if !strings.HasPrefix(r, w.url+"/") {
			t.Errorf("%s: asks for %s", what, r)
		}
	}
	if over, err := Eval[float64](tab, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); err != nil || over > 0 {
		t.Errorf("%s: %v pixels wider than the window (%v)", what, over, err)
	}
	if n, err := Eval[int](tab, `document.querySelectorAll("*").length`); err != nil || n > 4000 {
		t.Errorf("%s: %d elements (%v)", what, n, err)
	}
	if size, err := Eval[string](tab, `getComputedStyle(document.body).fontFamily`); err != nil || !strings.Contains(size, "system-ui") {
		t.Errorf("%s: the style sheet is not in effect (%v)", what, err)
	}
}

// Landmarks, labels, headings and contrast, by axe-core.
func TestEveryPageIsAccessible(t *testing.T) {
	w, source := frozen(t), axe(t)
	for _, p := range w.pages(t) {
		for view, v := range views {
			err := w.browser.Open(w.url+p.path, v, func(tab *Tab) error {
				if _, err := Eval[bool](tab, `document.querySelectorAll("details").forEach(d => d.open = true), true`); err != nil {
					return err
				}
				found, err := tab.violations(source)
				for _, x := range found {
					t.Errorf("%s %s: %s", p.name, view, x)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// With the keyboard alone: past the navigation, and to a host by its name.
func TestByKeyboard(t *testing.T) {
	w := inWorld(t)
	h := w.edited()
	err := w.browser.Open(w.url+"/", views["light"], func(tab *Tab) error {
		if err := tab.Do(chromedp.KeyEvent(kb.Tab)); err != nil {
			return err
		}
		if first, err := Eval[string](tab, `document.activeElement.textContent`); err != nil || first != "Skip to the content" {
			t.Errorf("the first stop is %q (%v)", first, err)
		}
		if visible, err := Eval[bool](tab, `document.activeElement.getBoundingClientRect().left >= 0`); err != nil || !visible {
			t.Errorf("the first stop is not to be seen (%v)", err)
		}
		var err error
		focus := ""
		for range 12 {
			if err := tab.Do(chromedp.KeyEvent(kb.Tab)); err != nil {
				return err
			}
			if focus, err = Eval[string](tab, `document.activeElement.id`); err != nil || focus == "find" {
				break
			}
		}
		if focus != "find" || err != nil {
			t.Fatalf("the search is not reached: at %q (%v)", focus, err)
		}
		return tab.Do(chromedp.KeyEvent(h.FQDN+kb.Enter), chromedp.WaitReady(chromedp.CSS("svg.graph")))
	})
	if err != nil {
		t.Error(err)
	}
}

// A change appears by itself, above the others, and moves nothing that is above it;
// its trace opens.
func TestChangesAppear(t *testing.T) {
	w := inWorld(t)
	h := w.edited()
	err := w.browser.Open(w.url+"/", views["light"], func(tab *Tab) error {
		if _, err := Eval[bool](tab, `window.shifts = 0, new PerformanceObserver(l => l.getEntries().forEach(e => window.shifts += e.value)).observe({type: "layout-shift", buffered: false}), window.top0 = document.getElementById("changes").getBoundingClientRect().top, true`); err != nil {
			return err
		}
		const newest = `Number(document.querySelector("table.changes tbody td.num").textContent)`
		before, err := Eval[float64](tab, newest)
		if err != nil {
			return err
		}
		if err := w.edit(); err != nil {
			return err
		}
		err = proc.Until(t.Context(), "the change on the page", patience, func(context.Context) error {
			now, err := Eval[float64](tab, newest)
			if err == nil && now <= before {
				err = fmt.Errorf("still revision %v", now)
			}
			return err
		})
		if err != nil {
			return err
		}
		if what, err := Eval[string](tab, `document.querySelector("table.changes tbody tr").textContent`); err != nil || !strings.Contains(what, h.Name) {
			t.Errorf("the change says %q (%v)", what, err)
		}
		if moved, err := Eval[float64](tab, `Math.abs(document.getElementById("changes").getBoundingClientRect().top - window.top0)`); err != nil || moved > 0 {
			t.Errorf("the list moved by %v pixels (%v)", moved, err)
		}
		if shifts, err := Eval[float64](tab, `window.shifts`); err != nil || shifts > 0.1 {
			t.Errorf("layout shifts of %v (%v)", shifts, err)
		}
		return w.opensTrace(t, tab)
	})
	if err != nil {
		t.Error(err)
	}
}

func (w *world) opensTrace(t *testing.T, tab *Tab) error {
	t.Helper()
	if err := w.acknowledged(t.Context()); err != nil {
		return err
	}
	err := tab.Do(chromedp.Click(chromedp.CSS("table.changes tbody td.link a")), chromedp.WaitReady(chromedp.CSS("table.waterfall")))
	if err != nil {
		return err
	}
	text, err := Eval[string](tab, `document.querySelector("table.waterfall").textContent`)
	for _, want := range []string{"watch event", "commit", "response", "ack", "edge-1", "edge-2"} {
		if !strings.Contains(text, want) {
			t.Errorf("the waterfall lacks %q:\n%s", want, text)
		}
	}
	return err
}

// What one works with is not renewed under one's hands, and renewing can be paused.
func TestRenewingWaits(t *testing.T) {
	w := inWorld(t)
	err := w.browser.Open(w.url+"/", views["light"], func(tab *Tab) error {
		if err := tab.Do(chromedp.Click(chromedp.CSS("#live button"))); err != nil {
			return err
		}
		if text, err := Eval[string](tab, `document.getElementById("live").textContent`); err != nil || text != "Not renewed.Go on" {
			t.Errorf("paused, the page says %q (%v)", text, err)
		}
		const asked = `performance.getEntriesByType("resource").filter(r => r.initiatorType == "fetch").length`
		before, err := Eval[int](tab, asked)
		if err != nil {
			return err
		}
		return later(t, func() error {
			now, err := Eval[int](tab, asked)
			if now != before {
				t.Errorf("paused, it asked %d times more", now-before)
			}
			return err
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// later does something when the page would have renewed itself.
func later(t *testing.T, do func() error) error {
	t.Helper()
	timer := time.NewTimer(4 * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
		return do()
	case <-t.Context().Done():
		return t.Context().Err()
	}
}

// Without scripts the page says all the same, and how to renew it.
func TestWithoutScripts(t *testing.T) {
	w := frozen(t)
	v := views["light"]
	v.NoScript = true
	err := w.browser.Open(w.url+"/", v, func(tab *Tab) error {
		text, err := chromedp.Run(tab.ctx, chromedp.Text(chromedp.CSS("body")))
		for _, want := range []string{"edge-3 has not answered", "HTTPProxy", "complete", "nothing-of-that-name", "Recent changes", "Load it again"} {
			if !strings.Contains(text, want) {
				t.Errorf("without scripts the page lacks %q", want)
			}
		}
		if strings.Contains(text, "Pause") {
			t.Error("a button that can't work")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The frozen Envoy is on top of the page and of its list, with what waits for it.
func TestFrozenEnvoyIsSeen(t *testing.T) {
	w := frozen(t)
	err := w.browser.Open(w.url+"/", views["light"], func(tab *Tab) error {
		first, err := Eval[string](tab, `document.querySelector(".lead .finding").textContent`)
		if err != nil || !strings.Contains(first, "edge-3 has not answered for") {
			t.Errorf("first it says %q (%v)", first, err)
		}
		row, err := Eval[string](tab, `document.querySelector("[data-live=envoys] tbody tr").textContent`)
		if !strings.Contains(row, "edge-3") || !strings.Contains(row, "does not answer") {
			t.Errorf("the first Envoy is %q", row)
		}
		seen, err2 := Eval[bool](tab, `document.querySelector(".lead .finding").getBoundingClientRect().bottom < innerHeight`)
		if !seen || err2 != nil {
			t.Errorf("one has to scroll to see it (%v)", err2)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
