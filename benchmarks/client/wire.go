package client

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// frame is a message as it is on the wire.
type frame struct{ data []byte }

// raw is the codec of frames. A received frame is a copy: grpc takes its buffers
// back.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("raw codec: %T is not a frame", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(f.data)}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("raw codec: %T is not a frame", v)
	}
	n := data.Len()
	if cap(f.data) < n || cap(f.data) > 4*n+1<<16 {
		f.data = make([]byte, n)
	}
	f.data = f.data[:n]
	data.CopyTo(f.data)
	return nil
}

var errWire = errors.New("malformed message")

// fields calls f for each length-delimited field of a message.
func fields(b []byte, f func(num protowire.Number, v []byte) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		if typ != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				return errWire
			}
			b = b[n:]
			continue
		}
		v, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return errWire
		}
		if err := f(num, v); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// Field numbers of DeltaDiscoveryRequest, DeltaDiscoveryResponse and Resource.
const (
	reqNode        protowire.Number = 1
	reqType        protowire.Number = 2
	reqSubscribe   protowire.Number = 3
	reqUnsubscribe protowire.Number = 4
	reqVersions    protowire.Number = 5
	reqNonce       protowire.Number = 6

	respResources protowire.Number = 2
	respType      protowire.Number = 4
	respNonce     protowire.Number = 5
	respRemoved   protowire.Number = 6

	resVersion protowire.Number = 1
	resBody    protowire.Number = 2 // an Any, whose value is field 2
	resName    protowire.Number = 3
)

func appendString(b []byte, num protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
}

func appendNode(b []byte, num protowire.Number, id string) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), appendString(nil, 1, id))
}

// resource is one of a response, not copied.
type resource struct{ name, version, body []byte }

func parseResource(b []byte) (resource, error) {
	var r resource
	err := fields(b, func(num protowire.Number, v []byte) error {
		switch num {
		case resName:
			r.name = v
		case resVersion:
			r.version = v
		case resBody:
			return fields(v, func(num protowire.Number, v []byte) error {
				if num == 2 {
					r.body = v
				}
				return nil
			})
		}
		return nil
	})
	return r, err
}

// response is a DeltaDiscoveryResponse, not copied.
type response struct {
	typ       Type
	nonce     string
	resources [][]byte
	removed   [][]byte
}

func parseResponse(b []byte) (response, error) {
	var r response
	known := false
	err := fields(b, func(num protowire.Number, v []byte) error {
		switch num {
		case respType:
			r.typ, known = TypeOf(string(v))
		case respNonce:
			r.nonce = string(v)
		case respResources:
			r.resources = append(r.resources, v)
		case respRemoved:
			r.removed = append(r.removed, v)
		}
		return nil
	})
	if err == nil && !known {
		err = errors.New("a response of an unknown type")
	}
	return r, err
}
