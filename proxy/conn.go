package proxy

import (
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// progressListener hands out client connections whose writes fail once the client has stopped reading for limit.
type progressListener struct {
	net.Listener
	limit   time.Duration // 0: never
	buffers *bufferPool   // to gather writes in
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
	return &progressConn{Conn: tcp, tcp: tcp, limit: l.limit, buffers: l.buffers}, nil
}

// connKey is the key of a request's context under which the server keeps its connection: net/http hands it out in no other way.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
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

	buffers   *bufferPool
	gathering bool
	gathered  []byte // of buffers, nil: nothing was
}

// gatherBytes is what a connection gathers at most: a read of the gate, and what frames it.
const gatherBytes = 32<<10 + 6<<10

// gather keeps what is written until send: net/http writes a large chunk in three pieces, the beginning that fits into its buffer,
// the rest, and a line end. Nothing else may write to the connection meanwhile.
func (c *progressConn) gather() { c.gathering = true }

// send writes what was gathered, and tells how much of it was not written.
func (c *progressConn) send() (unsent int, err error) {
	c.gathering = false
	if c.gathered == nil {
		return 0, nil
	}
	n, err := c.write(c.gathered)
	unsent = len(c.gathered) - n
	c.buffers.Put(c.gathered[:cap(c.gathered)])
	c.gathered = nil
	return unsent, err
}

// CloseWrite is what net/http and httputil look for, to end one direction without a reset.
func (c *progressConn) CloseWrite() error { return c.tcp.CloseWrite() }

// Write fails with os.ErrDeadlineExceeded when the client took nothing for the limit (and an eighth of it).
func (c *progressConn) Write(p []byte) (int, error) {
	if !c.gathering {
		return c.write(p)
	}
	if c.gathered == nil && len(p) <= gatherBytes {
		c.gathered = c.buffers.Get()[:0]
	}
	if len(p) <= cap(c.gathered)-len(c.gathered) {
		c.gathered = append(c.gathered, p...)
		return len(p), nil
	}
	_, err := c.send()
	c.gathering = true
	if err != nil {
		return 0, err
	}
	return c.write(p)
}

func (c *progressConn) write(p []byte) (int, error) {
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
