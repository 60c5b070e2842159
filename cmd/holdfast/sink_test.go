package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
	"github.com/holdfast-xds/holdfast/tracing"
)

// tracedSink is a sink over the toy ingress, and what is seen of it.
func tracedSink(t *testing.T) (s *sink, ring *tracing.Ring, log *bytes.Buffer) {
	t.Helper()
	ring, log = tracing.NewRing(8), &bytes.Buffer{}
	provider, _, err := tracing.Setup(t.Context(), tracing.Options{Ring: ring})
	if err != nil {
		t.Fatal(err)
	}
	rules := &clockedRules{Rules: indextest.Rules{}}
	ix, err := index.New(rules)
	if err != nil {
		t.Fatal(err)
	}
	return &sink{index: ix, rules: rules, logger: slog.New(slog.NewTextHandler(log, nil)), tracer: provider.Tracer(tracing.Scope)}, ring, log
}

// Each derivation of a commit is a span of its own, up to a bound; the last one
// stands for the rest.
func TestDerivationsAreOnTheTrace(t *testing.T) {
	s, ring, log := tracedSink(t)
	s.Apply(index.Cause{}, indextest.Changes("list host @1\nlist path @1\nlist svc @1\nlist slice @1\nlist cert @1")...)
	if got := ring.Traces(8); len(got) != 0 {
		t.Errorf("a commit that is not traced has spans: %+v", got)
	}
	var script strings.Builder
	for i := range 30 {
		fmt.Fprintf(&script, "host h%d svc=web fqdn=one @%d\n", i, 10+i)
	}
	_, commit := s.tracer.Start(context.Background(), tracing.SpanCommit)
	c := s.Apply(commit.SpanContext(), indextest.Changes(script.String()+"svc a @60\nhost x svc=a @61\nhost y svc=a @62\nhost z svc=a @63\nhost v svc=b @64\nhost w svc=c @65")...)
	commit.End()
	derived, stands := 0, 0
	for _, x := range ring.Traces(1)[0].Spans {
		if x.Name != tracing.SpanDerive {
			continue
		}
		derived++
		if x.Parent != commit.SpanContext().SpanID().String() || x.Attributes["holdfast.derivation"] == "" {
			t.Errorf("span %+v", x)
		}
		if n := x.Attributes["holdfast.derivations"]; n != "" {
			if _, err := fmt.Sscan(n, &stands); err != nil {
				t.Fatal(err)
			}
		}
	}
	if derived != maxRuns || derived-1+stands != len(c.Derivations) {
		t.Errorf("%d spans, the last for %d, of %d derivations", derived, stands, len(c.Derivations))
	}
	if want := "trace_id=" + commit.SpanContext().TraceID().String(); !strings.Contains(log.String(), want) {
		t.Errorf("the lines about problems do not name the trace:\n%s", log)
	}
}
