package client

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/protobuf/encoding/protowire"
)

// quick: a benchmark waits for no backoff.
var quick = backoff.Config{BaseDelay: 2 * time.Millisecond, Multiplier: 1.2, MaxDelay: 20 * time.Millisecond}

// session is one delta stream. Owned by its goroutine.
type session struct {
	*Client
	stream grpc.ClientStream
	open   [numTypes]bool // a first request was sent
	named  bool
	sent   int // bytes, since the last note
	buffer frame
}

// serve runs one stream to its end.
func (c *Client) serve(stream grpc.ClientStream) error {
	x := &session{Client: c, stream: stream}
	if err := x.begin(); err != nil {
		return err
	}
	for {
		if err := stream.RecvMsg(&x.buffer); err != nil {
			return err
		}
		if err := x.answer(x.buffer.data); err != nil {
			return err
		}
	}
}

// begin sends the first requests: for a client that holds nothing that is CDS
// alone, for one that comes back everything that it holds.
func (x *session) begin() error {
	for t := range numTypes {
		holds := x.state.held[t].count > 0
		if t != Clusters && !holds {
			continue
		}
		if err := x.first(t); err != nil {
			return err
		}
	}
	return nil
}

// first sends a type's first request: all names that are asked for, with the
// versions that are held.
func (x *session) first(t Type) error {
	x.open[t] = true
	var names []uint32
	for id, n := range x.state.asked[t].n {
		if n > 0 {
			names = append(names, uint32(id)) //nolint:gosec // an index
		}
	}
	return x.request(t, "", names, nil, x.state.versions[t])
}

// request sends a DeltaDiscoveryRequest.
func (x *session) request(t Type, nonce string, more, less []uint32, versions map[uint32]string) error {
	var b []byte
	if !x.named {
		x.named = true
		b = appendNode(b, reqNode, x.Node)
	}
	b = appendString(b, reqType, Types[t])
	x.fleet.mu.RLock()
	names := x.fleet.names[t]
	x.fleet.mu.RUnlock()
	for _, id := range more {
		b = appendString(b, reqSubscribe, names[id])
	}
	for _, id := range less {
		b = appendString(b, reqUnsubscribe, names[id])
	}
	for id, version := range versions {
		entry := appendString(appendString(nil, 1, names[id]), 2, version)
		b = protowire.AppendBytes(protowire.AppendTag(b, reqVersions, protowire.BytesType), entry)
	}
	if nonce != "" {
		b = appendString(b, reqNonce, nonce)
	}
	x.sent += len(b)
	return x.stream.SendMsg(&frame{b})
}

// answer takes in a response, acknowledges it and asks for what it refers to.
func (x *session) answer(b []byte) error {
	r, err := parseResponse(b)
	if err != nil {
		return err
	}
	var a asks
	events := make([]Event, 0, len(r.resources)+len(r.removed))
	for _, raw := range r.resources {
		k, err := x.take(r.typ, raw, &a)
		if err != nil {
			return err
		}
		events = append(events, Event{Key: k})
	}
	for _, name := range r.removed {
		k := Key{r.typ, x.fleet.id(r.typ, name)}
		x.state.drop(k, &a)
		events = append(events, Event{Key: k, Removed: true})
	}
	if err := x.request(r.typ, r.nonce, nil, nil, nil); err != nil {
		return err
	}
	now := time.Now()
	for i := range events {
		events[i].At = now
	}
	if err := x.ask(&a); err != nil {
		return err
	}
	x.note(events, len(b), x.sent)
	x.sent = 0
	return x.proceed()
}

func (x *session) take(t Type, raw []byte, a *asks) (Key, error) {
	res, err := parseResource(raw)
	if err != nil {
		return Key{}, err
	}
	k := Key{t, x.fleet.id(t, res.name)}
	var refs *references
	switch t {
	case Clusters, Listeners, Scopes:
		if refs, err = x.fleet.referencesOf(t, res.body); err != nil {
			return k, err
		}
	}
	x.state.take(k, res.version, refs, a)
	return k, nil
}

// ask sends what is newly asked for, and what no longer is.
func (x *session) ask(a *asks) error {
	for t := range numTypes {
		if !a.any(t) {
			continue
		}
		x.open[t] = true
		if err := x.request(t, "", a.more[t], a.less[t], nil); err != nil {
			return err
		}
	}
	return nil
}

// proceed asks for listeners once all endpoints are there, and for scopes once
// there are listeners, as Envoy's start does.
func (x *session) proceed() error {
	s := &x.state
	if !x.open[Listeners] && s.held[Clusters].count > 0 && s.held[Endpoints].count >= asked(&s.asked[Endpoints]) {
		return x.first(Listeners)
	}
	if !x.open[Scopes] && s.held[Listeners].count > 0 {
		return x.first(Scopes)
	}
	return nil
}

func asked(c *counts) int {
	n := 0
	for _, x := range c.n {
		if x > 0 {
			n++
		}
	}
	return n
}
