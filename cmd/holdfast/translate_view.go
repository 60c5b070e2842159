package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/translate"
)

// resourceView is one xDS resource as translate prints it.
type resourceView struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	// Sources are the objects that a person would look at.
	Sources []string `json:"sources,omitempty"`
	// Provenance says, for each kind, whether objects of it were used, and how
	// the resource relies on the absence of others.
	Provenance []basisView `json:"provenance,omitempty"`
	Refs       []string    `json:"refs,omitempty"`
	// ClosedWorld: a new Envoy gets it only when all its needs are complete.
	ClosedWorld bool            `json:"closedWorld,omitempty"`
	Resource    json.RawMessage `json:"resource"`
}

type basisView struct {
	Kind  string   `json:"kind"`
	Found bool     `json:"found"`
	Needs []string `json:"needs,omitempty"`
}

var needNames = []struct {
	need index.Need
	name string
}{
	{index.NeedMissing, "missing"},
	{index.NeedStrict, "strict"},
	{index.NeedMonotone, "monotone"},
	{index.NeedRemoval, "removal"},
}

func viewResources(snap *index.Snapshot, types []string, wanted func(name string) bool) ([]resourceView, error) {
	out := []resourceView{}
	for _, url := range types {
		for r := range snap.Resources(url) {
			if !wanted(r.Name) {
				continue
			}
			v, err := viewResource(snap, r)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.ResourceKey, err)
			}
			out = append(out, v)
		}
	}
	return out, nil
}

func viewResource(snap *index.Snapshot, r *index.Resource) (resourceView, error) {
	v := resourceView{Type: r.Type, Name: r.Name, Version: snap.Token(r), ClosedWorld: r.ClosedWorld}
	for _, s := range r.Sources {
		v.Sources = append(v.Sources, s.String())
	}
	for _, b := range r.Provenance {
		v.Provenance = append(v.Provenance, viewBasis(b))
	}
	for _, ref := range r.Refs {
		v.Refs = append(v.Refs, ref.String())
	}
	m, err := translate.Decode(r)
	if err != nil {
		return v, err
	}
	if err := redact(m.ProtoReflect()); err != nil {
		return v, err
	}
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return v, err
	}
	// protojson varies its spaces on purpose.
	var compact bytes.Buffer
	err = json.Compact(&compact, raw)
	v.Resource = compact.Bytes()
	return v, err
}

func viewBasis(b index.Basis) basisView {
	v := basisView{Kind: string(b.Kind), Found: b.Found}
	for _, n := range needNames {
		if b.Need&n.need != 0 {
			v.Needs = append(v.Needs, n.name)
		}
	}
	return v
}

func writeResourceViews(w io.Writer, format string, views []resourceView) error {
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(views)
	}
	for _, v := range views {
		text, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "---\n# %s %s\n%s", lastPart(v.Type), v.Name, text); err != nil {
			return err
		}
	}
	return nil
}
