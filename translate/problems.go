package translate

import (
	"fmt"

	"github.com/holdfast-xds/holdfast/index"
)

// Condition types of HTTPProxy, as Contour's API names them.
const (
	authError          = "AuthError"
	includeError       = "IncludeError"
	ipFilterError      = "IPFilterError"
	jwtError           = "JWTVerificationError"
	orphaned           = "Orphaned"
	prefixReplaceError = "PrefixReplaceError"
	rootNamespaceError = "RootNamespaceError"
	routeError         = "RouteError"
	serviceError       = "ServiceError"
	specError          = "SpecError"
	tcpProxyError      = "TCPProxyError"
	tlsError           = "TLSError"
	virtualHostError   = "VirtualHostError"

	reasonUnsupported = "NotSupported"
)

// fault is what is wrong with an object, before it is known which object it is.
// Kind and Reason are Contour's condition type and reason.
type fault struct {
	field, kind, reason, message string
}

func faultf(field, kind, reason, format string, args ...any) *fault {
	return &fault{field, kind, reason, fmt.Sprintf(format, args...)}
}

// on makes the problem of an object.
func (f *fault) on(k index.ObjectKey, s index.Severity) index.Problem {
	return index.Problem{Object: k, Severity: s, Field: f.field, Type: f.kind, Reason: f.reason, Message: f.message}
}

// unsupported is asked for and not implemented.
func unsupported(field, kind string) *fault {
	return faultf(field, kind, reasonUnsupported, "%s is not supported yet", field)
}
