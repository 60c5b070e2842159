package ads

import (
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// wire is a DeltaDiscoveryResponse in the form in which it is sent. A resource's
// body is marshalled once, when it is made, and is the same memory for all
// clients; what is written for each is the little around it. A client that
// connects to 10,000 hosts is sent 20 MB: built as messages and marshalled, that
// was 100 MB of garbage for each of a thousand clients.
type wire struct {
	buffers mem.BufferSlice
	size    int
}

// ServerCodec is the option with which a gRPC server sends responses without
// copying them. One without it sends the same bytes, after copying them.
func ServerCodec() grpc.ServerOption {
	return grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto")})
}

type codec struct{ encoding.CodecV2 }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if w, ok := v.(*wire); ok {
		return w.buffers, nil
	}
	return c.CodecV2.Marshal(v)
}

// ProtoReflect makes a wire a message for the codecs that do not know it.
func (w *wire) ProtoReflect() protoreflect.Message {
	m := &discoveryv3.DeltaDiscoveryResponse{}
	if err := proto.Unmarshal(w.buffers.Materialize(), m); err != nil {
		panic("ads: a response that we wrote can't be read: " + err.Error())
	}
	return m.ProtoReflect()
}

// Field numbers.
const (
	respSystemVersion protowire.Number = 1
	respResources     protowire.Number = 2
	respType          protowire.Number = 4
	respNonce         protowire.Number = 5
	respRemoved       protowire.Number = 6

	resVersion protowire.Number = 1
	resBody    protowire.Number = 2
	resName    protowire.Number = 3

	anyType  protowire.Number = 1
	anyValue protowire.Number = 2
)

// writer writes into chunks, and puts large bodies between them as they are.
type writer struct {
	out   mem.BufferSlice
	chunk []byte // what is not yet in out
	token []byte // scratch
}

const (
	chunkSize = 32 << 10
	// copied bodies are those that are not worth a buffer of their own.
	copied = 1 << 10
)

func wireOf(r *delta.Response) *wire {
	w := &writer{}
	w.room(len(r.Type) + len(r.Nonce) + 64)
	w.chunk = appendString(w.chunk, respSystemVersion, r.Source.Version())
	for _, res := range r.Send {
		w.resource(r.Source, res)
	}
	w.room(len(r.Type) + len(r.Nonce) + 16)
	w.chunk = appendString(w.chunk, respType, r.Type)
	w.chunk = appendString(w.chunk, respNonce, r.Nonce)
	for _, proof := range r.Remove {
		name := proof.Key().Name
		w.room(len(name) + 16)
		w.chunk = appendString(w.chunk, respRemoved, name)
	}
	w.flush()
	return &wire{w.out, w.out.Len()}
}

// resource writes one resource; the body comes last.
func (w *writer) resource(s *index.Snapshot, r *index.Resource) {
	w.token = s.AppendToken(w.token[:0], r)
	content := sizeOf(anyType, len(r.Type)) + sizeOf(anyValue, len(r.Body))
	size := sizeOf(resName, len(r.Name)) + sizeOf(resVersion, len(w.token)) + sizeOf(resBody, content)
	w.room(len(r.Name) + len(w.token) + len(r.Type) + 64)
	b := w.chunk
	b = appendHead(b, respResources, size)
	b = appendString(b, resName, r.Name)
	b = append(appendHead(b, resVersion, len(w.token)), w.token...)
	b = appendHead(b, resBody, content)
	b = appendString(b, anyType, r.Type)
	w.chunk = appendHead(b, anyValue, len(r.Body))
	w.body(r.Body)
}

func (w *writer) body(body []byte) {
	if len(body) <= copied {
		w.room(len(body))
		w.chunk = append(w.chunk, body...)
		return
	}
	rest := w.chunk[len(w.chunk):]
	w.flush()
	w.out = append(w.out, mem.SliceBuffer(body))
	w.chunk = rest
}

// room makes room for n bytes: chunks that are part of the message don't move.
func (w *writer) room(n int) {
	if cap(w.chunk)-len(w.chunk) >= n {
		return
	}
	w.flush()
	w.chunk = make([]byte, 0, max(n, w.next()))
}

// next: a short message, which most are, has a short chunk.
func (w *writer) next() int {
	if len(w.out) == 0 {
		return 1 << 10
	}
	return chunkSize
}

func (w *writer) flush() {
	if len(w.chunk) > 0 {
		w.out = append(w.out, mem.SliceBuffer(w.chunk))
	}
	w.chunk = nil
}

func appendHead(b []byte, field protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(size)) //nolint:gosec // not negative
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	return append(appendHead(b, field, len(s)), s...)
}

func sizeOf(field protowire.Number, size int) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(size)
}
