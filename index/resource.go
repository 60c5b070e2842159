package index

import (
	"github.com/cespare/xxhash/v2"
)

// Revision counts the index's commits.
type Revision uint64

// Digest identifies a resource's body.
type Digest uint64

// DigestOf hashes a body.
func DigestOf(body []byte) Digest { return Digest(xxhash.Sum64(body)) }

// ResourceKey names an xDS resource: a type URL and a name.
type ResourceKey struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// String gives "type name" with the type's last segment.
func (k ResourceKey) String() string { return shortType(k.Type) + " " + k.Name }

func shortType(url string) string {
	for i := len(url) - 1; i >= 0; i-- {
		if url[i] == '.' || url[i] == '/' {
			return url[i+1:]
		}
	}
	return url
}

// TypeSpec describes a resource type to the index.
type TypeSpec struct {
	URL string
	// Feeds lists every kind that can feed a resource of this type. It is what
	// the removal of a resource with a foreign token, and a "does not exist",
	// rest upon.
	Feeds []Kind
	// Aliasing is nil when every name has its own resource or none.
	Aliasing *Aliasing
}

// Resource is one xDS resource. Rows are immutable and shared by all readers.
type Resource struct {
	ResourceKey
	// Ordinal is a small number that is unique among the type's live resources
	// and tombstones, for bit sets.
	Ordinal uint32
	// Body is the serialized message, made deterministically, once.
	Body   []byte
	Digest Digest
	Provenance
	// Refs are the resources that this one refers to.
	Refs []ResourceKey
	// ClosedWorld marks a resource that says "and everything else is not there"
	// (a Listener, the fallback RouteConfiguration): it is sent to a client that
	// holds nothing only when all its needs are complete.
	ClosedWorld bool
	// Sources are the objects that a person would look at: the owners.
	Sources []ObjectKey
	Maker   DerivationID
	// Modified is the revision of the last change of body or needs.
	Modified Revision
}

// Tombstone is a resource that was derived and no longer is.
type Tombstone struct {
	// Last is the resource as it was.
	Last *Resource
	// Provenance is what Last had, joined with that of the run which no longer
	// made it.
	Provenance
	Removed Revision
}
