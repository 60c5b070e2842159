package admin_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/holdfast-xds/holdfast/admin"
	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

// services is a rule set of two kinds: each Service makes a cluster.
type services struct{}

func (services) Kinds() []index.KindSpec {
	return []index.KindSpec{{Kind: "Service", Code: "S", Required: true}, {Kind: "HTTPProxy", Code: "P"}}
}

func (services) Types() []index.TypeSpec {
	return []index.TypeSpec{{URL: clusterType, Feeds: []index.Kind{"Service"}}}
}
func (services) Prepare(*index.Object)       {}
func (services) Roots() []index.DerivationID { return nil }
func (services) Rank(index.DerivationID) int { return 0 }
func (services) Subjects(o *index.Object) []index.DerivationID {
	return []index.DerivationID{index.DerivationID("cluster/" + o.Name)}
}

func (services) Derive(id index.DerivationID, _ any, r *index.Reader) {
	name := strings.TrimPrefix(string(id), "cluster/")
	o, presence := r.Get("Service", "shop", name)
	if presence != index.Found {
		return
	}
	r.Emit(index.Draft{Type: clusterType, Name: name, Body: []byte("body of " + name)})
	if name == "broken" {
		r.Problem(index.Problem{Object: o.ObjectKey, Severity: index.Error, Field: "spec.ports", Message: "there is no <port>"})
	}
}

// world is an admin server and all that it looks at.
type world struct {
	index   *index.Index
	streams []delta.StreamStatus
	serving bool
	now     time.Time
	ring    *tracing.Ring
	server  *admin.Server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ix, err := index.New(services{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{index: ix, serving: true, now: time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC), ring: tracing.NewRing(4)}
	w.server, err = admin.New(admin.Options{
		Version: "v1", Index: ix, Types: services{}.Types(), Traces: w.ring, Logger: slog.New(slog.DiscardHandler),
		Streams: func() []delta.StreamStatus { return w.streams },
		Serving: func() bool { return w.serving },
		Now:     func() time.Time { return w.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// started: two Services seen in a complete list, HTTPProxy forbidden.
func (w *world) started() {
	service := func(name string, v index.ResourceVersion) *index.Object {
		return &index.Object{ObjectKey: index.ObjectKey{Kind: "Service", Namespace: "shop", Name: name}, Version: v}
	}
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w.index.Apply(
		index.Cause{}, index.SourceID{ID: "c1"},
		index.Replace{Kind: "Service", Objects: []*index.Object{service("cart", 3), service("broken", 4)}, Version: 7},
		index.KindStatus{Kind: "Service", State: index.Observed, At: since},
		index.KindStatus{Kind: "HTTPProxy", State: index.Forbidden, Error: "httpproxies is forbidden", At: since},
	)
}

// envoy is a stream that holds one cluster and waits for the removal of others.
func envoy(id uint64, node string, withheld ...string) delta.StreamStatus {
	t := delta.TypeStatus{Type: clusterType, Wildcard: true, Held: 1, Responses: 2, Resources: 3, Bytes: 100, Acks: 2}
	for _, name := range withheld {
		t.Withheld = append(t.Withheld, delta.Withheld{
			Resource: index.ResourceKey{Type: clusterType, Name: name}, Action: "remove", Reason: "HTTPProxy is not complete",
			Missing: []index.Lack{{Kind: "HTTPProxy", Held: index.ResourceVersion(id)}}, Since: time.Unix(int64(1000-id), 0),
		})
	}
	return delta.StreamStatus{ID: id, Node: node, Peer: "192.0.2.1:1", Types: []delta.TypeStatus{t}}
}

func (w *world) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	rec := ask(w.server, httptest.NewRequest(http.MethodGet, path, nil))
	return rec.Code, rec.Body.String()
}

// ask asks as if the address in the browser were one on this machine.
func ask(s *admin.Server, r *http.Request) *httptest.ResponseRecorder {
	if r.Host == "example.com" { // httptest's default
		r.Host = "127.0.0.1:6060"
	}
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	return rec
}

func TestReadyNamesEachKindThatIsNotComplete(t *testing.T) {
	w := newWorld(t)
	w.started()
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/readyz": {200, "[+] xds listener is serving\n" +
			"[-] kind HTTPProxy forbidden, not complete: httpproxies is forbidden\nready\n"},
		"/readyz?verbose": {200, "[+] xds listener is serving\n[+] kind Service observed, complete up to 7\n" +
			"[-] kind HTTPProxy forbidden, not complete: httpproxies is forbidden\nready\n"},
		"/readyz?complete": {503, "[+] xds listener is serving\n" +
			"[-] kind HTTPProxy forbidden, not complete: httpproxies is forbidden\nnot ready\n"},
		"/healthz": {200, "ok\n"},
	} {
		if status, body := w.get(t, path); status != want.status || body != want.body {
			t.Errorf("%s: %d\n%s", path, status, body)
		}
	}
	w.serving = false
	if status, body := w.get(t, "/readyz"); status != 503 || !strings.HasPrefix(body, "[-] xds listener is not serving\n") {
		t.Errorf("while nothing is served: %d\n%s", status, body)
	}
}

func TestStatusIsWhatTheIndexAndTheStreamsSay(t *testing.T) {
	w := newWorld(t)
	w.started()
	w.streams = []delta.StreamStatus{envoy(1, "edge-1", "old", "older"), envoy(2, "edge-2", "old")}
	_, body := w.get(t, "/status")
	var st admin.Status
	if err := json.Unmarshal([]byte(body), &st); err != nil {
		t.Fatal(err)
	}
	if st.Version != "v1" || st.Source != "c1" || !st.Serving || st.Complete || st.Revision != w.index.Snapshot().Revision() {
		t.Errorf("head: %+v", st)
	}
	if k := st.Kinds[0]; k.Kind != "Service" || k.Frontier != "7" || k.Objects != 2 || !k.Complete {
		t.Errorf("Service: %+v", k)
	}
	if k := st.Kinds[1]; k.State != "forbidden" || k.Frontier != "" || k.Error != "httpproxies is forbidden" {
		t.Errorf("HTTPProxy: %+v", k)
	}
	if len(st.Resources) != 1 || st.Resources[0] != (admin.TypeCount{Type: clusterType, Resources: 2}) {
		t.Errorf("resources: %+v", st.Resources)
	}
	if len(st.Problems) != 1 || st.Problems[0].Field != "spec.ports" {
		t.Errorf("problems: %+v", st.Problems)
	}
	if len(st.Streams) != 2 || st.Streams[1].Node != "edge-2" {
		t.Errorf("streams: %+v", st.Streams)
	}
	checkWithheld(t, st.Withheld)
}

// Three removals that two Envoys wait for make one line.
func checkWithheld(t *testing.T, got []admin.Withheld) {
	t.Helper()
	if len(got) != 1 {
		t.Fatalf("withheld: %+v", got)
	}
	x := got[0]
	if x.Count != 3 || x.Envoys != 2 || strings.Join(x.Resources, " ") != "old older" || !x.Since.Equal(time.Unix(998, 0)) {
		t.Errorf("withheld: %+v", x)
	}
	if len(x.Missing) != 1 || x.Missing[0].Kind != "HTTPProxy" || x.Missing[0].Held != 2 {
		t.Errorf("missing: %+v", x.Missing)
	}
}

func TestStatusIsBounded(t *testing.T) {
	w := newWorld(t)
	names := make([]string, 5000)
	for i := range names {
		names[i] = strings.Repeat("x", i%50+1)
	}
	w.streams = []delta.StreamStatus{envoy(1, "edge-1", names...)}
	st := w.server.Status()
	if n := len(st.Streams[0].Types[0].Withheld); n != 100 {
		t.Errorf("%d withheld resources are listed for a stream", n)
	}
	if st.Withheld[0].Count != 5000 || len(st.Withheld[0].Resources) != 10 {
		t.Errorf("sum: %d, %d names", st.Withheld[0].Count, len(st.Withheld[0].Resources))
	}
	if n := len(w.streams[0].Types[0].Withheld); n != 5000 {
		t.Errorf("the stream's own status was cut to %d", n)
	}
}

func TestPageShowsWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	w.started()
	w.streams = []delta.StreamStatus{envoy(1, "edge-1", "old")}
	status, body := w.get(t, "/")
	if status != 200 {
		t.Fatalf("%d\n%s", status, body)
	}
	for _, want := range []string{"edge-1", "httpproxies is forbidden", "<strong>HTTPProxy</strong> up to 1", "Service shop/broken", "there is no &lt;port&gt;"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}

func TestTraces(t *testing.T) {
	w := newWorld(t)
	if status, body := w.get(t, "/traces"); status != 200 || strings.TrimSpace(body) != "[]" {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := w.get(t, "/traces?limit=many"); status != 400 {
		t.Errorf("a limit that is no number: %d", status)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Serve(ctx, l) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + l.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "ok\n" {
		t.Errorf("%s, %v", body, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestPageShowsRecentChanges(t *testing.T) {
	w := newWorld(t)
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.ring))
	_, span := p.Tracer("").Start(t.Context(), tracing.SpanWatchEvent,
		trace.WithAttributes(tracing.AttrObjectName.StringSlice([]string{"Service shop/cart", "Secret shop/tls"})))
	span.End()
	if _, body := w.get(t, "/traces"); !strings.Contains(body, `"name": "holdfast.watch_event"`) {
		t.Errorf("%s", body)
	}
}
