package translate

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// Protocols that a Service is spoken to in. The empty one is HTTP/1.1.
const (
	protocolTLS = "tls"
	protocolH2  = "h2"
	protocolH2C = "h2c"
)

// service is a port of a Service that a route refers to.
type service struct {
	namespace, name string
	port            int32
	// portName and protocol are empty while the Service is not known.
	portName string
	protocol string
}

// portRef names a port by number, or by name when the number is 0.
type portRef struct {
	number int32
	name   string
}

func (p portRef) String() string {
	if p.number == 0 {
		return p.name
	}
	return strconv.Itoa(int(p.number))
}

// lookUp finds a port of a Service. A Service that is not known may well exist:
// it is then taken to have the port.
func lookUp(r *index.Reader, ns, name string, port portRef) (service, error) {
	s := service{namespace: ns, name: name, port: port.number}
	o, presence := r.Get(kinds.Service, ns, name)
	switch presence {
	case index.Missing:
		return s, fmt.Errorf("service %q not found", ns+"/"+name)
	case index.NotKnown:
		return s, nil
	}
	return s, s.resolve(o.Body.(*corev1.Service), port)
}

func (s *service) resolve(svc *corev1.Service, port portRef) error {
	p, err := servicePortOf(svc, port)
	if err != nil {
		return err
	}
	if svc.Spec.Type == corev1.ServiceTypeExternalName && svc.Spec.ExternalName != "" {
		return fmt.Errorf("%s/%s is an ExternalName service, these are not currently enabled. See the config.enableExternalNameService config file setting", svc.Namespace, svc.Name)
	}
	s.port, s.portName, s.protocol = p.Port, p.Name, protocolOf(svc, p)
	return nil
}

func servicePortOf(svc *corev1.Service, port portRef) (*corev1.ServicePort, error) {
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		if (port.number == 0 || p.Port != port.number) && (port.number != 0 || p.Name != port.name) {
			continue
		}
		if p.Protocol != "" && p.Protocol != corev1.ProtocolTCP {
			return nil, fmt.Errorf("unsupported service protocol %q", p.Protocol)
		}
		return p, nil
	}
	return nil, fmt.Errorf("port %q on service %q not matched", port, svc.Namespace+"/"+svc.Name)
}

// protocolOf: appProtocol, when it is set, wins over the annotations.
func protocolOf(svc *corev1.Service, p *corev1.ServicePort) string {
	if p.AppProtocol != nil {
		switch *p.AppProtocol {
		case "kubernetes.io/h2c":
			return protocolH2C
		case "https":
			return protocolTLS
		default: // http, kubernetes.io/ws, and what is not known
			return ""
		}
	}
	if protocol := annotatedProtocol(svc.Annotations, p.Name); protocol != "" && p.Name != "" {
		return protocol
	}
	return annotatedProtocol(svc.Annotations, strconv.Itoa(int(p.Port)))
}

// annotatedProtocol reads projectcontour.io/upstream-protocol.*: lists of port
// names and numbers.
func annotatedProtocol(annotations map[string]string, port string) string {
	if len(annotations) == 0 {
		return ""
	}
	for _, protocol := range []string{protocolTLS, protocolH2C, protocolH2} {
		list := annotations["projectcontour.io/upstream-protocol."+protocol]
		for p := range strings.SplitSeq(list, ",") {
			if strings.TrimSpace(p) == port {
				return protocol
			}
		}
	}
	return ""
}
