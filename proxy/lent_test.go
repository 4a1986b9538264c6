package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"rolltap/capture"
)

// lend returns a lent body over text, whose copy is released, and a function that tells whether its memory is used again.
func lend(t *testing.T, text []byte) (body *lentBody, again func() bool) {
	t.Helper()
	o := capture.CopyOptions{Reuse: true, Budget: capture.NewBudget(64 << 20)}
	c := capture.NewCopy(o)
	c.Expect(int64(len(text)))
	room := c.Room()
	copy(room, text)
	c.Wrote(len(text))
	b, ok := c.Lend()
	if !ok {
		t.Fatal("not lent")
	}
	c.Release()
	return &lentBody{kept: c, rest: b, readers: 1}, func() bool { return usedAgain(o, room[:len(text)]) }
}

// usedAgain tells whether later copies get this memory.
func usedAgain(o capture.CopyOptions, mem []byte) bool {
	for range 8 {
		c := capture.NewCopy(o)
		c.Expect(int64(len(mem)))
		if &c.Room()[0] == &mem[0] {
			return true
		}
	}
	return false
}

// dialPair is an upstream's connection as the transport has it, and the upstream's end.
func dialPair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if client, err = dialUpstream(&net.Dialer{}, new(dialled))(t.Context(), "tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func TestALentBodyIsWrittenFromWhereItLies(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789abcdef"), 20<<10)
	body, _ := lend(t, text)
	client, server := dialPair(t)
	got := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(server)
		got <- b
	}()
	bound := &io.LimitedReader{R: body, N: int64(len(text)) + 1}
	n, err := io.Copy(client, bound)
	if n != int64(len(text)) || err != nil || bound.N != 1 {
		t.Errorf("wrote %d with %d left, %v", n, bound.N, err)
	}
	if more, err := body.Read(make([]byte, 1)); more != 0 || err != io.EOF {
		t.Errorf("behind the end: got %d %v", more, err)
	}
	body.Close()
	client.Close()
	if !bytes.Equal(<-got, text) {
		t.Error("something else arrived")
	}
}

func TestALentBodyIsNotWrittenBeyondItsBound(t *testing.T) {
	body, _ := lend(t, []byte("0123456789"))
	client, server := dialPair(t)
	if n, err := io.Copy(client, io.LimitReader(body, 4)); n != 4 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	client.Close()
	if got, _ := io.ReadAll(server); string(got) != "0123" {
		t.Errorf("got %q", got)
	}
	if rest, err := io.ReadAll(body); string(rest) != "456789" || err != nil {
		t.Errorf("rest %q %v", rest, err)
	}
}

func TestMemoryOfALentBodyWaitsForTheWriteThatIsGoingOn(t *testing.T) {
	text := make([]byte, 900<<10)
	body, again := lend(t, text)
	client, server := dialPair(t) // an upstream that reads nothing
	client.(upstreamConn).SetWriteBuffer(4 << 10)
	server.(*net.TCPConn).SetReadBuffer(4 << 10)
	done := make(chan error)
	go func() {
		_, err := io.Copy(client, io.LimitReader(body, int64(len(text))))
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("ended: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	body.Close()
	body.Close()
	if again() {
		t.Fatal("memory is used again that is being written")
	}
	client.Close()
	if err := <-done; err == nil {
		t.Error("no error")
	}
	if _, err := body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("read behind close: %v", err)
	}
}
