// Package client simulates Envoys: clients of the aggregated discovery service
// over real gRPC on loopback, which subscribe as Envoy does, acknowledge
// everything and decode as little as they can, so that a thousand of them do not
// hide what they are there to measure.
//
//	Fleet ──names, references, parsed once──▶ Client ──stream──▶ control plane
//
// A Client asks for clusters; then, by name, for their endpoints; when it has
// those, for listeners, then scopes, RouteConfigurations and secrets. When it
// connects again it lists what it holds, as Envoy does. It does not look into
// what it is sent beyond names and references, and never rejects.
//
// A Fleet owns its clients' goroutines: Close waits for them.
package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/holdfast-xds/holdfast/delta"
)

// Type is a resource type as a small number, in the order of Types.
type Type uint8

// The types.
const (
	Clusters Type = iota
	Endpoints
	Listeners
	Scopes
	Routes
	Secrets
	numTypes
)

// Types gives the type URLs.
var Types = [numTypes]string{delta.Cluster, delta.Endpoints, delta.Listener, delta.ScopedRoutes, delta.RouteConfiguration, delta.Secret}

// TypeOf gives the number of a type URL; ok is false for another one.
func TypeOf(url string) (Type, bool) {
	for i, u := range Types {
		if u == url {
			return Type(i), true
		}
	}
	return 0, false
}

// Key names a resource among those that a fleet has seen.
type Key struct {
	Type Type
	ID   uint32
}

// Event is a resource that a client was sent and has acknowledged.
type Event struct {
	Key
	Removed bool
	At      time.Time
}

// Fleet is a set of clients of one control plane.
type Fleet struct {
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.RWMutex
	ids   [numTypes]map[string]uint32
	names [numTypes][]string
	refs  map[uint64]*references // by the digest of the body that has them
}

// NewFleet gives a fleet without clients.
func NewFleet(ctx context.Context) *Fleet {
	f := &Fleet{refs: map[uint64]*references{}}
	f.ctx, f.cancel = context.WithCancel(ctx)
	for i := range f.ids {
		f.ids[i] = map[string]uint32{}
	}
	return f
}

// Close ends all clients.
func (f *Fleet) Close() {
	f.cancel()
	f.running.Wait()
}

// Key gives the key of a resource.
func (f *Fleet) Key(t Type, name string) Key { return Key{t, f.id(t, []byte(name))} }

// Name gives a key's name.
func (f *Fleet) Name(k Key) string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.names[k.Type][k.ID]
}

func (f *Fleet) id(t Type, name []byte) uint32 {
	f.mu.RLock()
	id, ok := f.ids[t][string(name)]
	f.mu.RUnlock()
	if ok {
		return id
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if id, ok := f.ids[t][string(name)]; ok {
		return id
	}
	id = uint32(len(f.names[t])) //nolint:gosec // fewer than 2^32
	s := string(name)
	f.ids[t][s] = id
	f.names[t] = append(f.names[t], s)
	return id
}

// referencesOf gives what a body refers to; it is parsed once for all clients.
func (f *Fleet) referencesOf(t Type, body []byte) (*references, error) {
	digest := xxhash.Sum64(body)
	f.mu.RLock()
	r := f.refs[digest]
	f.mu.RUnlock()
	if r != nil {
		return r, nil
	}
	r, err := f.parse(t, body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Types[t], err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refs[digest] = r
	return r, nil
}
