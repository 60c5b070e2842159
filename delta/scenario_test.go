package delta_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// TestScenarios runs the scripts in testdata/scenarios: one client, one stream after
// another, over the toy ingress of indextest. Commands:
//
//	apply                     changes of the index in the body; then Advance
//	commit                    the same without telling the stream; apply tells it
//	given                     what there is when the client connects
//	request T [names=(a,b)] [drop=(c)] [irv=held | irv=(a:TOKEN,…)] [nonce=N]
//	ack T | nack T (+ body)   answers the response in flight
//	settle [but=T]            answers and subscribes as Envoy does until it is quiet
//	tick DURATION             time passes
//	reconnect                 a new stream to the same replica
//	restart [nameless]        the control plane forgets everything; a new stream
//	overrun                   more commits than the log holds, none told to the stream
//	status                    what is withheld and quarantined
//	holds                     what the client holds
//
// Types go by CDS, EDS, LDS, SDS, SRDS, RDS. A TOKEN is "same" (the index's own),
// "older" (its vector, another digest), "foreign", "foreign-same" (the digest is the
// index's), "formless", or a vector like H:5;S:6 with another digest.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		p := &play{t: t, client: newClient(indextest.New()), fresh: indextest.New}
		datadriven.RunTest(t, path, p.run)
	})
}

type play struct {
	*client
	t *testing.T
	// fresh makes the index of a replica that has just started.
	fresh func() *index.Index
}

func (p *play) run(t *testing.T, d *datadriven.TestData) string {
	var first string
	if len(d.CmdArgs) > 0 {
		first = d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "apply":
		p.ix.Apply(index.Cause{}, indextest.Changes(d.Input)...)
		return responseLines(p.advance())
	case "commit":
		p.ix.Apply(index.Cause{}, indextest.Changes(d.Input)...)
		return ""
	case "given":
		p.ix.Apply(index.Cause{}, indextest.Changes(d.Input)...)
		p.connect(p.ix)
		return ""
	case "request":
		return responseLines(p.request(p.parse(first, d)))
	case "ack":
		return responseLines(p.ack(p.inFlight(t, first)))
	case "nack":
		return responseLines(p.nack(p.inFlight(t, first), d.Input))
	case "settle":
		return p.settle(vals(d, "but"))
	case "tick":
		by, err := time.ParseDuration(first)
		if err != nil {
			t.Fatal(err)
		}
		return responseLines(p.tick(by))
	case "reconnect":
		p.connect(p.ix)
		return ""
	case "restart":
		ix := p.fresh()
		if first == "nameless" {
			ix = indextest.Nameless()
		}
		p.connect(ix)
		return ""
	case "overrun":
		// Other readers are gone, and this one is far behind.
		for v := range 10_000 {
			p.ix.Apply(index.Cause{}, index.Bookmark{Kind: indextest.Cert, Version: index.ResourceVersion(100 + v)})
		}
		return ""
	case "status":
		return statusLines(p.stream.Status(), p.now)
	case "holds":
		return p.holdLines()
	}
	t.Fatalf("unknown command %q", d.Cmd)
	return ""
}

func (p *play) inFlight(t *testing.T, name string) string {
	t.Helper()
	if p.flying[urls[name]] == nil {
		t.Fatalf("no response of %s is in flight", name)
	}
	return urls[name]
}

func vals(d *datadriven.TestData, key string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return a.Vals
		}
	}
	return nil
}

func (p *play) parse(typ string, d *datadriven.TestData) *discoveryv3.DeltaDiscoveryRequest {
	url := urls[typ]
	if url == "" {
		url = typ
	}
	req := &discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: url, ResourceNamesSubscribe: vals(d, "names"), ResourceNamesUnsubscribe: vals(d, "drop"),
	}
	if n := vals(d, "nonce"); n != nil {
		req.ResponseNonce = n[0]
	}
	irv := vals(d, "irv")
	if len(irv) == 1 && irv[0] == "held" {
		req.InitialResourceVersions = p.versions(url)
		return req
	}
	for _, v := range irv {
		name, token, _ := strings.Cut(v, ":")
		if req.InitialResourceVersions == nil {
			req.InitialResourceVersions = map[string]string{}
		}
		req.InitialResourceVersions[name] = p.token(index.ResourceKey{Type: url, Name: name}, token)
	}
	return req
}

func (p *play) token(k index.ResourceKey, text string) string {
	s := p.ix.Snapshot()
	own := "h1.0.s."
	if r := s.Resource(k); r != nil {
		own = s.Token(r)
	}
	part := strings.SplitN(own, ".", 4)
	switch text {
	case "same":
		return own
	case "older":
		return "h1.0.s." + part[3]
	case "foreign":
		return "h1.0.elsewhere.H:zzz"
	case "foreign-same":
		return "h1." + part[1] + ".elsewhere.H:zzz"
	case "formless":
		return "42"
	}
	return "h1.0.s." + strings.ReplaceAll(text, ";", ",")
}

// settle answers in the order of arrival and subscribes, until nothing comes.
func (p *play) settle(but []string) string {
	var log strings.Builder
	for range 100 {
		log.WriteString(responseLines(p.subscribe()))
		next := ""
		for _, name := range []string{"CDS", "EDS", "LDS", "SDS", "SRDS", "RDS"} {
			if p.flying[urls[name]] != nil && !slices.Contains(but, name) {
				next = urls[name]
				break
			}
		}
		if next == "" {
			return log.String()
		}
		log.WriteString(responseLines(p.ack(next)))
	}
	p.t.Fatalf("does not settle:\n%s", log.String())
	return ""
}

func statusLines(st delta.StreamStatus, now time.Time) string {
	var b strings.Builder
	for _, t := range st.Types {
		for _, w := range t.Withheld {
			fmt.Fprintf(&b, "%s %s %s: %s", service(t.Type), w.Action, w.Resource.Name, w.Reason)
			for _, l := range w.Missing {
				fmt.Fprintf(&b, " %s(%s<%d)", l.Kind, l.Frontier, l.Held)
			}
			if d := now.Sub(w.Since); d > 0 {
				fmt.Fprintf(&b, ", since %s", d)
			}
			b.WriteByte('\n')
		}
		for _, q := range t.Quarantined {
			fmt.Fprintf(&b, "%s quarantined %s %v: %s\n", service(t.Type), q.Resource.Name, q.Sources, q.Message)
		}
	}
	return b.String()
}

func (p *play) holdLines() string {
	var lines []string
	for url, held := range p.client.holds {
		for name, v := range held {
			lines = append(lines, fmt.Sprintf("%s %s=%q\n", service(url), name, v.body))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
