package client

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of DiscoveryRequest and DiscoveryResponse.
const (
	sotwReqVersion protowire.Number = 1
	sotwReqNode    protowire.Number = 2
	sotwReqNames   protowire.Number = 3
	sotwReqType    protowire.Number = 4
	sotwReqNonce   protowire.Number = 5

	sotwVersion   protowire.Number = 1
	sotwResources protowire.Number = 2
	sotwType      protowire.Number = 4
	sotwNonce     protowire.Number = 5
)

// ConnectSotW opens a state-of-the-world stream, for servers that are compared
// with ours.
func (c *Client) ConnectSotW(ctx context.Context) error {
	stream, err := c.open(ctx, "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources")
	if err != nil {
		return err
	}
	c.start(stream, func() error {
		x := &sotw{session: session{Client: c, stream: stream}}
		return x.serve()
	})
	return nil
}

// sotw is one state-of-the-world stream.
type sotw struct {
	session
	last [numTypes]struct{ version, nonce string }
}

func (x *sotw) serve() error {
	if err := x.request(Clusters); err != nil {
		return err
	}
	for {
		if err := x.stream.RecvMsg(&x.buffer); err != nil {
			return err
		}
		if err := x.answer(x.buffer.data); err != nil {
			return err
		}
	}
}

// request subscribes to all names that are asked for, and acknowledges the last
// response of the type.
func (x *sotw) request(t Type) error {
	var b []byte
	if v := x.last[t].version; v != "" {
		b = appendString(b, sotwReqVersion, v)
	}
	if !x.named {
		x.named = true
		b = appendNode(b, sotwReqNode, x.Node)
	}
	x.fleet.mu.RLock()
	names := x.fleet.names[t]
	x.fleet.mu.RUnlock()
	for id, n := range x.state.asked[t].n {
		if n > 0 {
			b = appendString(b, sotwReqNames, names[id])
		}
	}
	b = appendString(b, sotwReqType, Types[t])
	if n := x.last[t].nonce; n != "" {
		b = appendString(b, sotwReqNonce, n)
	}
	x.open[t] = true
	x.sent += len(b)
	return x.stream.SendMsg(&frame{b})
}

func (x *sotw) answer(b []byte) error {
	t, bodies, err := x.parse(b)
	if err != nil {
		return err
	}
	var a asks
	events := make([]Event, 0, len(bodies))
	for _, body := range bodies {
		k, err := x.takeBody(t, body, &a)
		if err != nil {
			return err
		}
		events = append(events, Event{Key: k})
	}
	if err := x.request(t); err != nil {
		return err
	}
	now := time.Now()
	for i := range events {
		events[i].At = now
	}
	for other := range numTypes {
		if a.any(other) {
			if err := x.request(other); err != nil {
				return err
			}
		}
	}
	x.note(events, len(b), x.sent)
	x.sent = 0
	return x.proceed()
}

func (x *sotw) parse(b []byte) (t Type, bodies [][]byte, err error) {
	var version, nonce, url string
	err = fields(b, func(num protowire.Number, v []byte) error {
		switch num {
		case sotwVersion:
			version = string(v)
		case sotwNonce:
			nonce = string(v)
		case sotwType:
			url = string(v)
		case sotwResources:
			return fields(v, func(num protowire.Number, v []byte) error {
				if num == 2 {
					bodies = append(bodies, v)
				}
				return nil
			})
		}
		return nil
	})
	t, known := TypeOf(url)
	if err == nil && !known {
		err = errors.New("a response of an unknown type")
	}
	x.last[t].version, x.last[t].nonce = version, nonce
	return t, bodies, err
}

// takeBody stores a resource; its name is the first field of each of our types.
func (x *sotw) takeBody(t Type, body []byte, a *asks) (Key, error) {
	var name []byte
	err := fields(body, func(num protowire.Number, v []byte) error {
		if num == 1 && name == nil {
			name = v
		}
		return nil
	})
	if err != nil {
		return Key{}, err
	}
	k := Key{t, x.fleet.id(t, name)}
	var refs *references
	switch t {
	case Clusters, Listeners, Scopes:
		if refs, err = x.fleet.referencesOf(t, body); err != nil {
			return k, err
		}
	}
	x.state.take(k, nil, refs, a)
	return k, nil
}

// proceed is the delta client's, with this protocol's requests.
func (x *sotw) proceed() error {
	s := &x.state
	if !x.open[Listeners] && s.held[Clusters].count > 0 && s.held[Endpoints].count >= asked(&s.asked[Endpoints]) {
		return x.request(Listeners)
	}
	if !x.open[Scopes] && s.held[Listeners].count > 0 {
		return x.request(Scopes)
	}
	return nil
}
