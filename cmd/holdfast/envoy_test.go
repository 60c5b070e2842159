package main

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A real Envoy, started with our bootstrap, takes our certificate and shows its
// own; and one that is told to expect another server does not connect.
func TestEnvoyConnectsWithMutualTLS(t *testing.T) {
	envoy, ca, dir := envoyBinary(t), newTestCA(t), t.TempDir()
	files := ca.serverFiles()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	ca.issue("edge-1", cert, key)
	p := startServe(t, "--source=dir:"+shopFolder(t), "--http-address="+freeAddress(t), "--https-address="+freeAddress(t),
		"--xds-tls-cert="+files.cert, "--xds-tls-key="+files.key, "--xds-client-ca="+files.clientCA)
	start := func(xds, node string) (log string) {
		log = filepath.Join(dir, node+".log")
		got := run(t.Context(), nil, "bootstrap", "--node-id="+node, "--xds-address="+xds, "--admin-address="+freeAddress(t),
			"--xds-ca="+files.clientCA, "--xds-client-cert="+cert, "--xds-client-key="+key)
		startEnvoy(t, envoy, filepath.Join(dir, node+".json"), got.stdout, log)
		return log
	}
	start(p.xds, "edge-1")
	misled := start(strings.Replace(p.xds, "127.0.0.1", "localhost", 1), "edge-2") // the certificate is not for that name
	var status string
	eventually(t, func() bool {
		status = p.get(t, "/status")
		return strings.Contains(status, `"node": "edge-1"`) && logContains(t, misled, "CERTIFICATE_VERIFY_FAILED")
	})
	if strings.Contains(status, "edge-2") || !strings.Contains(status, `"node": "edge-1"`) || !logContains(t, misled, "CERTIFICATE_VERIFY_FAILED") {
		b, _ := os.ReadFile(misled)
		t.Errorf("want edge-1 connected, and edge-2 not, which expects another server:\n%s\n%s", status, b)
	}
	p.stop(t, syscall.SIGTERM)
}

func logContains(t *testing.T, file, text string) bool {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may not have begun yet
		t.Fatal(err)
	}
	return strings.Contains(string(b), text)
}

func startEnvoy(t *testing.T, envoy, file, bootstrap, log string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(bootstrap), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(envoy, "-c", file, "--concurrency", "1", "--disable-hot-restart", "--log-path", log, "--file-flush-interval-msec", "50", "--component-log-level", "config:debug")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, as it was to be
	})
}

// freeAddress gives an address on which nothing listens at the moment.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
