package translate

import (
	"errors"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
)

// toHTTPS is the answer of a TLS host on the plain listener. It is shared.
var toHTTPS = &routev3.Route_Redirect{Redirect: &routev3.RedirectAction{
	SchemeRewriteSpecifier: &routev3.RedirectAction_HttpsRedirect{HttpsRedirect: true},
}}

// answer is a direct response without a body.
func answer(status uint32) *routev3.Route_DirectResponse {
	return &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: status}}
}

// maxDirectBody is what Envoy takes unless a RouteConfiguration raises it.
const maxDirectBody = 4096

func directResponse(p *contourv1.HTTPDirectResponsePolicy) (*routev3.Route_DirectResponse, error) {
	if p.StatusCode < 200 || p.StatusCode > 599 {
		return nil, fmt.Errorf("statusCode %d is not in the range 200-599", p.StatusCode)
	}
	out := answer(uint32(p.StatusCode))
	if p.Body == "" {
		return out, nil
	}
	if len(p.Body) > maxDirectBody {
		return nil, fmt.Errorf("body has %d bytes, at most %d are supported", len(p.Body), maxDirectBody)
	}
	out.DirectResponse.Body = &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: p.Body}}
	return out, nil
}

var redirectCodes = map[contourv1.RedirectResponseCode]routev3.RedirectAction_RedirectResponseCode{
	301: routev3.RedirectAction_MOVED_PERMANENTLY,
	302: routev3.RedirectAction_FOUND,
	303: routev3.RedirectAction_SEE_OTHER,
	307: routev3.RedirectAction_TEMPORARY_REDIRECT,
	308: routev3.RedirectAction_PERMANENT_REDIRECT,
}

func redirect(p *contourv1.HTTPRequestRedirectPolicy) (*routev3.Route_Redirect, error) {
	a := &routev3.RedirectAction{}
	if p.Path != nil && p.Prefix != nil {
		return nil, errors.New("cannot specify both redirect path and redirect prefix")
	}
	if p.Hostname != nil {
		a.HostRedirect = *p.Hostname
	}
	if p.Scheme != nil && *p.Scheme != "" {
		a.SchemeRewriteSpecifier = &routev3.RedirectAction_SchemeRedirect{SchemeRedirect: *p.Scheme}
	}
	if p.Port != nil {
		if *p.Port < 0 || *p.Port > 65535 {
			return nil, fmt.Errorf("port %d is not in the range 1-65535", *p.Port)
		}
		a.PortRedirect = uint32(*p.Port)
	}
	switch {
	case p.Path != nil && *p.Path != "":
		a.PathRewriteSpecifier = &routev3.RedirectAction_PathRedirect{PathRedirect: *p.Path}
	case p.Prefix != nil && *p.Prefix != "":
		a.PathRewriteSpecifier = &routev3.RedirectAction_PrefixRewrite{PrefixRewrite: *p.Prefix}
	}
	// The API server fills in 302; a folder does not.
	code := contourv1.RedirectResponseCode(302)
	if p.StatusCode != nil {
		code = *p.StatusCode
	}
	known, ok := redirectCodes[code]
	if !ok {
		return nil, fmt.Errorf("statusCode %d is not one of 301, 302, 303, 307 and 308", code)
	}
	a.ResponseCode = known
	return &routev3.Route_Redirect{Redirect: a}, nil
}
