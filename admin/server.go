package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
)

// Options for New.
type Options struct {
	Version string
	Index   *index.Index
	// Types are the resource types to count, in the order in which they are shown.
	Types []index.TypeSpec
	// Streams gives the state of each connected client.
	Streams func() []delta.StreamStatus
	// Serving reports whether Envoys can connect.
	Serving func() bool
	Traces  *tracing.Ring // may be nil
	Logger  *slog.Logger
}

// Server answers on the admin address.
type Server struct {
	o       Options
	mux     *http.ServeMux
	streams *streamTotals
	counts  resourceCounts
}

// New makes the server; nothing listens yet.
func New(o Options) (*Server, error) {
	s := &Server{o: o, mux: http.NewServeMux(), streams: newStreamTotals(o.Streams)}
	metrics, err := s.metricsHandler()
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	s.mux.Handle("GET /metrics", metrics)
	s.mux.HandleFunc("GET /{$}", s.page)
	s.mux.HandleFunc("GET /healthz", healthz)
	s.mux.HandleFunc("GET /readyz", s.readyz)
	s.mux.HandleFunc("GET /status", s.status)
	s.mux.HandleFunc("GET /traces", s.traces)
	s.mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	s.mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	s.mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	s.mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	s.mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Serve answers on the listener until ctx ends; requests under way have a
// moment to finish. A profile asked for longer than the write timeout is refused
// by net/http/pprof.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.o.Logger.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("admin listener: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 200*time.Millisecond)
	defer cancel()
	if err := h.Shutdown(last); err != nil {
		_ = h.Close() // the time is up: those who still read are cut off
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin listener: %w", err)
	}
	return nil
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Status()) }

// defaultTraces is how many traces are shown unless ?limit= says otherwise.
const defaultTraces = 50

func (s *Server) traces(w http.ResponseWriter, r *http.Request) {
	limit := defaultTraces
	if q := r.URL.Query().Get("limit"); q != "" {
		n, err := strconv.Atoi(q)
		if err != nil || n < 0 {
			http.Error(w, fmt.Sprintf("limit: %q is not a number", q), http.StatusBadRequest)
			return
		}
		limit = n
	}
	writeJSON(w, s.recentTraces(limit))
}

func (s *Server) recentTraces(limit int) []tracing.Trace {
	if s.o.Traces == nil {
		return []tracing.Trace{}
	}
	return s.o.Traces.Traces(limit)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // whoever asked is gone
}
