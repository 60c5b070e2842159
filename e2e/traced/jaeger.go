package traced

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/proc"
)

// Jaeger is a running Jaeger, all in one process.
type Jaeger struct {
	OTLP    netip.AddrPort // gRPC
	Page    netip.AddrPort // its page and API
	process *proc.Process
}

// StartJaeger starts the binary of tools/jaeger.
func StartJaeger(ctx context.Context, g *proc.Group, binary string) (*Jaeger, error) {
	p, err := proc.FreePorts(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 7)
	if err != nil {
		return nil, err
	}
	j := &Jaeger{OTLP: p[0], Page: p[1]}
	j.process, err = g.Start("jaeger", binary,
		"--collector.otlp.grpc.host-port="+p[0].String(), "--query.http-server.host-port="+p[1].String(),
		"--collector.otlp.http.host-port="+p[2].String(), "--query.grpc-server.host-port="+p[3].String(),
		"--admin.http.host-port="+p[4].String(), "--collector.http-server.host-port="+p[5].String(), "--collector.grpc-server.host-port="+p[6].String())
	if err != nil {
		return nil, err
	}
	return j, proc.Until(ctx, "Jaeger answers", patience, func(ctx context.Context) error {
		if err := j.process.Running(); err != nil {
			return err
		}
		_, err := j.get(ctx, "/api/services")
		return err
	})
}

// Find gives the newest trace that has a span with the attribute, once there is
// one that satisfies the condition.
func (j *Jaeger) Find(ctx context.Context, attribute, value string, condition func([]Span) error) ([]Span, error) {
	tags, err := json.Marshal(map[string]string{attribute: value})
	if err != nil {
		return nil, err
	}
	query := "/api/traces?" + url.Values{"service": {"holdfast"}, "tags": {string(tags)}, "limit": {"20"}, "lookback": {"1h"}}.Encode()
	var found []Span
	err = proc.Until(ctx, "the trace with "+attribute+"="+value, patience, func(ctx context.Context) error {
		traces, err := j.traces(ctx, query)
		if err != nil {
			return err
		}
		last := errors.New("no such trace")
		for _, t := range traces {
			if last = condition(t); last == nil && (found == nil || t[0].Start.After(found[0].Start)) {
				found = t
			}
		}
		if found == nil {
			return last
		}
		return nil
	})
	return found, err
}

// Address is where a person looks at a trace.
func (j *Jaeger) Address(trace string) string { return "http://" + j.Page.String() + "/trace/" + trace }

// jaegerSpan is a span in the words of Jaeger's API.
type jaegerSpan struct {
	TraceID       string
	SpanID        string
	OperationName string
	References    []struct{ RefType, TraceID, SpanID string }
	StartTime     int64 // microseconds
	Duration      int64
	Tags          []jaegerTag
	Logs          []struct{ Fields []jaegerTag }
}

type jaegerTag struct {
	Key   string
	Value any
}

func (j *Jaeger) traces(ctx context.Context, query string) ([][]Span, error) {
	raw, err := j.get(ctx, query)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data []struct{ Spans []jaegerSpan }
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("jaeger: %w", err)
	}
	out := make([][]Span, 0, len(answer.Data))
	for _, t := range answer.Data {
		var spans []Span
		for i := range t.Spans {
			spans = append(spans, t.Spans[i].view())
		}
		sortByStart(spans)
		out = append(out, spans)
	}
	return out, nil
}

func (s *jaegerSpan) view() Span {
	out := Span{
		Trace: s.TraceID, ID: s.SpanID, Name: strings.TrimPrefix(s.OperationName, "holdfast."),
		Start: time.UnixMicro(s.StartTime), Duration: time.Duration(s.Duration) * time.Microsecond, Attributes: map[string]string{},
	}
	for _, r := range s.References {
		if r.RefType == "CHILD_OF" && r.TraceID == s.TraceID && out.Parent == "" {
			out.Parent = r.SpanID
			continue
		}
		out.Links = append(out.Links, r.TraceID)
	}
	for _, t := range s.Tags {
		out.Attributes[t.Key] = fmt.Sprint(t.Value)
	}
	for _, l := range s.Logs {
		f := map[string]string{}
		for _, t := range l.Fields {
			f[t.Key] = fmt.Sprint(t.Value)
		}
		out.Events = append(out.Events, strings.TrimSpace(strings.TrimPrefix(f["event"], "holdfast.")+" "+f["holdfast.resource.name"]+" "+f["holdfast.reason"]))
	}
	return out
}

func (j *Jaeger) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+j.Page.String()+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("jaeger %s: %s: %.200s", path, response.Status, body)
	}
	return body, err
}
