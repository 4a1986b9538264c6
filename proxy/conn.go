package proxy

import (
	"errors"
	"net"
	"os"
	"time"
)

// progressListener hands out client connections whose writes fail once the client has stopped reading for limit.
type progressListener struct {
	net.Listener
	limit time.Duration // 0: never
}

func (l progressListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok || l.limit <= 0 {
		return c, nil
	}
	return &progressConn{Conn: tcp, tcp: tcp, limit: l.limit}, nil
}

// progressConn is a client connection with a write deadline that moves with the client's progress: a client that reads
// slowly is served for as long as it takes, one that has stopped frees the engine's slot. net/http knows only a deadline
// for the whole answer. One goroutine writes at a time, as net/http does.
//
// The connection is embedded as what every connection is: io.Copy would go round Write by a ReadFrom, and run into the
// deadline that the last Write has left.
type progressConn struct {
	net.Conn
	tcp   *net.TCPConn // the same connection
	limit time.Duration
	armed time.Time // the deadline that the connection has now
}

// CloseWrite is what net/http and httputil look for, to end one direction without a reset.
func (c *progressConn) CloseWrite() error { return c.tcp.CloseWrite() }

// Write fails with os.ErrDeadlineExceeded when the client took nothing for the limit (and an eighth of it).
func (c *progressConn) Write(p []byte) (int, error) {
	now := time.Now()
	step := c.limit / 8
	// Moving a deadline costs as much as a small write; one that is still ahead will do, since it only makes us look.
	if c.armed.Sub(now) < step/2 {
		if err := c.arm(now.Add(step)); err != nil {
			return 0, err
		}
	}
	written, progress, taken := 0, now, int64(-1)
	for {
		n, err := c.tcp.Write(p[written:])
		written += n
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return written, err
		}
		now = time.Now()
		// A write goes on only when there is room for a lot; what the client's system has acknowledged tells earlier.
		if t := acknowledged(c.tcp); n > 0 || t > taken {
			progress, taken = now, t
		}
		if now.Sub(progress) >= c.limit {
			return written, err
		}
		if err := c.arm(now.Add(step)); err != nil {
			return written, err
		}
	}
}

func (c *progressConn) arm(t time.Time) error {
	c.armed = t
	return c.SetWriteDeadline(t)
}
