package e2e

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"testing"
	"time"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-xds/holdfast/e2e/envoy"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/rig"
)

// fault is bad input: what it harms, and how it ends.
type fault struct {
	object string // as holdfast names it
	field  string
	undo   func() error
}

// badInput: it harms the object that it is in and nothing else; other hosts go
// on, later changes flow, and the log and the status name the object.
func badInput(t *testing.T, w *world) {
	for _, b := range []struct {
		name string
		do   func(*testing.T, *world) fault
	}{
		{"a file that does not parse", unparsable},
		{"a host's file that no longer parses", brokenFile},
		{"a Secret with another's key", mismatchedKey},
		{"a new host with another's key", newMismatchedKey},
		{"an invalid regex", invalidRegex},
		{"a duplicate fqdn", duplicateFQDN},
	} {
		t.Run(b.name, func(t *testing.T) {
			before := w.moment(t)
			traffic := w.background(t)
			f := b.do(t, w)
			w.isTold(t, f)
			w.stillFlows(t)
			unharmed(t, traffic)
			if err := w.lost(t, before); err != nil {
				t.Error(err)
			}
			if err := f.undo(); err != nil {
				t.Fatal(err)
			}
			if s := w.settle(t); s.Problem(f.object, f.field) != nil {
				t.Errorf("%s is mended, and still a problem", f.object)
			}
		})
	}
	w.sweep(t)
}

// lost gives an error for what is gone from Envoy.
func (w *world) lost(t *testing.T, before rig.Moment) error {
	now := w.moment(t)
	var errs []error
	for _, k := range envoy.Kinds {
		if names := now.Holdings.Lost(before.Holdings, k); len(names) > 0 {
			errs = append(errs, fmt.Errorf("%d %s lost: %v", len(names), k, names[:min(3, len(names))]))
		}
	}
	return errors.Join(errs...)
}

// isTold waits until the status tells of the fault, and looks for it in the log.
func (w *world) isTold(t *testing.T, f fault) {
	t.Helper()
	what := f.object + " " + f.field
	if _, err := w.Holdfast.Await(t.Context(), what+" in the status", 15*time.Second, func(s *status) error {
		if s.Problem(f.object, f.field) == nil {
			return fmt.Errorf("only %+v", s.Problems)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if n, err := w.Holdfast.Logged(f.object, f.field); err != nil || n == 0 {
		t.Errorf("no line of the log names %s (%v)", what, err)
	}
}

// stillFlows adds a host and removes it.
func (w *world) stillFlows(t *testing.T) {
	t.Helper()
	h := w.freshHost(false)
	watch := w.watch(t, &h)
	defer watch.Stop()
	until(t, watch, "404")
	if err := fixture.WriteHost(w.folder, &h); err != nil {
		t.Fatal(err)
	}
	until(t, watch, "200")
	if err := fixture.RemoveHost(w.folder, &h); err != nil {
		t.Error(err)
	}
}

func unparsable(t *testing.T, w *world) fault {
	if err := fixture.WriteRaw(w.folder, "unparsable", []byte("kind: [HTTPProxy\n  no: yaml")); err != nil {
		t.Fatal(err)
	}
	return fault{"File unparsable.yaml", "", func() error { return fixture.Remove(w.folder, "unparsable") }}
}

// brokenFile: the host stays as it was last good.
func brokenFile(t *testing.T, w *world) fault {
	h := &w.hosts[17]
	if err := fixture.WriteRaw(w.folder, fixture.FileOf(h), []byte("apiVersion: v1\n\tkind: Service")); err != nil {
		t.Fatal(err)
	}
	return fault{"File " + fixture.FileOf(h) + ".yaml", "", func() error { return fixture.WriteHost(w.folder, h) }}
}

// mismatchedKey: the host keeps its last good certificate.
func mismatchedKey(t *testing.T, w *world) fault {
	h := hostOf(w.hosts, true)
	broken := w.withKeyOf(t, *h, "stranger.example")
	if err := fixture.WriteHost(w.folder, &broken); err != nil {
		t.Fatal(err)
	}
	return fault{"Secret " + h.Namespace + "/" + h.Name, "data", func() error { return fixture.WriteHost(w.folder, h) }}
}

// newMismatchedKey: there is no good certificate, so no handshake.
func newMismatchedKey(t *testing.T, w *world) fault {
	h := w.withKeyOf(t, w.freshHost(true), "stranger.example")
	if err := fixture.WriteHost(w.folder, &h); err != nil {
		t.Fatal(err)
	}
	return fault{"Secret " + h.Namespace + "/" + h.Name, "data", func() error { return fixture.RemoveHost(w.folder, &h) }}
}

// withKeyOf gives the host with another name's private key in its Secret.
func (w *world) withKeyOf(t *testing.T, h fixture.Host, other string) fixture.Host {
	t.Helper()
	certificate, own := w.Generator.Certificate(h.FQDN)
	_, key := w.Generator.Certificate(other)
	if _, err := tls.X509KeyPair(certificate, key); err == nil || bytes.Equal(own, key) {
		t.Fatal("the key fits")
	}
	objects := append([]fixture.Object(nil), h.Objects...)
	for i, o := range objects {
		if o.GetObjectKind().GroupVersionKind().Kind == "Secret" {
			objects[i] = fixture.TLSSecret(h.Namespace, h.Name, certificate, key)
		}
	}
	h.Objects = objects
	return h
}

func invalidRegex(t *testing.T, w *world) fault {
	h := w.freshHost(false)
	proxyOf(&h).Spec.Routes[0].Conditions = []contourv1.MatchCondition{{Regex: "/[a-"}}
	if err := fixture.WriteHost(w.folder, &h); err != nil {
		t.Fatal(err)
	}
	return fault{"HTTPProxy " + h.Namespace + "/" + h.Name, "spec.routes[0].conditions", func() error { return fixture.RemoveHost(w.folder, &h) }}
}

// duplicateFQDN: the older one keeps the host.
func duplicateFQDN(t *testing.T, w *world) fault {
	owner, h := &w.hosts[20], w.freshHost(false)
	p := proxyOf(&h)
	p.Spec.VirtualHost.Fqdn = owner.FQDN
	p.CreationTimestamp = metav1.NewTime(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
	if err := fixture.WriteHost(w.folder, &h); err != nil {
		t.Fatal(err)
	}
	return fault{"HTTPProxy " + h.Namespace + "/" + h.Name, "spec.virtualhost.fqdn", func() error { return fixture.RemoveHost(w.folder, &h) }}
}

// proxyOf gives the host's root, which is its last object.
func proxyOf(h *fixture.Host) *contourv1.HTTPProxy {
	return h.Objects[len(h.Objects)-1].(*contourv1.HTTPProxy)
}
