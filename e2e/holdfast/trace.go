package holdfast

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Trace is a part of what /traces tells of one trace.
type Trace struct {
	Start time.Time `json:"start"`
	Spans []Span    `json:"spans"`
	// Dropped spans are those that were too many to be kept.
	Dropped int `json:"dropped"`
}

// Span of a Trace.
type Span struct {
	Name       string            `json:"name"`
	Start      time.Time         `json:"start"`
	Seconds    float64           `json:"durationSeconds"`
	Attributes map[string]string `json:"attributes"`
}

// End of the span.
func (s *Span) End() time.Time {
	return s.Start.Add(time.Duration(s.Seconds * float64(time.Second)))
}

// Traces gives the last traces, the newest first.
func (s *Server) Traces(ctx context.Context, limit int) ([]Trace, error) {
	code, body, err := s.get(ctx, fmt.Sprintf("/traces?limit=%d", limit))
	if err != nil {
		return nil, err
	}
	if code != http.StatusOK {
		return nil, fmt.Errorf("holdfast /traces: %d: %.400s", code, body)
	}
	var out []Trace
	if err := json.Unmarshal(body, &out); err != nil {
		return nil, fmt.Errorf("holdfast /traces: %w", err)
	}
	return out, nil
}
