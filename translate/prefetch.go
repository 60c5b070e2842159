package translate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/holdfast-xds/holdfast/index"
)

// Hidden listeners make Envoy hold the certificates of all hosts, so that a host
// that nobody has visited yet works while holdfast is away. Nobody can connect to
// them: they are internal, and only their filter chain's list of names counts.
//
// A host's group depends on its name alone, so that it does not change when others
// come and go. Only a group with more than maxPrefetch names, which takes some 10,000
// hosts, is halved by more bits of the same hash.
const (
	prefetchGroups = 256
	maxPrefetch    = 64
)

// prefetchRoots are the derivations of the groups.
func prefetchRoots() []index.DerivationID {
	out := make([]index.DerivationID, 0, prefetchGroups)
	for i := range uint64(prefetchGroups) {
		out = append(out, derivation(formPrefetch, prefetchName(i)))
	}
	return out
}

// prefetchGroup gives the name of a host's group. It is the form of the facts of the
// hosts in it, and the name of the listener.
func prefetchGroup(fqdn string) string {
	return prefetchName(xxhash.Sum64String(fqdn) % prefetchGroups)
}

func prefetchName(i uint64) string { return fmt.Sprintf("prefetch_%02x", i) }

// prefetch makes the hidden listeners of one group. They are closed-world with the
// same needs as the public ones: the first response with listeners must have all.
func (x *Rules) prefetch(group string, r *index.Reader) {
	var names []string
	for _, f := range r.Facts(group, index.NeedMonotone, allKinds...) {
		names = append(names, strings.TrimPrefix(f.Key, group+"/"))
	}
	if len(names) > 0 {
		x.emitPrefetch(group, names, 0, r)
	}
}

// emitPrefetch halves the group until its parts are small enough. depth counts the
// bits of the hash that are used up, beyond those of the group.
func (x *Rules) emitPrefetch(name string, names []string, depth int, r *index.Reader) {
	if len(names) <= maxPrefetch {
		r.Emit(index.Draft{
			Type: typeListener, Name: name, Body: marshal(x.prefetchListener(name, names)), ClosedWorld: true,
			Refs: keys(typeSecret, names),
		})
		return
	}
	if depth == 0 {
		name += "_"
	}
	for bit := range uint64(2) {
		half := slices.DeleteFunc(slices.Clone(names), func(fqdn string) bool {
			return xxhash.Sum64String(fqdn)/prefetchGroups>>depth&1 != bit
		})
		if len(half) > 0 {
			x.emitPrefetch(name+strconv.FormatUint(bit, 2), half, depth+1, r)
		}
	}
}

func (x *Rules) prefetchListener(name string, names []string) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name:              name,
		ListenerSpecifier: &listenerv3.Listener_InternalListener{InternalListener: &listenerv3.Listener_InternalListenerConfig{}},
		FilterChains:      []*listenerv3.FilterChain{{TransportSocket: tlsSocket(packed(onDemandContext(x.opts.anyVersions(), names...)))}},
	}
}
