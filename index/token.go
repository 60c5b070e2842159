package index

import (
	"strconv"
	"strings"
)

// A version token is what is sent as a resource's version and handed back by
// the client in initial_resource_versions, so that provenance survives a restart
// of the server in the client:
//
//	h1.<digest>.<source>.<vector>       h1.1f8a0c….9f3c21d0.P:2s4,S:1k,I~2s0
//
// The digest and the versions are in base 36. The vector has one entry for each
// kind that the resource rests on: "P:2s4" objects of kind P were found, the
// highest at 2s4; "I~2s0" nothing of kind I was found, its list was complete up
// to 2s0. A kind that was needed but not complete has no entry.
const tokenForm = "h1"

// Token is a parsed version token.
type Token struct {
	Digest Digest
	Vector []Held
	// Foreign: the token has another source id, or is not in our form. Then
	// Vector is empty; Digest is still set when the form is ours, since the same
	// body needs no sending whoever made it.
	Foreign bool
	// Formless: not a token of ours at all.
	Formless bool
}

// Held is a token's entry for one kind.
type Held struct {
	Kind    Kind
	Version ResourceVersion
	// Absent: no object of the kind was found, Version is the list's.
	Absent bool
}

// Of gives the token's entry for a kind.
func (t *Token) Of(k Kind) (Held, bool) {
	for _, h := range t.Vector {
		if h.Kind == k {
			return h, true
		}
	}
	return Held{}, false
}

// Token gives the resource's version token. s must be of the index that made r.
func (s *Snapshot) Token(r *Resource) string {
	b := make([]byte, 0, 64)
	b = append(b, tokenForm...)
	b = append(b, '.')
	b = strconv.AppendUint(b, uint64(r.Digest), 36)
	b = append(b, '.')
	b = append(b, s.source...)
	b = append(b, '.')
	first := true
	for _, x := range r.Provenance {
		if !x.Known {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, s.index.codes[x.Kind]...)
		if x.Found {
			b = append(b, ':')
		} else {
			b = append(b, '~')
		}
		b = strconv.AppendUint(b, uint64(x.Version), 36)
	}
	return string(b)
}

// TokenOf gives the parsed form of r's own token.
func (s *Snapshot) TokenOf(r *Resource) Token {
	t := Token{Digest: r.Digest}
	for _, x := range r.Provenance {
		if x.Known {
			t.Vector = append(t.Vector, Held{Kind: x.Kind, Version: x.Version, Absent: !x.Found})
		}
	}
	return t
}

// ParseToken reads a version that a client says it holds.
func (s *Snapshot) ParseToken(version string) Token {
	form, rest, ok := strings.Cut(version, ".")
	digest, rest, ok2 := strings.Cut(rest, ".")
	source, vector, ok3 := strings.Cut(rest, ".")
	d, err := strconv.ParseUint(digest, 36, 64)
	if !ok || !ok2 || !ok3 || form != tokenForm || err != nil {
		return Token{Foreign: true, Formless: true}
	}
	t := Token{Digest: Digest(d), Foreign: source != s.source}
	if t.Foreign || vector == "" {
		return t
	}
	for e := range strings.SplitSeq(vector, ",") {
		h, ok := s.index.parseHeld(e)
		if !ok {
			return Token{Digest: t.Digest, Foreign: true}
		}
		t.Vector = append(t.Vector, h)
	}
	return t
}

func (ix *Index) parseHeld(e string) (Held, bool) {
	i := strings.IndexAny(e, ":~")
	if i < 1 {
		return Held{}, false
	}
	k, known := ix.kindOf[e[:i]]
	v, err := strconv.ParseUint(e[i+1:], 36, 64)
	if !known || err != nil {
		return Held{}, false
	}
	return Held{Kind: k, Version: ResourceVersion(v), Absent: e[i] == '~'}, true
}
