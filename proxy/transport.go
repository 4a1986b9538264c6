package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"
)

// maxHeadBytes bounds the head of an upstream's answer, its 1xx heads included.
const maxHeadBytes = 1 << 20

// newTransport is a connection pool to the upstream. ours gets to know its connections.
func newTransport(connIdle time.Duration, ours *dialled) *http.Transport {
	return &http.Transport{
		// No proxy from the environment: nothing but the configured upstream is ever dialled.
		Proxy:       nil,
		DialContext: dialUpstream(&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}, ours),
		// The standard 2 idle connections a host cause reconnect storms against a single upstream.
		MaxIdleConns:        4096,
		MaxIdleConnsPerHost: 4096,
		IdleConnTimeout:     connIdle,
		TLSHandshakeTimeout: 10 * time.Second,
		// The client's Accept-Encoding is forwarded as sent; the transport must neither add one nor undo the answer's.
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeadBytes,
		// One read takes many events of a fast stream, and each read is a write to the client. What is written is a head and
		// a small body; a larger one bypasses the buffer.
		ReadBufferSize:  32 << 10,
		WriteBufferSize: 8 << 10,
		// A non-nil empty map keeps HTTP/2 off for https upstreams.
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
}

func dialUpstream(d *net.Dialer, ours *dialled) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, addr)
		if tcp, ok := c.(*net.TCPConn); ok && err == nil {
			ours.add(tcp)
			return upstreamConn{tcp, ours}, nil
		}
		return c, err
	}
}

// takeSlot waits for a slot at the upstream, in the order of arrival; there is a bound on their number.
func (h *Handler) takeSlot(ctx context.Context) error {
	if h.slots.Acquire(ctx, 1) != nil {
		return fmt.Errorf("wait for a slot at the upstream: %w", context.Cause(ctx))
	}
	return nil
}

// askUpstream is a round trip that must not end in another protocol: the transport hands out the connection of a 101 as its body, and no
// context ends a read of that.
func (h *Handler) askUpstream(r *http.Request) (*http.Response, error) {
	res, err := h.transport.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusSwitchingProtocols {
		res.Body.Close()
		return nil, errSwitched
	}
	return res, err
}
