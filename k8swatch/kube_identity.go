package k8swatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cespare/xxhash/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/holdfast-xds/holdfast/index"
)

// identify finds out which cluster this is, before any object is read: the
// index names the source in every version token. It tries until it knows, and
// reports whether ctx still runs.
func (k *Kube) identify(ctx context.Context, put func(item), states []*kindState) bool {
	wait := backoff{min: k.opts.RetryMin, max: k.opts.RetryMax}
	start, failing := time.Now(), false
	for {
		id, err := k.clusterID(ctx, time.Since(start))
		if err == nil {
			if failing {
				k.opts.Logger.Info("the API server answers", "server", k.clients.config.Host)
			}
			put(item{changes: []index.Change{index.SourceID{ID: k.setID(id)}}})
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		if !failing {
			failing = true
			k.opts.Logger.Warn("the API server can't be asked; trying until it can", "server", k.clients.config.Host, "error", err)
		}
		k.unreachable(put, states, err)
		if !sleep(ctx, wait.next(0)) {
			return false
		}
	}
}

// unreachable tells the index of all kinds at once; the log has its one line.
func (k *Kube) unreachable(put func(item), states []*kindState, err error) {
	var it item
	for _, s := range states {
		s.mu.Lock()
		s.state, s.message = index.Failing, err.Error()
		it.changes = append(it.changes, index.KindStatus{Kind: s.kind, State: index.Failing, Error: err.Error(), At: k.opts.Now()})
		s.mu.Unlock()
	}
	put(it)
}

// youth: a new API server makes kube-system only some moments after it starts.
const youth = 10 * time.Second

// clusterID is a hash of the UID of kube-system, which lives as long as the
// cluster. Without the right to read it, or without such a namespace, it is a
// hash of where the API server is.
func (k *Kube) clusterID(ctx context.Context, waited time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var ns corev1.Namespace
	err := once(k.core.Get()).Resource("namespaces").Name(metav1.NamespaceSystem).Do(ctx).Into(&ns)
	switch {
	case err == nil && ns.UID == "":
		return "", errors.New("namespace kube-system has no uid")
	case err == nil:
		return shortHash("uid", string(ns.UID)), nil
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err) && waited > youth:
		id := addressID(&k.clients.config)
		k.opts.Logger.Warn("namespace kube-system can't be read; the cluster is known by its API server's address and CA instead. "+
			"Grant get on namespaces to holdfast: when the address changes, all Envoys wait for complete lists", "source", id, "error", err)
		return id, nil
	}
	return "", fmt.Errorf("which cluster is this (namespace kube-system): %w", err)
}

func addressID(c *rest.Config) string {
	ca := string(c.CAData)
	if ca == "" && c.CAFile != "" {
		if b, err := os.ReadFile(c.CAFile); err == nil {
			ca = string(b)
		}
	}
	return shortHash("address", c.Host, ca)
}

// shortHash gives 8 hex digits.
func shortHash(parts ...string) string {
	d := xxhash.New()
	for _, p := range parts {
		_, _ = d.WriteString(p)
		_, _ = d.Write([]byte{0})
	}
	return fmt.Sprintf("%08x", uint32(d.Sum64()))
}

func (k *Kube) setID(id string) string {
	k.id.Lock()
	defer k.id.Unlock()
	k.id.base, k.id.now = id, id
	return id
}

// rollback gives the id of the source from now on: no token made before is of it.
func (k *Kube) rollback(current index.ResourceVersion) string {
	k.id.Lock()
	defer k.id.Unlock()
	k.id.now = k.id.base + "-" + shortHash(current.String())
	return k.id.now
}
