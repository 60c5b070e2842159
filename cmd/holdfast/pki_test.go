package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
)

// testCA signs certificates for 127.0.0.1 and holdfast.test.
type testCA struct {
	t      *testing.T
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

func newTestCA(t *testing.T) *testCA {
	t.Helper()
	ca := &testCA{t: t}
	ca.cert, ca.key = ca.make(&x509.Certificate{
		Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	return ca
}

func (ca *testCA) make(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	ca.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		ca.t.Fatal(err)
	}
	ca.serial++
	template.SerialNumber = big.NewInt(ca.serial)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		ca.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		ca.t.Fatal(err)
	}
	return cert, key
}

// issue writes a leaf's certificate and key, and gives it as a client uses it.
func (ca *testCA) issue(name, certFile, keyFile string) tls.Certificate {
	ca.t.Helper()
	cert, key := ca.make(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{"holdfast.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, ca.cert, ca.key)
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		ca.t.Fatal(err)
	}
	ca.write(certFile, "CERTIFICATE", cert.Raw)
	ca.write(keyFile, "EC PRIVATE KEY", der)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

func (ca *testCA) writeCA(file string) { ca.write(file, "CERTIFICATE", ca.cert.Raw) }

func (ca *testCA) write(file, kind string, der []byte) {
	ca.t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		ca.t.Fatal(err)
	}
}

func (ca *testCA) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(ca.cert)
	return p
}

// serverFiles issues what the xDS listener needs, into a new folder.
func (ca *testCA) serverFiles() tlsFiles {
	ca.t.Helper()
	dir := ca.t.TempDir()
	f := tlsFiles{cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key"), clientCA: filepath.Join(dir, "ca.crt")}
	ca.issue("server 1", f.cert, f.key)
	ca.writeCA(f.clientCA)
	return f
}

func clientCredentials(ca *testCA, client ...tls.Certificate) credentials.TransportCredentials {
	return credentials.NewTLS(&tls.Config{RootCAs: ca.pool(), Certificates: client})
}
