package translate

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// headerPolicy is what is done to the headers of a request or response.
type headerPolicy struct {
	set        []*corev3.HeaderValueOption // by name
	remove     []string
	host       string // new Host
	hostHeader string // the header that holds the new Host
}

// side is which headers a policy is about.
type side bool

const (
	request  side = true
	response side = false
)

// readHeaders checks a policy. variables are those of ours that may stand in
// values as %NAME%.
func readHeaders(p *contourv1.HeadersPolicy, of side, variables map[string]string) (headerPolicy, error) {
	var out headerPolicy
	if p == nil {
		return out, nil
	}
	seen := map[string]bool{}
	for _, e := range p.Set {
		key := http.CanonicalHeaderKey(e.Name)
		if seen[key] {
			return out, fmt.Errorf("duplicate header addition: %q", key)
		}
		seen[key] = true
		if err := out.setHeader(key, e.Value, of, variables); err != nil {
			return out, err
		}
	}
	clear(seen)
	for _, name := range p.Remove {
		key := http.CanonicalHeaderKey(name)
		if seen[key] {
			return out, fmt.Errorf("duplicate header removal: %q", key)
		}
		seen[key] = true
		if err := removable(key); err != nil {
			return out, err
		}
		out.remove = append(out.remove, key)
	}
	slices.SortFunc(out.set, func(a, b *corev3.HeaderValueOption) int { return cmp.Compare(a.Header.Key, b.Header.Key) })
	slices.Sort(out.remove)
	return out, nil
}

func (p *headerPolicy) setHeader(key, value string, of side, variables map[string]string) error {
	if key == "Host" {
		if of == response {
			return fmt.Errorf("rewriting %q header is not supported", key)
		}
		if m := hostFromHeader.FindStringSubmatch(value); m != nil {
			p.hostHeader = http.CanonicalHeaderKey(m[1])
		} else {
			p.host = value
		}
		return nil
	}
	if msgs := validation.IsHTTPHeaderName(key); len(msgs) > 0 {
		return fmt.Errorf("invalid set header %q: %v", key, msgs)
	}
	v := overwrite(key, escape(value, variables))
	if err := v.Header.Validate(); err != nil {
		return fmt.Errorf("invalid value of set header %q: %w", key, err)
	}
	p.set = append(p.set, v)
	return nil
}

// removable: Envoy refuses to remove Host, and would reject everything else with it.
func removable(key string) error {
	if key == "Host" {
		return fmt.Errorf("invalid remove header %q: it can't be removed", key)
	}
	if msgs := validation.IsHTTPHeaderName(key); len(msgs) > 0 {
		return fmt.Errorf("invalid remove header %q: %v", key, msgs)
	}
	return nil
}

func overwrite(key, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: key, Value: value},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

// empty reports whether the policy changes nothing that a route has to say in a
// weighted cluster.
func (p *headerPolicy) empty() bool { return len(p.set) == 0 && len(p.remove) == 0 && p.host == "" }

var (
	hostFromHeader = regexp.MustCompile(`%REQ\(([A-Za-z0-9-]+)\)%`)
	// requestOperator is the one operator with an argument that passes:
	// %REQ(name?other):length%.
	requestOperator = regexp.MustCompile(`^%REQ\(:?[\w-]+(\?:?[\w-]+)?\)(:\d+)?%`)
	plainOperator   = regexp.MustCompile(`^%([A-Z0-9_]+)%`)
)

// operators without arguments that users may write.
var operators = map[string]bool{
	"DOWNSTREAM_REMOTE_ADDRESS": true, "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT": true,
	"DOWNSTREAM_LOCAL_ADDRESS": true, "DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT": true,
	"DOWNSTREAM_LOCAL_PORT": true, "DOWNSTREAM_LOCAL_URI_SAN": true, "DOWNSTREAM_PEER_URI_SAN": true,
	"DOWNSTREAM_LOCAL_SUBJECT": true, "DOWNSTREAM_PEER_SUBJECT": true, "DOWNSTREAM_PEER_ISSUER": true,
	"DOWNSTREAM_TLS_SESSION_ID": true, "DOWNSTREAM_TLS_CIPHER": true, "DOWNSTREAM_TLS_VERSION": true,
	"DOWNSTREAM_PEER_FINGERPRINT_256": true, "DOWNSTREAM_PEER_FINGERPRINT_1": true,
	"DOWNSTREAM_PEER_SERIAL": true, "DOWNSTREAM_PEER_CERT": true,
	"DOWNSTREAM_PEER_CERT_V_START": true, "DOWNSTREAM_PEER_CERT_V_END": true,
	"HOSTNAME": true, "PROTOCOL": true, "UPSTREAM_REMOTE_ADDRESS": true,
	"RESPONSE_FLAGS": true, "RESPONSE_CODE_DETAILS": true,
}

// escape doubles every % that does not begin an operator which users may write,
// so that nothing else is read as one, and puts in our own variables.
func escape(value string, variables map[string]string) string {
	if !strings.Contains(value, "%") {
		return value
	}
	var b strings.Builder
	for i := 0; i < len(value); {
		rest := value[i:]
		if rest[0] != '%' {
			b.WriteByte(rest[0])
			i++
			continue
		}
		text, n := operator(rest, variables)
		b.WriteString(text)
		i += n
	}
	return b.String()
}

// operator reads what begins with a %: the text to put there, and how much of s
// it stands for.
func operator(s string, variables map[string]string) (text string, n int) {
	if m := plainOperator.FindStringSubmatch(s); m != nil {
		if v, ours := variables[m[1]]; ours {
			return v, len(m[0])
		}
		if operators[m[1]] {
			return m[0], len(m[0])
		}
	}
	if m := requestOperator.FindString(s); m != "" {
		return m, len(m)
	}
	return "%%", 1
}
