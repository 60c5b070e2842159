package translate

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// certificateNote is what is known of a Secret as a server certificate.
type certificateNote struct {
	flaw string // "" when Envoy can serve it
}

// secret makes the certificate <namespace>/<name>. A broken Secret keeps the
// last good version, a deleted one doesn't. When this process has seen no good
// version but an Envoy holds one, nothing is made, and so nothing replaces it.
func (x *Rules) secret(name string, r *index.Reader) {
	if x.onDemand() {
		x.goodSecret(name, r)
		return
	}
	ns, secretName := qualified(name, "")
	o, presence := r.Get(kinds.Secret, ns, secretName)
	if presence != index.Found {
		return
	}
	body := certificateBody(name, o, r)
	if body == nil {
		return
	}
	r.Emit(index.Draft{Type: typeSecret, Name: name, Body: body, Sources: []index.ObjectKey{o.ObjectKey}})
	r.SetFact(index.Fact{Key: factSecret + "/" + name})
}

// certificateBody gives the resource for a Secret as it is, or as it last was
// when it is broken; nil when nothing can be made.
func certificateBody(name string, o *index.Object, r *index.Reader) []byte {
	flaw := o.Note.(*certificateNote).flaw
	if flaw == "" {
		return certificateSecret(name, o.Body.(*corev1.Secret))
	}
	k := resourceKey(typeSecret, name)
	f := faultf("data", "", "SecretNotValid", "%s", flaw)
	last := r.Previous(k)
	if last == nil && !r.Witnessed(k) {
		r.Problem(f.on(o.ObjectKey, index.Error))
		return nil
	}
	r.Problem(staleFault(f).on(o.ObjectKey, index.Warning))
	if last == nil {
		return nil
	}
	return last.Body
}

func certificateSecret(name string, s *corev1.Secret) []byte {
	return marshal(&tlsv3.Secret{Name: name, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: inlineBytes(s.Data[corev1.TLSCertKey]),
		PrivateKey:       inlineBytes(s.Data[corev1.TLSPrivateKeyKey]),
	}}})
}

func inlineBytes(b []byte) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: b}}
}

// examine finds what would keep Envoy from serving a Secret's certificate.
func examine(s *corev1.Secret) *certificateNote {
	if err := checkCertificate(s); err != nil {
		return &certificateNote{flaw: err.Error()}
	}
	return sound
}

var sound = &certificateNote{} // shared: most Secrets have no flaw

func checkCertificate(s *corev1.Secret) error {
	switch s.Type {
	case corev1.SecretTypeTLS, corev1.SecretTypeOpaque, "":
	default:
		return fmt.Errorf("secret type is not %q or %q", corev1.SecretTypeTLS, corev1.SecretTypeOpaque)
	}
	chain, ok := s.Data[corev1.TLSCertKey]
	if !ok {
		return errors.New("missing TLS certificate")
	}
	leaf, err := checkChain(chain)
	if err != nil {
		return fmt.Errorf("invalid TLS certificate: %w", err)
	}
	key, ok := s.Data[corev1.TLSPrivateKeyKey]
	if !ok {
		return errors.New("missing TLS private key")
	}
	private, err := checkKey(key)
	if err != nil {
		return fmt.Errorf("invalid TLS private key: %w", err)
	}
	if err := checkAlgorithm(leaf); err != nil {
		return fmt.Errorf("invalid TLS certificate: %w", err)
	}
	if p, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !p.Equal(private.Public()) {
		return errors.New("invalid TLS private key: it does not belong to the certificate")
	}
	return nil
}

// blocks gives the PEM blocks of a bundle. Text around them is no fault, a block
// that doesn't parse is.
func blocks(data []byte) ([]*pem.Block, error) {
	var out []*pem.Block
	for {
		b, rest := pem.Decode(data)
		if b == nil {
			if bytes.Contains(data, []byte("-----BEGIN")) {
				return nil, errors.New("failed to parse PEM block")
			}
			return out, nil
		}
		out, data = append(out, b), rest
	}
}

func checkChain(data []byte) (*x509.Certificate, error) {
	list, err := blocks(data)
	if err != nil {
		return nil, err
	}
	var leaf *x509.Certificate
	for _, b := range list {
		if b.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("unexpected block type '%s'", b.Type)
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, err
		}
		if leaf == nil {
			leaf = c
		}
	}
	switch {
	case leaf == nil:
		return nil, errors.New("failed to locate certificate")
	case strings.TrimSpace(leaf.Subject.CommonName) == "" && len(leaf.DNSNames) == 0 && len(leaf.IPAddresses) == 0:
		return nil, errors.New("certificate has no common name or subject alt name")
	}
	return leaf, nil
}

func checkKey(data []byte) (crypto.Signer, error) {
	list, err := blocks(data)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(b *pem.Block) bool { return b.Type == "EC PARAMETERS" })
	switch len(list) {
	case 0:
		return nil, errors.New("failed to locate private key")
	case 1:
		return parseKey(list[0])
	default:
		return nil, errors.New("multiple private keys")
	}
}

func parseKey(b *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	switch b.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(b.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(b.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(b.Bytes)
	default:
		return nil, fmt.Errorf("unexpected block type '%s'", b.Type)
	}
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%T can't sign", key)
	}
	return signer, nil
}

// checkAlgorithm: Envoy takes RSA keys of 2048 bits or more, and ECDSA keys on
// the three NIST curves, and rejects the whole response for any other.
func checkAlgorithm(c *x509.Certificate) error {
	switch k := c.PublicKey.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() < 2048 {
			return fmt.Errorf("RSA keys of less than 2048 bits are not supported, this one has %d", k.N.BitLen())
		}
		return nil
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			return nil
		}
		return fmt.Errorf("ECDSA curve %s is not supported", k.Curve.Params().Name)
	default:
		return fmt.Errorf("%s keys are not supported", c.PublicKeyAlgorithm)
	}
}
