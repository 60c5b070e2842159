package holdfast

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Status is what the tests need of /status.
type Status struct {
	Revision uint64     `json:"revision"`
	Complete bool       `json:"complete"`
	Kinds    []Kind     `json:"kinds"`
	Streams  []Stream   `json:"streams"`
	Withheld []Withheld `json:"withheld"`
	Problems []Problem  `json:"problems"`

	Raw json.RawMessage `json:"-"` // all of it
}

// Kind is the state of a watched kind.
type Kind struct {
	Kind     string `json:"kind"`
	State    string `json:"state"`
	Complete bool   `json:"complete"`
	Frontier string `json:"frontier"`
	Error    string `json:"error"`
	Objects  int    `json:"objects"`
}

// Problem is what holdfast has to say about an object.
type Problem struct {
	Object  struct{ Kind, Namespace, Name string } `json:"object"`
	Field   string                                 `json:"field"`
	Message string                                 `json:"message"`
}

// Subject gives the object as holdfast's log writes it, "Kind ns/name".
func (p *Problem) Subject() string {
	o := p.Object
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Stream is a connected Envoy.
type Stream struct {
	Node     string `json:"node"`
	Revision uint64 `json:"revision"`
	Types    []Type `json:"types"`
}

// Type is a stream's state for one resource type.
type Type struct {
	Type        string `json:"type"`
	Subscribed  int    `json:"subscribed"`
	Held        int    `json:"held"`
	InFlight    int    `json:"inFlight"`
	Responses   uint64 `json:"responses"`
	Resources   uint64 `json:"resources"`
	Removed     uint64 `json:"removed"`
	Bytes       uint64 `json:"bytes"`
	Acks        uint64 `json:"acks"`
	Nacks       uint64 `json:"nacks"`
	Quarantined []struct {
		Message string `json:"message"`
	} `json:"quarantined"`
}

// Withheld sums up sends or removals that wait for the same kinds.
type Withheld struct {
	Type      string   `json:"type"`
	Action    string   `json:"action"`
	Reason    string   `json:"reason"`
	Missing   []Lack   `json:"missing"`
	Resources []string `json:"resources"` // some of them
	Count     int      `json:"count"`
}

// Lack is a kind that something waits for.
type Lack struct {
	Kind string `json:"kind"`
}

// Sent is what holdfast sent on its present streams.
type Sent struct {
	Responses, Resources, Removed, Bytes, Nacks uint64
}

// Sent adds up all streams and types.
func (s *Status) Sent() Sent {
	var out Sent
	for _, stream := range s.Streams {
		for _, t := range stream.Types {
			out.Responses += t.Responses
			out.Resources += t.Resources
			out.Removed += t.Removed
			out.Bytes += t.Bytes
			out.Nacks += t.Nacks
		}
	}
	return out
}

// Minus gives what was sent since an earlier moment of the same streams.
func (s Sent) Minus(before Sent) Sent {
	return Sent{s.Responses - before.Responses, s.Resources - before.Resources, s.Removed - before.Removed, s.Bytes - before.Bytes, s.Nacks - before.Nacks}
}

// Stream finds an Envoy by its node id.
func (s *Status) Stream(node string) *Stream {
	for i := range s.Streams {
		if s.Streams[i].Node == node {
			return &s.Streams[i]
		}
	}
	return nil
}

// Kind finds a kind, or gives its zero value.
func (s *Status) Kind(name string) Kind {
	i := slices.IndexFunc(s.Kinds, func(k Kind) bool { return k.Kind == name })
	if i < 0 {
		return Kind{}
	}
	return s.Kinds[i]
}

// Lists gives an error unless every kind but those excepted is complete.
func (s *Status) Lists(except ...string) error {
	var missing []string
	for _, k := range s.Kinds {
		if !k.Complete && !slices.Contains(except, k.Kind) {
			missing = append(missing, fmt.Sprintf("%s is %s (%s)", k.Kind, k.State, k.Error))
		}
	}
	if len(s.Kinds) == 0 {
		return errors.New("no kinds in the status")
	}
	if missing != nil {
		return errors.New(strings.Join(missing, ", "))
	}
	return nil
}

// Quiet gives an error unless the Envoy is connected, was compared with the
// present revision, and owes no acknowledgement.
func (s *Status) Quiet(node string) error {
	stream := s.Stream(node)
	if stream == nil {
		return fmt.Errorf("%s is not connected", node)
	}
	if stream.Revision < s.Revision {
		return fmt.Errorf("%s is at revision %d of %d", node, stream.Revision, s.Revision)
	}
	for _, t := range stream.Types {
		if t.InFlight > 0 {
			return fmt.Errorf("%s: %d responses of %s in flight", node, t.InFlight, t.Type)
		}
	}
	return nil
}

// WaitsFor counts what is withheld because of a kind.
func (s *Status) WaitsFor(kind string) int {
	n := 0
	for _, w := range s.Withheld {
		if slices.ContainsFunc(w.Missing, func(l Lack) bool { return l.Kind == kind }) {
			n += w.Count
		}
	}
	return n
}

// Problem finds what is said about a field of an object; nil if nothing is.
func (s *Status) Problem(subject, field string) *Problem {
	for i := range s.Problems {
		if p := &s.Problems[i]; p.Subject() == subject && p.Field == field {
			return p
		}
	}
	return nil
}
