package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

var update = flag.Bool("update", false, "write the golden files")

// The bootstrap is an interface: a change of its bytes is a change for users.
func TestBootstrapGolden(t *testing.T) {
	for name, args := range map[string][]string{
		"plain": {"--node-id=edge-1"},
		"mtls": {
			"--node-id=edge-1", "--xds-address=holdfast.edge.svc:8001", "--admin-address=[::1]:9901", "--stats=full", "--max-connections=0",
			"--xds-ca=/certs/ca.crt", "--xds-client-cert=/certs/tls.crt", "--xds-client-key=/certs/tls.key",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t.Context(), nil, append([]string{"bootstrap"}, args...)...)
			if got.code != exitOK {
				t.Fatal(got.stderr)
			}
			golden := filepath.Join("testdata", "bootstrap-"+name+".json")
			if *update {
				if err := os.WriteFile(golden, []byte(got.stdout), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got.stdout != string(want) {
				t.Errorf("differs from %s (%v); go test -update writes it anew\n%s", golden, err, got.stdout)
			}
		})
	}
}

// What Envoy must be told, or it comes up with nothing: see dynamicResources.
func TestBootstrapMakesEnvoyWait(t *testing.T) {
	got := run(t.Context(), nil, "bootstrap", "--node-id=edge-1")
	var b bootstrapv3.Bootstrap
	if err := protojson.Unmarshal([]byte(got.stdout), &b); err != nil {
		t.Fatal(err)
	}
	if err := b.ValidateAll(); err != nil {
		t.Error(err)
	}
	d := b.GetDynamicResources()
	for name, timeout := range map[string]interface{ GetSeconds() int64 }{
		"lds_config": d.GetLdsConfig().InitialFetchTimeout, "cds_config": d.GetCdsConfig().InitialFetchTimeout,
	} {
		if timeout == nil || timeout.GetSeconds() != 0 {
			t.Errorf("%s: initial_fetch_timeout is %v, want 0s", name, timeout)
		}
	}
}

// envoyBinary gives the real Envoy, or skips the test.
func envoyBinary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("HOLDFAST_TEST_ENVOY")
	if path == "" {
		t.Skip("HOLDFAST_TEST_ENVOY names no Envoy; make test gets one and sets it")
	}
	return path
}

func TestEnvoyAcceptsTheBootstrap(t *testing.T) {
	envoy := envoyBinary(t)
	ca, dir := newTestCA(t), t.TempDir()
	caFile, cert, key := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	ca.writeCA(caFile)
	ca.issue("edge-1", cert, key)
	for name, args := range map[string][]string{
		"plain":     nil,
		"name":      {"--xds-address=holdfast.edge.svc:8001"},
		"ipv6":      {"--xds-address=[::1]:8001", "--admin-address=[::1]:9901"},
		"full":      {"--stats=full"},
		"unlimited": {"--max-connections=0"},
		"mtls":      {"--xds-ca=" + caFile, "--xds-client-cert=" + cert, "--xds-client-key=" + key},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t.Context(), nil, append([]string{"bootstrap", "--node-id=edge-1"}, args...)...)
			file := filepath.Join(t.TempDir(), "envoy.json")
			if err := os.WriteFile(file, []byte(got.stdout), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), envoy, "--mode", "validate", "-c", file).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, "[warning]") {
					t.Errorf("Envoy warns: %s", line)
				}
			}
		})
	}
}

func TestBootstrapBytesAreStable(t *testing.T) {
	first := run(t.Context(), nil, "bootstrap", "--node-id=edge-1").stdout
	for range 20 {
		if again := run(t.Context(), nil, "bootstrap", "--node-id=edge-1").stdout; !bytes.Equal([]byte(first), []byte(again)) {
			t.Fatalf("differs:\n%s", again)
		}
	}
}
