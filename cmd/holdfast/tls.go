package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

// tlsFiles are the files of the xDS listener's mutual TLS.
type tlsFiles struct{ cert, key, clientCA string }

func (f *tlsFiles) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.cert, "xds-tls-cert", "", "certificate of the xDS listener (PEM); read again when it changes, as are the next two")
	flags.StringVar(&f.key, "xds-tls-key", "", "its private key (PEM)")
	flags.StringVar(&f.clientCA, "xds-client-ca", "", "CA of the Envoys' client certificates (PEM)")
}

func (f *tlsFiles) validate() error {
	if (f.cert == "") != (f.key == "") {
		return usagef("--xds-tls-cert and --xds-tls-key go together")
	}
	if f.clientCA != "" && f.cert == "" {
		return usagef("--xds-client-ca needs --xds-tls-cert and --xds-tls-key")
	}
	return nil
}

func (f *tlsFiles) enabled() bool { return f.cert != "" }

// mutual reports whether clients must show a certificate.
func (f *tlsFiles) mutual() bool { return f.enabled() && f.clientCA != "" }

// tlsReloader serves what the files hold. They are looked at, not read, at each
// handshake; Envoys connect seldom. Files that turn unreadable or do not fit
// together (a rotation half done) leave the last good ones in use.
type tlsReloader struct {
	files  tlsFiles
	logger *slog.Logger

	mu     sync.Mutex
	loaded *tls.Config
	stamps [3]fileStamp
}

type fileStamp struct {
	modified time.Time
	size     int64
}

// newTLSReloader reads the files once; at the start an error is final.
func newTLSReloader(files tlsFiles, logger *slog.Logger) (*tlsReloader, error) {
	r := &tlsReloader{files: files, logger: logger}
	var err error
	if r.stamps, err = files.stamps(); err != nil {
		return nil, err
	}
	r.loaded, err = files.load()
	return r, err
}

// config gives the listener's configuration.
func (r *tlsReloader) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return r.current(), nil },
	}
}

func (r *tlsReloader) current() *tls.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	stamps, err := r.files.stamps()
	if err == nil && stamps == r.stamps {
		return r.loaded
	}
	var fresh *tls.Config
	if err == nil {
		r.stamps = stamps
		fresh, err = r.files.load()
	}
	if err != nil {
		r.logger.Warn("xDS TLS files cannot be used; the last good ones stay in use", "error", err)
		return r.loaded
	}
	r.logger.Info("xDS TLS files were read again")
	r.loaded = fresh
	return fresh
}

// stamps of the certificate, the key and the CA; a file that is not asked for
// has the zero stamp.
func (f *tlsFiles) stamps() (out [3]fileStamp, err error) {
	for i, path := range []string{f.cert, f.key, f.clientCA} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return out, err
		}
		out[i] = fileStamp{info.ModTime(), info.Size()}
	}
	return out, nil
}

func (f *tlsFiles) load() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("--xds-tls-cert %s, --xds-tls-key %s: %w", f.cert, f.key, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}}
	if f.clientCA == "" {
		return c, nil
	}
	pool, err := readCA(f.clientCA)
	if err != nil {
		return nil, fmt.Errorf("--xds-client-ca %s: %w", f.clientCA, err)
	}
	c.ClientCAs, c.ClientAuth = pool, tls.RequireAndVerifyClientCert
	return c, nil
}

func readCA(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in it")
	}
	return pool, nil
}
