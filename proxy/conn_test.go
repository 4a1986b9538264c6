package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// connPair is a client connection and the server's end of it, with small buffers so that they fill quickly.
func connPair(t *testing.T, limit time.Duration) (client *net.TCPConn, server net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := progressListener{ln, limit, newBufferPool(gatherBytes)}.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client, server = c.(*net.TCPConn), <-accepted
	client.SetReadBuffer(4 << 10)
	if pc, ok := server.(*progressConn); ok {
		pc.tcp.SetWriteBuffer(8 << 10)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func TestClientThatStoppedReadingIsGivenUp(t *testing.T) {
	const limit = 200 * time.Millisecond
	_, server := connPair(t, limit)
	began := time.Now()
	_, err := server.Write(make([]byte, 8<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("write to a client that reads nothing: got %v, want a deadline", err)
	}
	if took := time.Since(began); took < limit {
		t.Errorf("given up after %s, want at least %s", took, limit)
	}
}

func TestClientThatReadsSlowlyIsServed(t *testing.T) {
	const limit = time.Second // a system with a full window looks for room only a few times a second
	client, server := connPair(t, limit)
	want := bytes.Repeat([]byte("0123456789abcdef"), 8<<10)
	got := make(chan []byte, 1)
	go func() {
		var all []byte
		tick := time.NewTicker(limit / 12)
		defer tick.Stop()
		buf := make([]byte, 8<<10)
		for {
			n, err := client.Read(buf)
			all = append(all, buf[:n]...)
			if err != nil {
				got <- all
				return
			}
			if len(all) < len(want)/2 {
				<-tick.C
			}
		}
	}()
	began := time.Now()
	if _, err := server.Write(want); err != nil {
		t.Fatalf("a client that makes progress was given up after %s: %v", time.Since(began), err)
	}
	server.Close()
	if b := <-got; !bytes.Equal(b, want) {
		t.Errorf("the client got %d bytes, want %d", len(b), len(want))
	}
}

func TestListenerWithoutLimitLeavesConnectionsAlone(t *testing.T) {
	client, server := connPair(t, 0)
	if _, ok := server.(*progressConn); ok {
		t.Error("the connection is wrapped though there is no limit")
	}
	server.Write([]byte("x"))
	server.Close()
	if b, _ := io.ReadAll(client); string(b) != "x" {
		t.Errorf("got %q, want x", b)
	}
}

func TestGatheredWritesArriveInOrder(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces []int
	}{
		{"nothing", nil},
		{"a chunk in three pieces", []int{4096, 28 << 10, 2}},
		{"more than is gathered", []int{4096, 32 << 10, 8 << 10, 2}},
		{"one piece that is larger than all that is gathered", []int{10, gatherBytes + 1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, server := connPair(t, time.Minute)
			conn := server.(*progressConn)
			got := make(chan []byte, 1)
			go func() {
				all, err := io.ReadAll(client)
				if err != nil {
					t.Error(err)
				}
				got <- all
			}()
			var want []byte
			conn.gather()
			for i, n := range c.pieces {
				p := bytes.Repeat([]byte{byte('a' + i)}, n)
				want = append(want, p...)
				if w, err := conn.Write(p); w != n || err != nil {
					t.Fatalf("piece %d: wrote %d, %v; want %d", i, w, err, n)
				}
			}
			if unsent, err := conn.send(); unsent != 0 || err != nil {
				t.Fatalf("send: %d unsent, %v", unsent, err)
			}
			if conn.gathered != nil || conn.gathering {
				t.Error("the connection still gathers")
			}
			conn.Write([]byte("end"))
			conn.Close()
			if b := <-got; !bytes.Equal(b, append(want, "end"...)) {
				t.Errorf("the client got %d bytes, want %d, or in another order", len(b), len(want)+3)
			}
		})
	}
}

func TestGatheredWriteTellsWhatWasNotSent(t *testing.T) {
	_, server := connPair(t, 100*time.Millisecond)
	conn := server.(*progressConn)
	for { // until the client, that does not read, has taken all that it can
		if _, err := conn.Write(make([]byte, 64<<10)); err != nil {
			break
		}
	}
	conn.gather()
	if n, err := conn.Write(make([]byte, 32<<10)); n != 32<<10 || err != nil {
		t.Fatalf("gathering: %d, %v", n, err)
	}
	if unsent, err := conn.send(); unsent != 32<<10 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("send: %d unsent, %v; want all of it, and a deadline", unsent, err)
	}
}
