package peer

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	deltav3 "github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	sotwv3 "github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"

	// The types inside the Any of our listeners.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// everyone is the one node hash: all clients get the same snapshot.
const everyone = "everyone"

type hash struct{}

func (hash) ID(*corev3.Node) string { return everyone }

// snapshots feeds a SnapshotCache.
type snapshots struct {
	cache     cachev3.SnapshotCache
	resources map[string]map[string]types.Resource // by type URL and name
	last      *cachev3.Snapshot
	version   int
}

func runSnapshotCache(in *gob.Decoder, out *gob.Encoder) error {
	s := &snapshots{cache: cachev3.NewSnapshotCache(true, hash{}, nil), resources: map[string]map[string]types.Resource{}, last: &cachev3.Snapshot{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	g := grpc.NewServer(grpc.MaxRecvMsgSize(64<<20), grpc.ReadBufferSize(4<<10), grpc.WriteBufferSize(16<<10))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, &service{
		delta: deltav3.NewServer(ctx, s.cache, nil), sotw: sotwv3.NewServer(ctx, s.cache, nil),
	})
	go func() { _ = g.Serve(l) }() // ends by Stop alone
	defer g.Stop()
	if err := out.Encode(Reply{Address: l.Addr().String()}); err != nil {
		return err
	}
	return s.run(in, out)
}

func (s *snapshots) run(in *gob.Decoder, out *gob.Encoder) error {
	touched := map[string]bool{}
	for {
		var f Feed
		if err := in.Decode(&f); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i := range f.Resources {
			if err := s.put(&f.Resources[i]); err != nil {
				return err
			}
			touched[f.Resources[i].Type] = true
		}
		if !f.Serve {
			continue
		}
		began := time.Now()
		r := Reply{}
		if err := s.serve(touched); err != nil {
			r.Error = err.Error()
		}
		r.Took = time.Since(began)
		clear(touched)
		if err := out.Encode(r); err != nil {
			return err
		}
	}
}

func (s *snapshots) put(r *Resource) error {
	if s.resources[r.Type] == nil {
		s.resources[r.Type] = map[string]types.Resource{}
	}
	if r.Gone {
		delete(s.resources[r.Type], r.Name)
		return nil
	}
	m, err := (&anypb.Any{TypeUrl: r.Type, Value: r.Body}).UnmarshalNew()
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.Type, r.Name, err)
	}
	s.resources[r.Type][r.Name] = m
	return nil
}

// serve sets a new snapshot. Types without a change keep their version and their
// map, which favours the cache: for state of the world they are not sent again.
func (s *snapshots) serve(touched map[string]bool) error {
	s.version++
	next := &cachev3.Snapshot{Resources: s.last.Resources}
	for url := range touched {
		t := cachev3.GetResponseType(url)
		if t == types.UnknownType {
			return fmt.Errorf("the cache does not know %s", url)
		}
		items := make([]types.Resource, 0, len(s.resources[url]))
		for _, r := range s.resources[url] {
			items = append(items, r)
		}
		next.Resources[t] = cachev3.NewResources(strconv.Itoa(s.version), items)
	}
	s.last = next
	return s.cache.SetSnapshot(context.Background(), everyone, next)
}

// service is the aggregated discovery service over both of the library's servers.
type service struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	delta deltav3.Server
	sotw  sotwv3.Server
}

func (s *service) StreamAggregatedResources(x discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return s.sotw.StreamHandler(x, resourcev3.AnyType)
}

func (s *service) DeltaAggregatedResources(x discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return s.delta.DeltaStreamHandler(x, resourcev3.AnyType)
}
