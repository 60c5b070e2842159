package k8swatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
)

// kindState says what is known of one kind's list and watch.
//
//	Unknown ─progress─▶ Listing ─replaced─▶ Observed ◀──watching──┐
//	   └───────────failed──────────▶ Failing | Forbidden | Absent ┘
//
// A kind that was observed and then failed is observed again only when its watch
// runs: where list is allowed and watch is not, each list succeeds and nothing
// is well.
type kindState struct {
	kind index.Kind
	log  *slog.Logger
	now  func() time.Time
	span *listSpan
	// heard is when the API server last told something of the kind; UnixNano, 0 for never.
	heard atomic.Int64
	emit  func(item)
	// recovered is called when the kind is observed after it was failing.
	recovered func()

	mu       sync.Mutex
	state    index.State
	message  string
	observed bool // at least once
}

// progress: the API server has begun to answer.
func (s *kindState) progress() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.observed && s.state != index.Listing {
		s.to(index.Listing, "")
	}
}

// replaced adds the new state, if there is one, to the item that completes a
// list, so that both come in one transaction.
func (s *kindState) replaced(watching bool, it item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hear()
	first := !s.observed
	s.observed = true
	if first || watching {
		it.changes = append(it.changes, s.turn(index.Observed, "")...)
	}
	s.emit(it)
}

// watching: the watch is open, so the kind is followed.
func (s *kindState) watching() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.observed {
		s.to(index.Observed, "")
	}
}

// failed takes note of an error of the list or watch.
func (s *kindState) failed(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if apierrors.IsForbidden(err) {
		s.to(index.Forbidden, err.Error())
		return
	}
	s.to(index.Failing, err.Error())
}

// absent: a successful discovery does not list the kind.
func (s *kindState) absent(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to(index.Absent, message)
}

// hear notes that the API server told something of the kind.
func (s *kindState) hear() { s.heard.Store(s.now().UnixNano()) }

func (s *kindState) to(state index.State, message string) {
	if c := s.turn(state, message); len(c) > 0 {
		s.emit(item{changes: c})
	}
}

// turn gives the change that tells the index, and logs it: one line for each
// change of state, none for each try. Called with mu held.
func (s *kindState) turn(state index.State, message string) []index.Change {
	if s.state == state && s.message == message {
		return nil
	}
	if s.state != state {
		s.log.Log(context.Background(), levelOf(state), "kind is "+string(state), append(messageAttrs(s.kind, message), tracing.LogAttr(s.span.newest()))...)
	}
	if state != index.Listing {
		s.span.start.outcome(s.kind, state)
	}
	if s.state == index.Failing && state == index.Observed {
		s.recovered()
	}
	s.state, s.message = state, message
	return []index.Change{index.KindStatus{Kind: s.kind, State: state, Error: message, At: s.now()}}
}

func messageAttrs(kind index.Kind, message string) []any {
	attrs := []any{"kind", string(kind)}
	if message != "" {
		attrs = append(attrs, "error", message)
	}
	return attrs
}

func levelOf(state index.State) slog.Level {
	switch state {
	case index.Failing, index.Forbidden:
		return slog.LevelWarn
	case index.Listing:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
