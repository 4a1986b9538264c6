package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"

	"rolltap/capture"
)

// lendFrom is the size from which a body is lent to the transport: the memory of such a copy is used again, so it has to be known
// when the transport is done with it. The transport does not know that such a body is in memory, and writes the head on its own;
// it would write a part of a body of this size on its own anyway.
const lendFrom = 8 << 10

// lentBody reads what a copy holds in memory, and tells the copy when nobody does any more. The transport may close it from another
// goroutine than the one that reads.
type lentBody struct {
	kept *capture.Copy

	mu      sync.Mutex // guards the rest
	rest    []byte
	readers int // those who look at rest, and one until Close
	closed  bool
}

// begin hands out the next bytes, at most so many; end has to follow unless there is an error.
func (b *lentBody) begin(most int64) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, http.ErrBodyReadAfterClose
	case len(b.rest) == 0:
		return nil, io.EOF
	}
	b.readers++
	return b.rest[:min(most, int64(len(b.rest)))], nil
}

// end tells that n of them were read, and that they are not looked at any more.
func (b *lentBody) end(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest = b.rest[n:]
	b.leave()
}

// leave is called with mu held.
func (b *lentBody) leave() {
	if b.readers--; b.readers == 0 {
		b.rest = nil
		b.kept.Return()
	}
}

func (b *lentBody) Read(p []byte) (int, error) {
	rest, err := b.begin(int64(len(p)))
	if err != nil {
		return 0, err
	}
	n := copy(p, rest)
	b.end(n)
	return n, nil
}

// writeTo writes the next bytes, at most so many, as they lie in memory.
func (b *lentBody) writeTo(w io.Writer, most int64) (int, error) {
	rest, err := b.begin(most)
	if err != nil {
		return 0, err
	}
	n, err := w.Write(rest)
	b.end(n)
	return n, err
}

func (b *lentBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		b.leave()
	}
	return nil
}

// upstreamConn is a connection to the upstream that a lent body is written to from where it lies, in one system call when the
// upstream reads as fast. The standard one copies it through a new buffer of 32 KiB.
type upstreamConn struct {
	*net.TCPConn
	ours *dialled // which know it until it is closed
}

func (c upstreamConn) Close() error {
	c.ours.remove(c.TCPConn)
	return c.TCPConn.Close()
}

// ReadFrom implements io.ReaderFrom, which the transport writes bodies with.
func (c upstreamConn) ReadFrom(r io.Reader) (int64, error) {
	bound, ok := r.(*io.LimitedReader) // to the announced length
	if !ok {
		return c.TCPConn.ReadFrom(r)
	}
	body, ok := bound.R.(*lentBody)
	if !ok {
		return c.TCPConn.ReadFrom(r)
	}
	total := int64(0)
	for bound.N > 0 {
		n, err := body.writeTo(c.TCPConn, bound.N)
		bound.N -= int64(n)
		total += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
