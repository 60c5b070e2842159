package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// asHoldfast makes the test binary be holdfast, so that a test can send signals
// to a real process.
const asHoldfast = "HOLDFAST_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asHoldfast) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// ran is what a command line came to.
type ran struct {
	code           int
	stdout, stderr string
}

// run runs a command line with the given environment.
func run(ctx context.Context, env map[string]string, args ...string) ran {
	var out, err bytes.Buffer
	a := app{
		stdout: &out, stderr: &err,
		lookupEnv: func(k string) (string, bool) { v, ok := env[k]; return v, ok },
		hostname:  func() (string, error) { return "", errors.New("no host name") },
	}
	code := a.run(ctx, args)
	return ran{code, out.String(), err.String()}
}

// What is wrong with a command line is said in one line, which names the flag.
func TestErrorsAreOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	busy, folder := taken.Addr().String(), t.TempDir()
	aFile := filepath.Join(folder, "file")
	if err := os.WriteFile(aFile, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"sevre", exitUsage, `unknown command "sevre"`},
		{"serve --no-such-flag", exitUsage, "--no-such-flag"},
		{"serve extra", exitUsage, "extra"},
		{"serve --source=etcd", exitUsage, "--source"},
		{"serve --source=dir:", exitUsage, "--source"},
		{"serve --source=dir:/no/such/folder", exitFailed, "/no/such/folder"},
		{"serve --source=dir:" + aFile, exitFailed, "not a folder"},
		{"serve --source=dir:" + folder + " --kubeconfig=x", exitUsage, "--kubeconfig"},
		{"serve --kubeconfig=/no/such/kubeconfig", exitFailed, "/no/such/kubeconfig"},
		{"serve --xds-address=8001", exitUsage, "--xds-address"},
		{"serve --xds-address=127.0.0.1:99999", exitUsage, "99999"},
		{"serve --admin-address=x", exitUsage, "--admin-address"},
		{"serve --http-address=x --source=dir:" + folder, exitUsage, "http"},
		{"serve --fqdn-conflict=newest --source=dir:" + folder, exitUsage, "newest"},
		{"serve --fresh-envoy-wait=1", exitUsage, "--fresh-envoy-wait"},
		{"serve --fresh-envoy-wait=-1s", exitUsage, "--fresh-envoy-wait"},
		{"serve --log-level=loud", exitUsage, "--log-level"},
		{"serve --log-format=xml", exitUsage, "--log-format"},
		{"serve --xds-tls-cert=x", exitUsage, "--xds-tls-key"},
		{"serve --xds-client-ca=x", exitUsage, "--xds-tls-cert"},
		{"serve --xds-tls-cert=/no/x --xds-tls-key=/no/y --xds-client-ca=/no/z --source=dir:" + folder, exitFailed, "/no/x"},
		{"serve --xds-address=0.0.0.0:0", exitUsage, "--xds-insecure"},
		{"serve --xds-address=:0", exitUsage, "--xds-insecure"},
		{"serve --xds-address=0.0.0.0:0 --xds-tls-cert=x --xds-tls-key=y", exitUsage, "--xds-client-ca"},
		{"serve --xds-address=" + busy + " --source=dir:" + folder, exitFailed, "--xds-address"},
		{"serve --xds-address=127.0.0.1:0 --admin-address=" + busy + " --source=dir:" + folder, exitFailed, "--admin-address"},
		{"bootstrap --node-id=x --stats=some", exitUsage, "--stats"},
		{"bootstrap --node-id=x --xds-address=:1", exitUsage, "--xds-address"},
		{"bootstrap --node-id=x --admin-address=localhost:1", exitUsage, "--admin-address"},
		{"bootstrap --node-id=x --xds-ca=a", exitUsage, "--xds-client-cert and --xds-client-key"},
		{"bootstrap", exitFailed, "--node-id"},
		{"status --output=yaml", exitUsage, "--output"},
		{"status --admin-address=127.0.0.1:1", exitFailed, "nothing listens on 127.0.0.1:1"},
		{"translate", exitUsage, "PATH"},
		{"translate /no/such/path", exitFailed, "/no/such/path"},
		{"translate -o xml " + folder, exitUsage, "--output"},
	} {
		got := run(t.Context(), nil, strings.Fields(c.args)...)
		if got.code != c.code || strings.Count(got.stderr, "\n") != 1 || !strings.HasPrefix(got.stderr, "holdfast: ") || !strings.Contains(got.stderr, c.says) || got.stdout != "" {
			t.Errorf("holdfast %s: exit code %d (want %d), stdout %q, stderr:\n%s", c.args, got.code, c.code, got.stdout, got.stderr)
		}
	}
}

func TestEnvironment(t *testing.T) {
	env := map[string]string{"HOLDFAST_BOOTSTRAP_NODE_ID": "from-env", "HOLDFAST_XDS_ADDRESS": "192.0.2.1:1", "HOLDFAST_BOOTSTRAP_STATS": ""}
	if got := run(t.Context(), env, "bootstrap"); !strings.Contains(got.stdout, `"id": "from-env"`) || strings.Contains(got.stdout, "192.0.2.1") {
		t.Errorf("a variable sets its flag, and no other: %+v", got)
	}
	if got := run(t.Context(), env, "bootstrap", "--node-id=from-flag"); !strings.Contains(got.stdout, `"id": "from-flag"`) {
		t.Errorf("a flag wins: %+v", got)
	}
	got := run(t.Context(), map[string]string{"HOLDFAST_FRESH_ENVOY_WAIT": "soon"}, "serve")
	if got.code != exitUsage || !strings.HasPrefix(got.stderr, `holdfast: HOLDFAST_FRESH_ENVOY_WAIT: invalid value "soon"`) || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("a bad variable: %+v", got)
	}
	got = run(t.Context(), map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "carrier-pigeon"}, "serve", "--source=dir:"+t.TempDir())
	if got.code != exitUsage || !strings.Contains(got.stderr, "OTEL_EXPORTER_OTLP_PROTOCOL") {
		t.Errorf("a bad OTEL_ variable: %+v", got)
	}
}

func TestHelpNamesEachVariable(t *testing.T) {
	for command, want := range map[string]string{
		"serve": "[$HOLDFAST_XDS_ADDRESS]", "bootstrap": "[$HOLDFAST_BOOTSTRAP_XDS_ADDRESS]",
		"status": "[$HOLDFAST_ADMIN_ADDRESS]", "translate": "[$HOLDFAST_ROOT_NAMESPACES]",
	} {
		got := run(t.Context(), nil, command, "--help")
		if got.code != exitOK || !strings.Contains(got.stdout, want) {
			t.Errorf("%s --help lacks %s: %+v", command, want, got)
		}
		for line := range strings.Lines(got.stdout) {
			if strings.Contains(line, "  --") && !strings.Contains(line, "[$") && !strings.Contains(line, "--help") {
				t.Errorf("%s: a flag without a variable: %s", command, line)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	if got := run(t.Context(), nil, "version"); got.code != exitOK || !strings.HasPrefix(got.stdout, "holdfast ") || !strings.Contains(got.stdout, "\ngo       go1.") {
		t.Errorf("%+v", got)
	}
}
