// Package scenario runs small stories told in YAML: objects, requests to a real
// Envoy, expected answers, changes, more requests.
//
//	about: the longest prefix wins
//	features: [HP-06, HP-10]
//	backends: {web: amber, blog: birch}      # Services, port 80, with an EndpointSlice
//	certificates: {cert: [shop.test]}        # Secrets of type kubernetes.io/tls
//	objects: [...]                           # Kubernetes objects
//	steps:
//	- get: http://shop.test/blog/x
//	  want: {status: 200, backend: birch}
//	- apply: [...]                           # more objects, or new forms of old ones
//	- delete: [HTTPProxy/shop]               # or Kind/namespace/name
//
// An object without a namespace is put into the scenario's own, which is named
// after its file. In any string ${amber.ip} and ${amber.port} stand for a
// backend's address, ${ns} for the namespace, ${wild.crt} and ${wild.key} for a
// certificate of wild.test, in base64.
//
// A want must become true within a few seconds and be true twice in a row.
package scenario

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Scenario is one file.
type Scenario struct {
	Name     string   `json:"-"` // of the file, without .yaml
	About    string   `json:"about"`
	Features []string `json:"features"`
	// Backends: Service name → backend name.
	Backends map[string]string `json:"backends"`
	// Certificates: Secret name → names in its certificate.
	Certificates map[string][]string `json:"certificates"`
	Objects      []Object            `json:"objects"`
	Steps        []Step              `json:"steps"`
}

// Object is a Kubernetes object as it is written.
type Object map[string]any

// Step is one of: a request with what it wants, changes, removals.
type Step struct {
	Get     string            `json:"get"` // URL; http or https chooses the listener
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	SNI     *string           `json:"sni"` // the URL's host unless given; "" is none
	HTTP2   bool              `json:"http2"`
	TLS     string            `json:"tls"`   // the only version offered: "1.2" or "1.3"
	Times   int               `json:"times"` // send so many; 1 when 0
	Want    *Want             `json:"want"`

	Apply  []Object `json:"apply"`
	Delete []string `json:"delete"` // Kind/name or Kind/namespace/name
}

// Want is what an answer must be. What is not given is not looked at.
type Want struct {
	Status      int                `json:"status"`
	Backend     string             `json:"backend"`
	Body        *string            `json:"body"`
	Headers     map[string]*string `json:"headers"` // null: not there
	Seen        *Seen              `json:"seen"`
	Certificate string             `json:"certificate"` // a name in the served one
	Refused     bool               `json:"refused"`     // no answer: no connection, or no handshake
	// Share of the answers of each backend, over `times`, give or take 0.15.
	Share map[string]float64 `json:"share"`
	// Mirrored is a backend that must have received a copy.
	Mirrored string `json:"mirrored"`
}

// Seen is the request as the backend saw it.
type Seen struct {
	Path    string             `json:"path"`
	Host    string             `json:"host"`
	Proto   string             `json:"proto"`
	TLS     *bool              `json:"tls"`
	SNI     string             `json:"sni"`
	Headers map[string]*string `json:"headers"`
}

// Load reads all scenarios of a folder.
func Load(dir string, words map[string]string) ([]Scenario, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var out []Scenario
	for _, f := range files {
		s, err := load(f, words)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(f), err)
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no scenario", dir)
	}
	return out, nil
}

// placeholder leaves a lone $ to regular expressions.
var placeholder = regexp.MustCompile(`\$\{[a-z.]+\}`)

func load(file string, words map[string]string) (Scenario, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return Scenario{}, err
	}
	s := Scenario{Name: strings.TrimSuffix(filepath.Base(file), ".yaml")}
	own := map[string]string{"ns": s.Namespace()}
	maps.Copy(own, words)
	text := placeholder.ReplaceAllStringFunc(string(raw), func(m string) string {
		v, ok := own[m[2:len(m)-1]]
		if !ok {
			err = fmt.Errorf("%s stands for nothing", m)
		}
		return v
	})
	if err != nil {
		return s, err
	}
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		return s, err
	}
	if s.About == "" || len(s.Features) == 0 || len(s.Steps) == 0 {
		return s, fmt.Errorf("needs about, features and steps")
	}
	return s, nil
}

// Namespace is where a scenario's objects are, unless they say otherwise.
func (s *Scenario) Namespace() string { return "story-" + s.Name }

// String describes the step by its request or its changes.
func (s *Step) String() string {
	switch {
	case s.Get != "":
		return strings.TrimSpace(s.Method + " " + s.Get)
	case len(s.Apply) > 0:
		return "apply"
	default:
		return fmt.Sprintf("delete %v", s.Delete)
	}
}
