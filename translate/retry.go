package translate

import (
	"strconv"
	"strings"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// retries reads how often to retry: 0 and what is not set is once, -1 is never.
func retries(n int64) *wrapperspb.UInt32Value {
	switch {
	case n == -1:
		return wrapperspb.UInt32(0)
	case n <= 0:
		return wrapperspb.UInt32(1)
	default:
		return wrapperspb.UInt32(uint32(min(n, 1<<31)))
	}
}

// retryPolicy: a perTryTimeout that doesn't parse is Envoy's default.
func retryPolicy(p *contourv1.RetryPolicy) *routev3.RetryPolicy {
	if p == nil {
		return nil
	}
	out := &routev3.RetryPolicy{RetryOn: "5xx", NumRetries: retries(p.NumRetries), RetriableStatusCodes: p.RetriableStatusCodes}
	if len(p.RetryOn) > 0 {
		on := make([]string, 0, len(p.RetryOn))
		for _, r := range p.RetryOn {
			on = append(on, string(r))
		}
		out.RetryOn = strings.Join(on, ",")
	}
	if d, err := time.ParseDuration(p.PerTryTimeout); err == nil && d > 0 {
		out.PerTryTimeout = durationpb.New(d)
	}
	return out
}

// ingressRetryPolicy reads the annotations; without retry-on the others count
// for nothing.
func ingressRetryPolicy(ing *networkingv1.Ingress) (*routev3.RetryPolicy, *fault) {
	on := ing.Annotations[annotationRetryOn]
	if on == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(ing.Annotations[annotationNumRetries], 10, 32)
	if err != nil {
		n = 0
	}
	out := &routev3.RetryPolicy{RetryOn: on, NumRetries: retries(n)}
	perTry, err := parseTimeout(ing.Annotations[annotationPerTryTimeout])
	if err != nil {
		return out, annotationFault(annotationPerTryTimeout, err)
	}
	out.PerTryTimeout = perTry
	return out, nil
}
