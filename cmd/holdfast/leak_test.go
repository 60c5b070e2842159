package main

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/holdfast-xds/holdfast/delta"
)

// sesame stands in a broken key, where no parser would look for one.
const sesame = "open-sesame-0451"

// secretShop is a host with a certificate, one whose key is broken, and a file that
// does not parse though it has a key in it.
func secretShop(t *testing.T) (dir string, cert, key []byte) {
	t.Helper()
	ca, dir := newTestCA(t), t.TempDir()
	certFile, keyFile := filepath.Join(dir, ".crt"), filepath.Join(dir, ".key")
	ca.issue("cart.test", certFile, keyFile)
	cert, key = readAll(t, certFile), readAll(t, keyFile)
	b64 := base64.StdEncoding.EncodeToString
	secret := func(name, crt, key string) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {namespace: shop, name: %s}\ndata: {tls.crt: %s, tls.key: %s, password: %s}\n", name, crt, key, b64([]byte(sesame)))
	}
	tlsHost := func(name string) string {
		return fmt.Sprintf("---\napiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {namespace: shop, name: %s-tls}\nspec:\n  virtualhost: {fqdn: %s-tls.test, tls: {secretName: %s}}\n  routes:\n  - services: [{name: cart, port: 80}]\n", name, name, name)
	}
	files := map[string]string{
		"shop.yaml":     shop + tlsHost("good") + tlsHost("broken") + secret("good", b64(cert), b64(key)),
		"broken.yaml":   secret("broken", b64(cert), b64([]byte("-----BEGIN PRIVATE KEY-----\n"+sesame+"\n-----END PRIVATE KEY-----\n"))),
		"garbage.yaml":  secret("garbage", "]"+sesame+"[", sesame) + "  " + sesame + ": [",
		"notbase.yaml":  secret("notbase", b64(cert), sesame+"!!"),
		"mistaken.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {namespace: shop, name: mistaken}\n" + sesame + ": x\ndata: " + sesame + "\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, cert, key
}

func readAll(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// planted are the forms in which a key could show.
func planted(key []byte) []string {
	block, _ := pem.Decode(key)
	body := strings.Split(strings.TrimSpace(string(key)), "\n")
	return []string{
		body[1], base64.StdEncoding.EncodeToString(key)[:40], base64.StdEncoding.EncodeToString(block.Bytes)[:40],
		"BEGIN PRIVATE KEY", "BEGIN EC PRIVATE KEY", base64.StdEncoding.EncodeToString([]byte(sesame))[:18], "sesame-0451",
	}
}

// Nothing that a person, a scraper or a collector of logs and traces sees has
// a private key in it, whatever an Envoy that rejects a Secret quotes. Not looked
// at is the memory of the process.
func TestNoPrivateKeyIsShownAnywhere(t *testing.T) {
	dir, _, key := secretShop(t)
	token := filepath.Join(t.TempDir(), "token")
	const word = "a-token-of-the-test-only"
	if err := os.WriteFile(token, []byte(word+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startServe(t, "--source=dir:"+dir, "--log-level=debug", "--admin-token-file="+token)
	rejectSecret(t, p)
	outputs := p.everything(t)
	_, _, outputs["the log"] = p.stop(t, syscall.SIGTERM)
	for what, text := range outputs {
		for _, x := range append(planted(key), word) {
			if strings.Contains(text, x) {
				t.Errorf("%s has %q in it:\n%s", what, x, excerpt(text, x))
			}
		}
	}
	for what, want := range map[string]string{"/status": "edge-1", "/": "rejects Secret shop/good", "the log": "envoy rejected a response", "/explain?q=secret/shop/good": "no such curve", "/holdings?node=edge-1": "edge-1"} {
		if !strings.Contains(outputs[what], want) {
			t.Errorf("%s lacks %q, so it proves nothing:\n%.2000s", what, want, outputs[what])
		}
	}
}

// rejectSecret is an Envoy that quotes the whole Secret, in every form there is.
func rejectSecret(t *testing.T, p *process) {
	t.Helper()
	c := connect(t, p.xds, insecure.NewCredentials())
	c.send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "edge-1"}, TypeUrl: delta.Secret, ResourceNamesSubscribe: []string{"shop/good"}})
	resp, err := c.stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var s tlsv3.Secret
	if err := resp.GetResources()[0].GetResource().UnmarshalTo(&s); err != nil {
		t.Fatal(err)
	}
	asJSON, err := protojson.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	words := "no such curve: " + prototext.Format(&s) + string(asJSON) + string(s.GetTlsCertificate().GetPrivateKey().GetInlineBytes())
	c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: delta.Secret, ResponseNonce: resp.GetNonce(), ErrorDetail: &statuspb.Status{Code: 13, Message: words}})
	c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusterType})
	eventually(t, func() bool { return strings.Contains(p.get(t, "/status"), "no such curve") })
}

// everything gives all that the admin listener and the commands say.
func (p *process) everything(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	paths := []string{
		"/", "/status", "/readyz?verbose", "/healthz", "/metrics", "/traces?limit=1000", "/holdings?node=edge-1",
		"/view/hosts", "/view/envoys", "/view/problems", "/view/changes", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2",
	}
	names := []string{"vhost/good-tls.test", "vhost/broken-tls.test", "secret/shop/good", "sds/shop/good", "secret/shop/broken", "secret/shop/garbage", "listener/ingress_https", "HTTPProxy/shop/good-tls", sesame[:4]}
	for _, n := range names {
		paths = append(paths, "/explain?q="+n, "/view/explain?q="+url.QueryEscape(n), "/view/search?q="+n)
	}
	for _, path := range paths {
		out[path] = p.get(t, path)
	}
	for _, id := range traceIDs(out["/traces?limit=1000"]) {
		out["trace "+id] = p.get(t, "/view/trace?id="+id)
	}
	admin := "--admin-address=" + strings.TrimPrefix(p.admin, "http://")
	for _, format := range []string{"-otext", "-ojson"} {
		r := run(t.Context(), nil, "status", admin, format)
		out["status "+format] = r.stdout + r.stderr
		for _, n := range names {
			r := run(t.Context(), nil, "explain", admin, format, n)
			out["explain "+n+format] = r.stdout + r.stderr
		}
		r = run(t.Context(), nil, "diff", admin, format, "--envoy-admin="+fakeEnvoy(t, "edge-1"))
		out["diff "+format] = r.stdout + r.stderr
	}
	return out
}

func traceIDs(traces string) []string {
	var out []string
	for line := range strings.Lines(traces) {
		if id, ok := strings.CutPrefix(line, `    "id": "`); ok {
			out = append(out, strings.Trim(id, "\", \n"))
		}
	}
	return out
}

// excerpt gives what is around the first place.
func excerpt(text, x string) string {
	i := strings.Index(text, x)
	return text[max(0, i-200):min(len(text), i+100)]
}
