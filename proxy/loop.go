package proxy

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// ends are the two ends of a connection; no other connection of a host has the same ones at a time. One end alone is not enough: a port that
// we call from may serve a client for another connection.
type ends struct{ caller, called netip.AddrPort }

// dialled are the connections to the upstream that are open. A client that calls over one of them is this process: --upstream leads back to
// --listen, and each request would be sent on without end, until no connection is left for anybody.
//
// What translates addresses on the way hides that; a Service in front of this pod may.
type dialled struct {
	mu   sync.RWMutex // guards open
	open map[ends]struct{}
}

func (d *dialled) add(c *net.TCPConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[ends]struct{}{}
	}
	d.open[ends{endOf(c.LocalAddr()), endOf(c.RemoteAddr())}] = struct{}{}
}

// remove comes before the connection is closed: behind that its ends may be another's.
func (d *dialled) remove(c *net.TCPConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, ends{endOf(c.LocalAddr()), endOf(c.RemoteAddr())})
}

// carries reports whether the request has come over one of them.
func (d *dialled) carries(r *http.Request) bool {
	caller, err := netip.ParseAddrPort(r.RemoteAddr)
	called, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if err != nil || called == nil {
		return false
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	_, ok := d.open[ends{plainEnd(caller), endOf(called)}]
	return ok
}

// endOf is the zero AddrPort for what is no TCP address.
func endOf(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	return plainEnd(tcp.AddrPort())
}

// plainEnd: an IPv4 address is the same whichever kind of socket tells it.
func plainEnd(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
