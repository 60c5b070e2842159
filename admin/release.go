package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// Release is the body of POST /release: what a person lets go that is held back
// for fear of a mistake. All fields are optional; none means everything.
type Release struct {
	// Node is the node id of an Envoy.
	Node string `json:"node,omitempty"`
	// Type is a resource's type URL.
	Type string `json:"type,omitempty"`
	// Reason is written to the log.
	Reason string `json:"reason,omitempty"`
}

// Released is the answer.
type Released struct {
	// Count of what was let go.
	Count int `json:"count"`
	// Message says what happened, in a sentence.
	Message string `json:"message"`
}

// maxRelease bounds the body of a request.
const maxRelease = 64 << 10

func (s *Server) release(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "the body must be JSON: Content-Type: application/json", http.StatusUnsupportedMediaType)
		return
	}
	var what Release
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRelease))
	d.DisallowUnknownFields()
	if err := d.Decode(&what); err != nil && !errors.Is(err, io.EOF) {
		http.Error(w, fmt.Sprintf("the body is not understood: %v", err), http.StatusBadRequest)
		return
	}
	if s.o.Release == nil {
		http.Error(w, "this holdfast holds nothing back that a person could release", http.StatusNotImplemented)
		return
	}
	done, err := s.o.Release(r.Context(), what)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	s.o.Logger.Warn("released by hand", "node", what.Node, "type", what.Type, "reason", what.Reason, "count", done.Count, "peer", r.RemoteAddr)
	writeJSON(w, done)
}
