package traced

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/holdfast-xds/holdfast/e2e/proc"
)

// Receiver is a running receiver of OpenTelemetry's collector: tools/otlp.
type Receiver struct {
	GRPC, HTTP netip.AddrPort
	process    *proc.Process
	file       string
}

// StartReceiver starts the binary of tools/otlp.
func StartReceiver(ctx context.Context, g *proc.Group, binary, folder string) (*Receiver, error) {
	ports, err := proc.FreePorts(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 2)
	if err != nil {
		return nil, err
	}
	r := &Receiver{GRPC: ports[0], HTTP: ports[1], file: filepath.Join(folder, "traces.jsonl")}
	r.process, err = g.Start("otlp", binary, "--grpc="+r.GRPC.String(), "--http="+r.HTTP.String(), "--out="+r.file)
	if err != nil {
		return nil, err
	}
	return r, proc.Until(ctx, "the OTLP receiver receives", patience, func(context.Context) error {
		if n, err := r.process.Logged("receiving"); err != nil || n == 0 {
			return errors.Join(err, r.process.Running(), errors.New("it says nothing"))
		}
		return nil
	})
}

// Await gives the spans once they satisfy the condition.
func (r *Receiver) Await(ctx context.Context, what string, condition func([]Span) error) ([]Span, error) {
	var spans []Span
	err := proc.Until(ctx, what, patience, func(context.Context) error {
		var err error
		if spans, err = r.Spans(); err != nil {
			return err
		}
		return condition(spans)
	})
	return spans, err
}

// Spans gives all spans that were received.
func (r *Receiver) Spans() ([]Span, error) {
	f, err := os.Open(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Span
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var m tracev1.TracesData
		// OTLP/JSON writes ids in hexadecimal, which protojson takes for base64; idOf
		// turns that round.
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(lines.Bytes(), &m); err != nil {
			return nil, fmt.Errorf("%s: %w", r.file, err)
		}
		for _, rs := range m.GetResourceSpans() {
			for _, ss := range rs.GetScopeSpans() {
				for _, s := range ss.GetSpans() {
					out = append(out, spanOf(s))
				}
			}
		}
	}
	return out, lines.Err()
}

func spanOf(s *tracev1.Span) Span {
	out := Span{
		Trace: idOf(s.GetTraceId()), ID: idOf(s.GetSpanId()), Parent: idOf(s.GetParentSpanId()),
		Name: strings.TrimPrefix(s.GetName(), "holdfast."), Start: time.Unix(0, int64(s.GetStartTimeUnixNano())),
		Duration: time.Duration(s.GetEndTimeUnixNano() - s.GetStartTimeUnixNano()), Attributes: attributesOf(s.GetAttributes()),
	}
	for _, l := range s.GetLinks() {
		out.Links = append(out.Links, idOf(l.GetTraceId()))
	}
	for _, e := range s.GetEvents() {
		a := attributesOf(e.GetAttributes())
		out.Events = append(out.Events, strings.TrimSpace(strings.TrimPrefix(e.GetName(), "holdfast.")+" "+a["holdfast.resource.name"]+" "+a["holdfast.reason"]))
	}
	return out
}

func idOf(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func attributesOf(list []*commonv1.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range list {
		out[kv.GetKey()] = textOf(kv.GetValue())
	}
	return out
}

func textOf(v *commonv1.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *commonv1.AnyValue_StringValue:
		return v.StringValue
	case *commonv1.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *commonv1.AnyValue_ArrayValue:
		var all []string
		for _, x := range v.ArrayValue.GetValues() {
			all = append(all, textOf(x))
		}
		return strings.Join(all, " ")
	}
	return ""
}

func sortByStart(spans []Span) {
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Start.Compare(b.Start) })
}
