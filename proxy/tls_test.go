package proxy

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pairIn writes a certificate for 127.0.0.1 with the name, and its key, into the two files.
func pairIn(t testing.TB, certFile, keyFile, name string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// secure makes a sidecar speak TLS with a fresh certificate.
func secure(t testing.TB) (func(*Config), *x509.Certificate) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	cert := pairIn(t, certFile, keyFile, "first")
	return func(c *Config) { c.TLSCert, c.TLSKey = certFile, keyFile }, cert
}

// dialTLS shakes hands as a client that trusts the certificates.
func dialTLS(r *rig, protocols []string, most uint16, trusted ...*x509.Certificate) (*tls.Conn, error) {
	pool := x509.NewCertPool()
	for _, c := range trusted {
		pool.AddCert(c)
	}
	return tls.Dial("tcp", r.addr, &tls.Config{RootCAs: pool, NextProtos: protocols, MaxVersion: most, MinVersion: tls.VersionTLS10}) // old clients are part of the test
}

func TestTLS_servesAsWithout(t *testing.T) {
	s := messagesSample()
	up := newUpstream(t, func(c *call) {
		c.open(200, "text/event-stream")
		for _, e := range s.events {
			c.chunk(e)
		}
		c.end()
	})
	change, cert := secure(t)
	r := start(t, up.url(), change)
	c, err := dialTLS(r, []string{"h2", "http/1.1"}, 0, cert)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("the protocol is %q", got)
	}
	fmt.Fprintf(c, "POST /ng-rollout/r%s HTTP/1.1\r\nHost: proxy.test\r\nContent-Length: %d\r\n\r\n%s", s.path, len(s.askStream), s.askStream)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 || string(body) != s.stream() {
		t.Errorf("the stream is answered %s, %v\n%q", res.Status, err, body)
	}
	r.record("r").expect(t, "rolltap.outcome", "ok")

	plain := dial(t, r.addr)
	plain.ask("POST", "/ng-rollout/plain"+s.path, s.askStream)
	if res, body, err := plain.answer("POST"); err != nil || res.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS the answer is %v %q, %v", res, body, err)
	}
	if got := r.records("plain"); got != nil {
		t.Errorf("a call without TLS has the record %v", got)
	}
}

func TestTLS_readsItsFilesAgain(t *testing.T) {
	change, first := secure(t)
	r := start(t, "http://127.0.0.1:1", change)
	name := func(trusted ...*x509.Certificate) string {
		t.Helper()
		c, err := dialTLS(r, nil, 0, trusted...)
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := name(first); got != "first" {
		t.Fatalf("the certificate is %q", got)
	}
	// Half of a rotation: the new certificate with the old key.
	old, err := os.ReadFile(r.cfg.TLSKey)
	if err != nil {
		t.Fatal(err)
	}
	second := pairIn(t, r.cfg.TLSCert, r.cfg.TLSKey, "second")
	key, err := os.ReadFile(r.cfg.TLSKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.cfg.TLSKey, old, 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(filePoll) // real: the files are looked at by the clock of the connections
	if got := name(first, second); got != "first" {
		t.Errorf("between the two files the certificate is %q", got)
	}
	if r.logs.FilterMessageSnippet("cannot be read again").Len() == 0 {
		t.Error("nothing is said about files that do not fit")
	}
	if err := os.WriteFile(r.cfg.TLSKey, key, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new certificate", func() bool { return name(first, second) == "second" })
}

func TestTLS_settings(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	pairIn(t, path("a.crt"), path("a.key"), "a")
	pairIn(t, path("b.crt"), path("b.key"), "b")
	for _, row := range []struct{ cert, key, want string }{
		{"a.crt", "a.key", ""},
		{"a.crt", "b.key", "--tls-cert: tls: private key does not match"},
		{"a.crt", "none", "--tls-cert: open "},
		{"a.key", "a.crt", "--tls-cert: tls: "},
		{"a.crt", "", "--tls-key: is missing"},
		{"", "a.key", "--tls-cert: is missing"},
	} {
		cfg := testConfig(t, "http://127.0.0.1:1")
		for to, from := range map[*string]string{&cfg.TLSCert: row.cert, &cfg.TLSKey: row.key} {
			if from != "" {
				*to = path(from)
			}
		}
		err := cfg.Validate()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s with %s: %v, want %q", row.cert, row.key, err, row.want)
		}
	}
}
