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
	"sync"
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
	// Holders tells what each client has of each of the resources, and Inventory
	// everything that one of them holds, by type URL. Either may be nil.
	Holders   func([]index.ResourceKey) map[index.ResourceKey][]delta.Holder
	Inventory func(stream uint64, types []string) map[string]*delta.Inventory
	// Departed tells of the last clients that left and have not come back, the last
	// first. It may be nil.
	Departed func() []delta.Departed
	// Serving reports whether Envoys can connect.
	Serving func() bool
	// Release lets go what is held back for fear of a mistake; nil: nothing is.
	Release func(context.Context, Release) (Released, error)
	Traces  *tracing.Ring // may be nil
	// Metrics are shown, beside those that New registers; the zero value is a set of
	// its own.
	Metrics tracing.Metrics
	Logger  *slog.Logger

	// Exposed: other machines reach the listener. Then what changes something, or
	// costs much, needs Token.
	Exposed bool
	Token   string
	// Hosts are names, beside addresses and localhost, by which the listener may be
	// asked.
	Hosts []string
	// Now is the clock; time.Now when nil.
	Now func() time.Time
}

// Server answers on the admin address.
type Server struct {
	o       Options
	handler http.Handler
	counts  resourceCounts
	changes changeLog
}

// New makes the server; nothing listens yet.
func New(o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{o: o, changes: changeLog{index: o.Index, now: o.Now}}
	if o.Metrics.Meter == nil {
		var err error
		if o.Metrics, err = tracing.NewMetrics(); err != nil {
			return nil, err
		}
	}
	if err := s.register(o.Metrics.Meter); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", o.Metrics.Handler)
	s.data(mux)
	s.pages(mux)
	mux.HandleFunc("POST /release", s.authorized(s.release))
	mux.HandleFunc("GET /debug/pprof/", s.authorized(pprof.Index))
	mux.HandleFunc("GET /debug/pprof/cmdline", s.authorized(pprof.Cmdline))
	mux.HandleFunc("GET /debug/pprof/profile", s.authorized(pprof.Profile))
	mux.HandleFunc("GET /debug/pprof/symbol", s.authorized(pprof.Symbol))
	mux.HandleFunc("GET /debug/pprof/trace", s.authorized(pprof.Trace))
	s.handler = s.guard(mux)
	return s, nil
}

// data are the answers for programs.
func (s *Server) data(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET /status", s.status)
	mux.HandleFunc("GET /explain", s.explain)
	mux.HandleFunc("GET /holdings", s.holdings)
	mux.HandleFunc("GET /traces", s.traces)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

func (s *Server) now() time.Time { return s.o.Now() }

// Serve answers on the listener until ctx ends; requests under way have a
// moment to finish. A profile asked for longer than the write timeout is refused
// by net/http/pprof.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { s.changes.follow(ctx) })
	defer following.Wait()
	defer cancel()
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
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), 200*time.Millisecond)
	defer stop()
	if err := h.Shutdown(last); err != nil {
		_ = h.Close() // the time is up: those who still read are cut off
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin listener: %w", err)
	}
	return nil
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Status()) }

func (s *Server) explain(w http.ResponseWriter, r *http.Request) {
	x, err := s.Explain(r.URL.Query().Get("q"))
	var unknown *NotFound
	switch {
	case errors.As(err, &unknown):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		writeJSON(w, x)
	}
}

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
