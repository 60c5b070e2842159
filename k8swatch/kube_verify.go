package k8swatch

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-xds/holdfast/index"
)

// Verify asks for the current version of a kind by a quorum read: a list of one
// item. It tells a watch that lags from a store that was rolled back, when the
// kind's frontier stays below what a client holds.
func (k *Kube) Verify(ctx context.Context, kind index.Kind) (index.ResourceVersion, error) {
	r, err := k.find(kind)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	list, err := r.list(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, fmt.Errorf("current version of %s: %w", nameOf(r.Watched), err)
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return 0, fmt.Errorf("current version of %s: %w", nameOf(r.Watched), err)
	}
	return versionOf(m)
}

// Rollback is told the version that a client holds and the one that Verify gave.
// If the first is above the second, it is of a future that no longer exists, and
// everything that rests on versions seen before becomes foreign: the source gets
// another id. It reports whether it did so.
func (k *Kube) Rollback(cause index.Cause, kind index.Kind, held, current index.ResourceVersion) bool {
	if current >= held {
		return false
	}
	k.sink.Apply(cause, k.rolledBack(kind, held, current)...)
	return true
}
