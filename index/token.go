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
// to 2s0. "I~0" says that the kind was needed, but not complete: whoever takes
// the resource away must have observed it, at whatever version. A resource that
// refers to very many others has their number behind that, in decimal: ".6814".
const (
	tokenForm  = "h1"
	tokenMarks = ".,:~"
)

// Token is a parsed version token.
type Token struct {
	Digest Digest
	Vector []Held
	// Weight is the number of references, where there are very many; else 0.
	Weight int
	// Foreign: the token has another source id, or is not in our form. Then
	// Vector is empty; Digest is still set when the form is ours, since the same
	// body needs no sending whoever made it. While our own source id is not known
	// yet, a token that has one is foreign and keeps its vector: it is held to both.
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
func (s *Snapshot) Token(r *Resource) string { return string(s.AppendToken(make([]byte, 0, 64), r)) }

// AppendToken is Token for one who has a buffer.
func (s *Snapshot) AppendToken(b []byte, r *Resource) []byte {
	b = append(b, tokenForm...)
	b = append(b, '.')
	b = strconv.AppendUint(b, uint64(r.Digest), 36)
	b = append(b, '.')
	b = append(b, s.source...)
	b = append(b, '.')
	for i := range r.Provenance {
		h := s.vouched(&r.Provenance[i])
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, s.index.codes[h.Kind]...)
		if h.Absent {
			b = append(b, '~')
		} else {
			b = append(b, ':')
		}
		b = strconv.AppendUint(b, uint64(h.Version), 36)
	}
	if w := r.weight(); w > 0 {
		b = append(b, '.')
		b = strconv.AppendInt(b, int64(w), 10)
	}
	return b
}

// weighty is the number of references from which on a token tells it.
const weighty = 100

func (r *Resource) weight() int {
	if len(r.Refs) < weighty {
		return 0
	}
	return len(r.Refs)
}

// TokenOf gives the parsed form of r's own token.
func (s *Snapshot) TokenOf(r *Resource) Token {
	return Token{Digest: r.Digest, Vector: s.vector(r), Weight: r.weight()}
}

// vector gives what r rests on, at the versions that s can vouch for.
func (s *Snapshot) vector(r *Resource) []Held {
	out := make([]Held, 0, len(r.Provenance))
	for i := range r.Provenance {
		out = append(out, s.vouched(&r.Provenance[i]))
	}
	return out
}

// vouched gives what a resource rests on of one kind. A kind on whose absence the
// resource relies was listed completely since it was derived, and it was not
// derived anew, so it is what the derivation makes of that list as well.
func (s *Snapshot) vouched(x *Basis) Held {
	v := x.Version
	if x.Need != 0 {
		if row := s.Kind(x.Kind); row != nil && row.Frontier.Observed {
			v = max(v, row.Listed)
		}
	}
	return Held{Kind: x.Kind, Version: v, Absent: !x.Found}
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
	vector, weight, heavy := strings.Cut(vector, ".")
	t := Token{Digest: Digest(d), Foreign: source != s.source}
	if t.Weight, err = strconv.Atoi(weight); heavy && (err != nil || t.Weight < weighty) {
		return Token{Digest: t.Digest, Foreign: true}
	}
	if t.Foreign && s.source != "" || vector == "" {
		return t
	}
	// A client that comes back brings tens of thousands: no room to spare in each.
	t.Vector = make([]Held, 0, strings.Count(vector, ",")+1)
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
