package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/k8swatch"
)

// newSource makes the source that --source names.
func (c *serveConfig) newSource(sink k8swatch.Sink, opts k8swatch.Options) (k8swatch.Source, error) {
	if path, ok := c.folder(); ok {
		return k8swatch.NewDir(path, sink, opts)
	}
	config, err := k8swatch.LoadConfig(c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--source kube: %w", err)
	}
	return k8swatch.NewKube(config, sink, opts)
}

// versioned is a source whose history can be rolled back: *k8swatch.Kube.
type versioned interface {
	Verify(ctx context.Context, kind index.Kind) (index.ResourceVersion, error)
	Rollback(cause index.Cause, kind index.Kind, held, current index.ResourceVersion) bool
}

// rollbackWatch asks the source whether a frontier that stays below what an
// Envoy holds merely lags, or belongs to a history that was restored from a
// backup. Envoys report in often; one question at a time, and one in a while for
// each kind, is enough.
type rollbackWatch struct {
	source versioned
	logger *slog.Logger
	wake   chan struct{}

	mu     sync.Mutex
	behind map[index.Kind]index.ResourceVersion // the highest version held
}

// newRollbackWatch gives nil for a source without versions.
func newRollbackWatch(source k8swatch.Source, logger *slog.Logger) *rollbackWatch {
	v, ok := source.(versioned)
	if !ok {
		return nil
	}
	return &rollbackWatch{source: v, logger: logger, wake: make(chan struct{}, 1), behind: map[index.Kind]index.ResourceVersion{}}
}

// report notes that a kind is behind. It does not block.
func (w *rollbackWatch) report(kind index.Kind, held index.ResourceVersion) {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.behind[kind] = max(w.behind[kind], held)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// verifyEvery is the least time between two rounds of questions.
const verifyEvery = 2 * time.Second

func (w *rollbackWatch) run(ctx context.Context) error {
	if w == nil {
		<-ctx.Done()
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		}
		for kind, held := range w.take() {
			w.verify(ctx, kind, held)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(verifyEvery):
		}
	}
}

func (w *rollbackWatch) take() map[index.Kind]index.ResourceVersion {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.behind
	w.behind = map[index.Kind]index.ResourceVersion{}
	return out
}

func (w *rollbackWatch) verify(ctx context.Context, kind index.Kind, held index.ResourceVersion) {
	current, err := w.source.Verify(ctx, kind)
	if err != nil {
		w.logger.Warn("an Envoy holds a newer version than was seen here; the API server does not tell why", "kind", string(kind), "held", held.String(), "error", err)
		return
	}
	if w.source.Rollback(index.Cause{}, kind, held, current) {
		return // the source says so itself
	}
	w.logger.Info("an Envoy holds a newer version than was seen here: the watch lags", "kind", string(kind), "held", held.String(), "current", current.String())
}
