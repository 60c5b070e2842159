package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-xds/holdfast/admin"
	"github.com/holdfast-xds/holdfast/tracing"
)

const clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

const shop = `
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {namespace: shop, name: cart}
spec:
  virtualhost: {fqdn: cart.test}
  routes:
  - services: [{name: cart, port: 80}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {namespace: shop, name: broken}
spec:
  virtualhost: {fqdn: broken.test}
  routes:
  - services: [{name: nothing, port: 80}]
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: cart}
spec:
  ports: [{name: http, port: 80, protocol: TCP, targetPort: 8080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shop, name: cart-1, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
- addresses: [192.0.2.10]
  conditions: {ready: true}
`

// shopFolder gives a folder with one host that works and one that does not.
func shopFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "shop.yaml"), []byte(shop), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// process is a holdfast serve of its own process.
type process struct {
	cmd         *exec.Cmd
	xds, admin  string
	loggedLines chan []string // what it logged after "serving", once it has ended
}

// startServe runs holdfast serve and waits until its ports are open.
func startServe(t *testing.T, args ...string) *process {
	t.Helper()
	args = append([]string{"serve", "--xds-address=127.0.0.1:0", "--admin-address=127.0.0.1:0", "--log-format=json"}, args...)
	p := &process{cmd: exec.Command(os.Args[0], args...), loggedLines: make(chan []string, 1)}
	p.cmd.Env = append(os.Environ(), asHoldfast+"=1")
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	lines := bufio.NewScanner(stderr)
	var seen []string
	for p.xds == "" {
		if !lines.Scan() {
			t.Fatalf("holdfast ended before it served:\n%s", strings.Join(seen, "\n"))
		}
		seen = append(seen, lines.Text())
		p.readLine(t, lines.Bytes())
	}
	go func() {
		for lines.Scan() {
			seen = append(seen, lines.Text())
		}
		p.loggedLines <- seen
	}()
	return p
}

func (p *process) readLine(t *testing.T, line []byte) {
	t.Helper()
	var entry struct{ Msg, XDS, Admin string }
	if err := json.Unmarshal(line, &entry); err != nil {
		t.Fatalf("a log line that is not JSON: %s", line)
	}
	if entry.Msg == "serving" {
		p.xds, p.admin = entry.XDS, entry.Admin
	}
}

func (p *process) get(t *testing.T, path string) string {
	t.Helper()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(p.admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// eventually looks again and again, until what is waited for is so or the time is
// up; the caller tells which.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	again, limit := time.NewTicker(20*time.Millisecond), time.After(30*time.Second)
	defer again.Stop()
	for !so() {
		select {
		case <-again.C:
		case <-limit:
			return
		}
	}
}

// stop sends a signal and gives the exit code, how long it took, and the log.
func (p *process) stop(t *testing.T, signal os.Signal) (code int, took time.Duration, log string) {
	t.Helper()
	began := time.Now()
	if err := p.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	seen := <-p.loggedLines
	_ = p.cmd.Wait() // the exit code says it
	return p.cmd.ProcessState.ExitCode(), time.Since(began), strings.Join(seen, "\n")
}

// xdsClient is the least of an Envoy.
type xdsClient struct {
	t      *testing.T
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
}

func connect(t *testing.T, address string, creds credentials.TransportCredentials) *xdsClient {
	t.Helper()
	c, err := dial(t, address, creds)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func dial(t *testing.T, address string, creds credentials.TransportCredentials) (*xdsClient, error) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(func() {
		cancel()
		_ = conn.Close()
	})
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	return &xdsClient{t, stream}, err
}

// clusters subscribes to all clusters and gives the names of the first response.
func (c *xdsClient) clusters() []string {
	c.t.Helper()
	c.send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "edge-1"}, TypeUrl: clusterType})
	return c.receive()
}

// receive takes a response, acknowledges it, and gives the names in it.
func (c *xdsClient) receive() []string {
	c.t.Helper()
	resp, err := c.stream.Recv()
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusterType, ResponseNonce: resp.GetNonce()})
	var names []string
	for _, r := range resp.GetResources() {
		names = append(names, r.GetName())
	}
	return names
}

func (c *xdsClient) send(req *discoveryv3.DeltaDiscoveryRequest) {
	c.t.Helper()
	if err := c.stream.Send(req); err != nil {
		c.t.Fatal(err)
	}
}

// HF-12, CC-03: from a folder to an Envoy, what people can see meanwhile, and the
// end: within a second, though a stream is open.
func TestServe(t *testing.T) {
	p := startServe(t, "--source=dir:"+shopFolder(t))
	envoy := connect(t, p.xds, insecure.NewCredentials())
	if names := envoy.clusters(); len(names) != 1 || !strings.Contains(names[0], "shop/cart") {
		t.Errorf("clusters: %q", names)
	}
	if ready := p.get(t, "/readyz?complete"); !strings.HasSuffix(ready, "\nready\n") {
		t.Errorf("readyz:\n%s", ready)
	}
	checkStatusOfShop(t, p)
	if text := run(t.Context(), nil, "status", "--admin-address="+strings.TrimPrefix(p.admin, "http://")); text.code != exitOK || !strings.Contains(text.stdout, "edge-1") {
		t.Errorf("holdfast status: %+v", text)
	}
	code, took, log := p.stop(t, syscall.SIGTERM)
	if code != 0 || took > time.Second {
		t.Errorf("SIGTERM: exit code %d after %s", code, took)
	}
	if n := strings.Count(log, `"object":"HTTPProxy shop/broken"`); n != 1 {
		t.Errorf("the problem of HTTPProxy shop/broken was logged %d times", n)
	}
	if t.Failed() {
		t.Log(log)
	}
}

func checkStatusOfShop(t *testing.T, p *process) {
	t.Helper()
	var st admin.Status
	if err := json.Unmarshal([]byte(p.get(t, "/status")), &st); err != nil {
		t.Fatal(err)
	}
	if len(st.Streams) != 1 || st.Streams[0].Node != "edge-1" || !st.Complete || len(st.Problems) != 1 {
		t.Errorf("status: %+v", st)
	}
}

// CC-01: an Envoy shows a certificate, or is not answered.
func TestServeWithMutualTLS(t *testing.T) {
	ca, dir := newTestCA(t), t.TempDir()
	files := ca.serverFiles()
	p := startServe(t, "--source=dir:"+shopFolder(t), "--xds-tls-cert="+files.cert, "--xds-tls-key="+files.key, "--xds-client-ca="+files.clientCA)
	client := ca.issue("edge-1", filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if names := connect(t, p.xds, clientCredentials(ca, client)).clusters(); len(names) != 1 {
		t.Errorf("clusters: %q", names)
	}
	stranger, err := dial(t, p.xds, clientCredentials(ca))
	if err == nil {
		_, err = stranger.stream.Recv()
	}
	if err == nil {
		t.Error("a client without a certificate was answered")
	}
	if code, took, log := p.stop(t, os.Interrupt); code != 0 || took > time.Second {
		t.Errorf("SIGINT: exit code %d after %s\n%s", code, took, log)
	}
}

const secondHost = `
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {namespace: shop, name: second}
spec:
  virtualhost: {fqdn: second.test}
  routes:
  - services: [{name: cart, port: 80, protocol: h2c}]
`

// HF-09: a change is one trace, from the folder's event to the client's ACK.
func TestServeTracesAChange(t *testing.T) {
	folder := shopFolder(t)
	p := startServe(t, "--source=dir:"+folder)
	envoy := connect(t, p.xds, insecure.NewCredentials())
	envoy.clusters()
	if err := os.WriteFile(filepath.Join(folder, "second.yaml"), []byte(secondHost), 0o600); err != nil {
		t.Fatal(err)
	}
	envoy.receive()
	var names string
	eventually(t, func() bool {
		names = spansOf(t, p, "HTTPProxy shop/second")
		return strings.Contains(names, tracing.SpanAck)
	})
	want := strings.Join([]string{tracing.SpanWatchEvent, tracing.SpanCommit, tracing.SpanDerive, tracing.SpanDerive, tracing.SpanResponse, tracing.SpanAck}, " ")
	if names != want {
		t.Errorf("spans: %s\nwant:  %s", names, want)
	}
	p.stop(t, syscall.SIGTERM)
}

// spansOf gives the names of the spans of the trace that is about an object.
func spansOf(t *testing.T, p *process, object string) string {
	t.Helper()
	var traces []struct {
		Spans []struct {
			Name       string
			Attributes map[string]string
		}
	}
	if err := json.Unmarshal([]byte(p.get(t, "/traces")), &traces); err != nil {
		t.Fatal(err)
	}
	for _, x := range traces {
		if strings.Contains(x.Spans[0].Attributes[string(tracing.AttrObjectName)], object) {
			names := make([]string, 0, len(x.Spans))
			for _, s := range x.Spans {
				names = append(names, s.Name)
			}
			return strings.Join(names, " ")
		}
	}
	return ""
}

const deadCluster = `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
`

// An API server that cannot be reached is asked again; meanwhile Envoys can
// connect, and people can see why nothing comes.
func TestServeWithoutAnAPIServer(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(deadCluster), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startServe(t, "--kubeconfig="+kubeconfig)
	envoy := connect(t, p.xds, insecure.NewCredentials())
	envoy.send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "edge-1"}, TypeUrl: clusterType})
	var ready string
	eventually(t, func() bool {
		ready = p.get(t, "/readyz")
		return strings.Contains(ready, "connection refused")
	})
	if !strings.Contains(ready, "[-] kind Service") || !strings.Contains(ready, "connection refused") || !strings.HasSuffix(ready, "\nready\n") {
		t.Errorf("readyz:\n%s", ready)
	}
	if code, took, log := p.stop(t, syscall.SIGTERM); code != 0 || took > time.Second {
		t.Errorf("SIGTERM: exit code %d after %s\n%s", code, took, log)
	}
}
