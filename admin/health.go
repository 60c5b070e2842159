package admin

import (
	"fmt"
	"net/http"
	"strings"
)

func healthz(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

// readyz answers in the manner of Kubernetes' own components: a line for each
// check, [+] or [-]. Complete kinds are listed only with ?verbose.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	serving := s.o.Serving()
	var body strings.Builder
	fmt.Fprintln(&body, check(serving, "xds listener", "is serving", "is not serving"))
	complete := true
	for _, k := range s.o.Index.Snapshot().Kinds() {
		kind := viewKind(k)
		complete = complete && kind.Complete
		if !kind.Complete || kind.Error != "" || query.Has("verbose") {
			fmt.Fprintln(&body, check(kind.Complete, "kind "+kind.Kind, kind.sentence(), kind.sentence()))
		}
	}
	if !serving || (query.Has("complete") && !complete) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(&body, "not ready")
	} else {
		fmt.Fprintln(&body, "ready")
	}
	fmt.Fprint(w, body.String())
}

func check(good bool, subject, yes, no string) string {
	if good {
		return "[+] " + subject + " " + yes
	}
	return "[-] " + subject + " " + no
}

// sentence says how complete the kind is, and what went wrong last.
func (k *Kind) sentence() string {
	out := k.State
	switch {
	case k.Complete && k.Frontier != "":
		out += ", complete up to " + k.Frontier
	case k.Complete:
		out += ", complete"
	default:
		out += ", not complete"
	}
	if k.Error != "" {
		out += ": " + k.Error
	}
	return out
}
