package admin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/admin"
)

// A name that leads here by somebody else's DNS gets no answer: a page of that
// name could read it.
func TestOnlyKnownHostsAreAnswered(t *testing.T) {
	w := newLive(t, func(o *admin.Options) { o.Hosts = []string{"holdfast.edge.svc"} })
	for host, status := range map[string]int{
		"127.0.0.1:6060": 200, "[::1]:6060": 200, "10.1.2.3:6060": 200, "10.1.2.3": 200, "localhost:6060": 200, "LOCALHOST": 200, "localhost.:6060": 200, "": 200,
		"holdfast.edge.svc:6060": 200, "Holdfast.Edge.svc": 200,
		"evil.example:6060": 421, "evil.example": 421, "127.0.0.1.evil.example": 421, "localhost.evil.example:80": 421, "evil.example:6060:1": 421,
	} {
		for _, path := range []string{"/", "/status", "/healthz", "/metrics", "/debug/pprof/", "/static/page.js"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = host
			if rec := ask(w.server, r); rec.Code != status {
				t.Errorf("host %q, %s: %d, want %d", host, path, rec.Code, status)
			}
		}
	}
}

func TestHeadersKeepTheBrowserSafe(t *testing.T) {
	w := newLive(t, nil)
	for _, path := range []string{"/", "/status", "/view/hosts", "/nothing", "/static/page.css", "/explain?q=x"} {
		h := ask(w.server, httptest.NewRequest(http.MethodGet, path, nil)).Header()
		policy := h.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || h.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

// Everything but release only reads.
func TestOnlyReleaseIsPosted(t *testing.T) {
	w := newLive(t, nil)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		for _, path := range []string{"/", "/status", "/explain?q=x", "/holdings?node=x", "/traces", "/metrics", "/view/hosts", "/healthz", "/readyz"} {
			if rec := ask(w.server, httptest.NewRequest(method, path, nil)); rec.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, path, rec.Code)
			}
		}
	}
	if rec := ask(w.server, httptest.NewRequest(http.MethodGet, "/release", nil)); rec.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET /release: %d", rec.Code)
	}
}

const testToken = "a token that nobody guesses"

// What changes something needs the token where others reach the listener, and
// wherever one is set.
func TestRelease(t *testing.T) {
	var released []admin.Release
	release := func(_ context.Context, r admin.Release) (admin.Released, error) {
		if r.Type == "nonsense" {
			return admin.Released{}, errors.New("no such type")
		}
		released = append(released, r)
		return admin.Released{Count: 3, Message: "3 removals go"}, nil
	}
	for name, c := range map[string]struct {
		options func(*admin.Options)
		header  map[string]string
		body    string
		status  int
		answer  string
	}{
		"on loopback":                   {status: 200, answer: `"count": 3`},
		"nothing to release":            {options: func(o *admin.Options) { o.Release = nil }, status: 501, answer: "holds nothing back"},
		"exposed, without a token":      {options: exposed(""), status: 403, answer: "--admin-token-file"},
		"exposed, none given":           {options: exposed(testToken), status: 401, answer: "Authorization: Bearer"},
		"exposed, a wrong one":          {options: exposed(testToken), header: map[string]string{"Authorization": "Bearer " + testToken + "x"}, status: 401},
		"exposed, another scheme":       {options: exposed(testToken), header: map[string]string{"Authorization": "Basic " + testToken}, status: 401},
		"exposed, the right one":        {options: exposed(testToken), header: map[string]string{"Authorization": "Bearer " + testToken}, status: 200},
		"a form":                        {header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, status: 415},
		"without a type":                {header: map[string]string{"Content-Type": ""}, status: 415},
		"another site's page":           {header: map[string]string{"Origin": "http://evil.example"}, status: 403},
		"another site, says the header": {header: map[string]string{"Sec-Fetch-Site": "cross-site"}, status: 403},
		"another port of this machine":  {header: map[string]string{"Origin": "http://127.0.0.1:9999"}, status: 403},
		"our own page":                  {header: map[string]string{"Origin": "http://127.0.0.1:6060", "Sec-Fetch-Site": "same-origin"}, status: 200},
		"no body":                       {body: " ", status: 200},
		"not JSON":                      {body: "{", status: 400},
		"an unknown field":              {body: `{"all": true}`, status: 400, answer: "all"},
		"too long":                      {body: `{"reason": "` + strings.Repeat("x", 100_000) + `"}`, status: 400},
		"refused":                       {body: `{"type": "nonsense"}`, status: 409, answer: "no such type"},
	} {
		t.Run(name, func(t *testing.T) {
			released = nil
			w := newLive(t, func(o *admin.Options) {
				o.Release = release
				if c.options != nil {
					c.options(o)
				}
			})
			body := c.body
			if body == "" {
				body = `{"node": "edge-1", "reason": "planned"}`
			}
			r := httptest.NewRequest(http.MethodPost, "/release", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			for k, v := range c.header {
				r.Header.Set(k, v)
			}
			rec := ask(w.server, r)
			if rec.Code != c.status || !strings.Contains(rec.Body.String(), c.answer) {
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
			if (len(released) > 0) != (c.status == 200) {
				t.Errorf("released %v", released)
			}
			if strings.Contains(rec.Body.String(), testToken) {
				t.Error("the answer tells the token")
			}
		})
	}
}

func exposed(token string) func(*admin.Options) {
	return func(o *admin.Options) { o.Exposed, o.Token = true, token }
}

// Profiles cost much, so that they are for who has the token.
func TestProfilesNeedTheToken(t *testing.T) {
	w := newLive(t, exposed(testToken))
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine", "/debug/pprof/profile", "/debug/pprof/trace", "/debug/pprof/cmdline", "/debug/pprof/symbol"} {
		if rec := ask(w.server, httptest.NewRequest(http.MethodGet, path, nil)); rec.Code != 401 {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/debug/pprof/cmdline", nil)
	r.Header.Set("Authorization", "Bearer "+testToken)
	if rec := ask(w.server, r); rec.Code != 200 {
		t.Errorf("with the token: %d", rec.Code)
	}
	for _, path := range []string{"/", "/status", "/healthz", "/metrics"} {
		if rec := ask(w.server, httptest.NewRequest(http.MethodGet, path, nil)); rec.Code != 200 {
			t.Errorf("%s needs a token", path)
		}
	}
}
