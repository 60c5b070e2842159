package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// guard stands before everything. The listener has no accounts: whoever reaches it
// may read. What it defends against is a browser that is made to ask on somebody
// else's behalf:
//
//   - a page of another site whose name was made to lead here (DNS rebinding): the
//     Host must be an address, localhost, or a name from Options.Hosts;
//   - a page of another site that posts here: refused by its origin;
//   - text of ours that is taken for a script: nothing runs but what /static serves.
func (s *Server) guard(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "a page of another origin may not change anything here", http.StatusForbidden)
	}))
	next = origin.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !s.hostAllowed(r.Host) {
			http.Error(w, "the host in the address is not known here: use the IP address or localhost, or start holdfast with --admin-hosts", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// hostAllowed: a name that an attacker owns can be made to lead to any address; an
// address, and localhost, can not.
func (s *Server) hostAllowed(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if _, err := netip.ParseAddr(name); err == nil || name == "" || name == "localhost" {
		return true
	}
	return slices.ContainsFunc(s.o.Hosts, func(x string) bool { return strings.EqualFold(x, name) })
}

// authorized stands before what changes something, and before what costs much. On
// loopback whoever is on the machine may; elsewhere, and wherever a token is set,
// it takes the token.
func (s *Server) authorized(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.o.Token == "" {
			if s.o.Exposed {
				http.Error(w, "this needs a token on an address that other machines reach, and none is set: start holdfast with --admin-token-file", http.StatusForbidden)
				return
			}
			next(w, r)
			return
		}
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || !sameToken(given, s.o.Token) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="holdfast"`)
			http.Error(w, "this needs the token of --admin-token-file: Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		next(w, r)
	}
}

// sameToken takes the same time whatever is given, and whatever its length.
func sameToken(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
