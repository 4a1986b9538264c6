package proxy

import (
	"crypto/tls"
	"net"

	"go.uber.org/zap"
)

// loadPair reads a certificate chain and its key, and makes sure that they fit each other.
func loadPair(certFile, keyFile string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	return &pair, err
}

// tlsListener lets clients speak TLS, with what stands in the two files at the time of their handshake. The handshake has to
// end within the time that a client has for its headers; the server sees to that, which knows the connections of such a
// listener. HTTP/2 is not offered.
func tlsListener(ln net.Listener, certFile, keyFile string, log *zap.Logger) (net.Listener, error) {
	pair, err := openReloaded(log, func() (*tls.Certificate, error) { return loadPair(certFile, keyFile) }, certFile, keyFile)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(ln, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.get(), nil },
	}), nil
}
