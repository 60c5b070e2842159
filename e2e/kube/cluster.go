// Package kube runs a real etcd and a real kube-apiserver for a test, without
// controllers and nodes: what is written stays as it is written.
//
//	holdfast ──▶ Gate ──▶ kube-apiserver ──▶ etcd
//	             delays, cuts and refuses the lists and watches of chosen kinds
//
// Two users exist: admin, who may do everything, and holdfast, who may read the
// kinds that AllowReading names. The programs listen on loopback; an API server
// refuses EndpointSlices with loopback addresses, so backends need another
// address (see Address).
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/holdfast-xds/holdfast/e2e/proc"
)

// Cluster is a running API server.
type Cluster struct {
	*Client // admin's

	Address   netip.AddrPort
	APIServer *proc.Process
	Etcd      *proc.Process
	folder    string
	reader    *Client // holdfast's

	group  *proc.Group
	config Config
	etcd   netip.AddrPort
}

// Config of a Cluster.
type Config struct {
	Binaries string // folder with etcd and kube-apiserver
	Folder   string // for data, certificates and kubeconfigs
	CRDs     []byte // a YAML stream of CustomResourceDefinitions
}

// startLimit is long: on a busy machine an API server takes its time.
const startLimit = 2 * time.Minute

// Start starts both programs, installs the CRDs and waits until they are served.
func Start(ctx context.Context, g *proc.Group, c Config) (*Cluster, error) {
	ports, err := proc.FreePorts(netip.MustParseAddr("127.0.0.1"), 3)
	if err != nil {
		return nil, err
	}
	k := &Cluster{Address: ports[2], folder: c.Folder, group: g, config: c, etcd: ports[0]}
	if k.Etcd, err = startEtcd(g, c, ports[0], ports[1]); err != nil {
		return nil, err
	}
	if k.APIServer, err = startAPIServer(g, c, ports[0], k.Address); err != nil {
		return nil, err
	}
	if k.Client, err = newClient(k.restConfig(adminToken)); err != nil {
		return nil, err
	}
	if k.reader, err = newClient(k.restConfig(holdfastToken)); err != nil {
		return nil, err
	}
	if err := proc.Until(ctx, "API server ready", startLimit, k.ready); err != nil {
		return nil, err
	}
	return k, k.InstallCRDs(ctx)
}

// StartAPIServer starts it again, on the same address and the same etcd, after
// its end, and waits until it is ready.
func (k *Cluster) StartAPIServer(ctx context.Context) error {
	p, err := startAPIServer(k.group, k.config, k.etcd, k.Address)
	if err != nil {
		return err
	}
	k.APIServer = p
	return proc.Until(ctx, "API server ready", startLimit, k.ready)
}

// InstallCRDs installs the CRDs of the Config and waits until they are served.
func (k *Cluster) InstallCRDs(ctx context.Context) error { return k.installCRDs(ctx, k.config.CRDs) }

// RemoveCRD deletes a CustomResourceDefinition, with which all its objects go,
// and waits until it is gone.
func (k *Cluster) RemoveCRD(ctx context.Context, name string) error {
	gvk := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	r := k.resource(gvk, "")
	if err := r.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete CRD %s: %w", name, err)
	}
	return proc.Until(ctx, "CRD "+name+" gone", startLimit, func(ctx context.Context) error {
		switch _, err := r.Get(ctx, name, metav1.GetOptions{}); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New("still there")
	})
}

// Compact makes etcd forget all revisions before the present one, by its JSON
// gateway.
func (k *Cluster) Compact(ctx context.Context) error {
	var now struct{ Header struct{ Revision string } }
	if err := k.askEtcd(ctx, "/v3/kv/range", `{"key":"aG9sZGZhc3Q="}`, &now); err != nil {
		return err
	}
	return k.askEtcd(ctx, "/v3/kv/compaction", fmt.Sprintf(`{"revision":%q,"physical":true}`, now.Header.Revision), &now)
}

func (k *Cluster) askEtcd(ctx context.Context, path, question string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+k.etcd.String()+path, strings.NewReader(question))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("etcd %s: %w", path, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd %s: %s", path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

func startEtcd(g *proc.Group, c Config, client, peer netip.AddrPort) (*proc.Process, error) {
	return g.Start("etcd", filepath.Join(c.Binaries, "etcd"),
		"--data-dir="+filepath.Join(c.Folder, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=http://"+client.String(), "--advertise-client-urls=http://"+client.String(),
		"--listen-peer-urls=http://"+peer.String(), "--initial-advertise-peer-urls=http://"+peer.String(),
		"--initial-cluster=default=http://"+peer.String())
}

func startAPIServer(g *proc.Group, c Config, etcd, at netip.AddrPort) (*proc.Process, error) {
	key := filepath.Join(c.Folder, "service-accounts.key")
	tokens := filepath.Join(c.Folder, "tokens.csv")
	outside, err := Address()
	if err := errors.Join(err, writeKey(key), writeTokens(tokens)); err != nil {
		return nil, err
	}
	return g.Start("kube-apiserver", filepath.Join(c.Binaries, "kube-apiserver"),
		"--etcd-servers=http://"+etcd.String(),
		"--bind-address="+at.Addr().String(), fmt.Sprintf("--secure-port=%d", at.Port()),
		// Of the Service "kubernetes", which nobody uses; left alone, it looks for
		// a default route.
		"--advertise-address="+outside.String(), "--endpoint-reconciler-type=none",
		"--cert-dir="+filepath.Join(c.Folder, "certificates"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--token-auth-file="+tokens, "--authorization-mode=RBAC", "--service-cluster-ip-range=10.96.0.0/12",
		// No controllers run, so nothing would make the default service accounts.
		"--disable-admission-plugins=ServiceAccount",
		// Loading thousands of objects at once is the point.
		"--enable-priority-and-fairness=false", "--max-mutating-requests-inflight=0", "--max-requests-inflight=0")
}

func (k *Cluster) ready(ctx context.Context) error {
	if err := errors.Join(k.Etcd.Running(), k.APIServer.Running()); err != nil {
		return err
	}
	return k.get(ctx, "/readyz")
}

// restConfig of one user. The API server's certificate is made at its start
// and thrown away after: nothing to check it by.
func (k *Cluster) restConfig(token string) *rest.Config {
	return &rest.Config{
		Host: "https://" + k.Address.String(), BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1, // no limit of ours
	}
}

// Kubeconfig writes one for the user holdfast and gives its path. The server is
// the address of a Gate, or the API server itself when it is "".
func (k *Cluster) Kubeconfig(name, server string) (string, error) {
	if server == "" {
		server = "https://" + k.Address.String()
	}
	path := filepath.Join(k.folder, name+".kubeconfig")
	return path, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: holdfast, user: {token: %s}}]
contexts: [{name: test, context: {cluster: test, user: holdfast}}]
current-context: test
`, server, holdfastToken), 0o600)
}

// Address gives an address of this machine that an EndpointSlice may hold.
func Address() (netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().Is4() && p.Addr().IsGlobalUnicast() {
			return p.Addr(), nil
		}
	}
	return netip.Addr{}, errors.New("this machine has no address but loopback, which an API server refuses in an EndpointSlice")
}

func (c *Client) get(ctx context.Context, path string) error {
	status, err := c.status(ctx, path)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s: status %d", path, status)
	}
	return err
}

func (c *Client) status(ctx context.Context, path string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.host+path, nil)
	if err != nil {
		return 0, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body) // so that the connection can be used again
	return response.StatusCode, err
}
