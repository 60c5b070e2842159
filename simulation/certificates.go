package simulation

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"
)

// pair is a certificate and its key, as PEM.
type pair struct{ cert, key []byte }

// pairs are made once, the same ones in every process: a seed must mean the same
// world wherever it is replayed.
var pairs = sync.OnceValue(func() []pair {
	var out []pair
	for i := range certificateCount {
		out = append(out, newPair(i))
	}
	return out
})

const certificateCount = 8

// epoch is when every world begins.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func newPair(i int) pair {
	scalar := make([]byte, 32)
	scalar[0], scalar[31] = 1, byte(i+1)
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(i + 1)),
		Subject:      pkix.Name{CommonName: fmt.Sprintf("simulated %d", i)},
		DNSNames:     []string{"*.test", "*.w.test"},
		NotBefore:    time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	// Without a source of randomness signatures are deterministic (RFC 6979).
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return pair{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
	}
}
