package main

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// handshake gives the name on the certificate that the server shows.
func handshake(t *testing.T, r *tlsReloader, ca *testCA, client ...tls.Certificate) (name string, err error) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", r.config())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	answered := make(chan error, 1)
	go func() { answered <- acceptOne(l) }()
	c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: ca.pool(), Certificates: client})
	if err != nil {
		return "", errors.Join(err, <-answered)
	}
	defer c.Close()
	if err := <-answered; err != nil {
		return "", err
	}
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func acceptOne(l net.Listener) error {
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	return c.(*tls.Conn).Handshake()
}

func TestTLSWantsAClientCertificateOfTheCA(t *testing.T) {
	ca, stranger, dir := newTestCA(t), newTestCA(t), t.TempDir()
	r, err := newTLSReloader(ca.serverFiles(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	mine := ca.issue("edge-1", filepath.Join(dir, "a.crt"), filepath.Join(dir, "a.key"))
	theirs := stranger.issue("edge-2", filepath.Join(dir, "b.crt"), filepath.Join(dir, "b.key"))
	if name, err := handshake(t, r, ca, mine); err != nil || name != "server 1" {
		t.Errorf("with a certificate: %q, %v", name, err)
	}
	if _, err := handshake(t, r, ca); err == nil {
		t.Error("a client without a certificate was let in")
	}
	if _, err := handshake(t, r, ca, theirs); err == nil {
		t.Error("a client with another CA's certificate was let in")
	}
}

func TestTLSFilesAreReadAgain(t *testing.T) {
	ca, dir := newTestCA(t), t.TempDir()
	files := ca.serverFiles()
	r, err := newTLSReloader(files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	client := ca.issue("edge-1", filepath.Join(dir, "a.crt"), filepath.Join(dir, "a.key"))
	check := func(when, want string) {
		t.Helper()
		if name, err := handshake(t, r, ca, client); err != nil || name != want {
			t.Errorf("%s: %q, %v; want %q", when, name, err, want)
		}
	}
	check("at first", "server 1")

	// Half of a rotation: the certificate is there, its key is not yet.
	newKey := filepath.Join(dir, "new.key")
	ca.issue("server 2", files.cert, newKey)
	touch(t, files.cert, 1)
	check("with a key that does not fit", "server 1")

	if err := os.Rename(newKey, files.key); err != nil {
		t.Fatal(err)
	}
	touch(t, files.key, 2)
	check("with both files", "server 2")

	if err := os.Remove(files.clientCA); err != nil {
		t.Fatal(err)
	}
	check("without the CA's file", "server 2")
}

// touch gives a file a time of its own, whatever the clock's resolution.
func touch(t *testing.T, file string, n int) {
	t.Helper()
	at := time.Now().Add(time.Duration(n) * time.Minute)
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}
