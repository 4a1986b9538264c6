package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

func TestClose_withoutRunFreesBothPorts(t *testing.T) {
	s, err := Open(testConfig(t, "http://127.0.0.1:1"), Deps{Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{s.Addr(), s.AdminAddr()} {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			t.Errorf("%s is still taken: %v", addr, err)
			continue
		}
		ln.Close()
	}
}

// upgraded is a client's connection behind a 101.
func upgraded(t *testing.T, r *rig) *wire {
	t.Helper()
	w := dial(t, r.addr)
	w.send("GET /v1/realtime HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	if head := w.head(); !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		t.Fatalf("got %q", head)
	}
	return w
}

func echo(c *call) {
	c.say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	_, _ = io.Copy(c.conn, c.br)
}

// The write deadline of the head must not outlive it: behind a 101 nobody moved it again.
func TestUpgrade_outlivesTheWriteDeadlineOfItsHead(t *testing.T) {
	up := newUpstream(t, echo)
	r := start(t, up.url(), func(c *Config) { c.ClientWriteTimeout = 80 * time.Millisecond })
	w := upgraded(t, r)
	for range 3 {
		time.Sleep(100 * time.Millisecond) // the deadline passes
		w.send("ping")
		got := make([]byte, 4)
		if _, err := io.ReadFull(w.br, got); err != nil || string(got) != "ping" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	w.conn.CloseWrite()
	if _, err := io.ReadAll(w.br); err != nil {
		t.Errorf("the end: %v", err)
	}
}

// net/http forgets connections that were taken over; they are in flight all the same.
func TestDrain_waitsForUpgradedConnections(t *testing.T) {
	up := newUpstream(t, echo)
	r := start(t, up.url())
	w := upgraded(t, r)
	r.stop()
	eventually(t, "the port is closed", func() bool {
		c, err := net.Dial("tcp", r.addr)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	w.send("bye")
	got := make([]byte, 3)
	if _, err := io.ReadFull(w.br, got); err != nil || string(got) != "bye" {
		t.Fatalf("got %q, %v while draining", got, err)
	}
	w.conn.CloseWrite()
	if wait(t, "Run returns", r.ended); r.err != nil {
		t.Errorf("Run said %v", r.err)
	}
}

func TestDrain_cutsUpgradedConnectionsAndSaysSo(t *testing.T) {
	up := newUpstream(t, echo)
	r := start(t, up.url(), func(c *Config) { c.DrainTimeout = 100 * time.Millisecond })
	w := upgraded(t, r)
	r.stop()
	if wait(t, "Run returns", r.ended); !errors.Is(r.err, ErrCut) {
		t.Errorf("Run said %v, want ErrCut", r.err)
	}
	if rest, err := io.ReadAll(w.br); len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the client got %q, %v", rest, err)
	}
	if n := r.srv.handler.inFlight.Load(); n != 0 {
		t.Errorf("%d exchanges are in flight after Run", n)
	}
}

// Behind a 101 calls would be answered that nobody records.
func TestUpgrade_notOnModelCalls(t *testing.T) {
	s := chatSample()
	up := newUpstream(t, func(c *call) {
		if c.Header.Get("Upgrade") != "" {
			echo(c)
			return
		}
		c.reply(200, "application/json", s.unary)
	})
	r := start(t, up.url())
	got := r.exchange("/ng-rollout/r"+s.path, s.ask, "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "Http2-Settings", "AAMAAABkAAQCAAAAAAIAAAAA")
	if got.status != 200 || got.body != s.unary {
		t.Errorf("answered %d %q", got.status, got.body)
	}
	if head := up.next().Head; strings.Contains(head, "h2c") || strings.Contains(head, "Connection: ") {
		t.Errorf("the upstream got %q", head)
	}
}

func TestUpgrade_thatNobodyAskedForIsABrokenAnswer(t *testing.T) {
	s := chatSample()
	left := make(chan struct{})
	up := newUpstream(t, func(c *call) {
		c.say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		c.untilLeft()
		close(left)
	})
	r := start(t, up.url())
	if got := r.exchange("/ng-rollout/r"+s.path, s.ask); got.status != 502 {
		t.Errorf("answered %d", got.status)
	}
	wait(t, "the upstream's connection is closed", left)
	r.expectFacts("r", s, facts{status: 502, code: "upstream_unavailable", outcome: "upstream_error", category: "connection", upStatus: 101})
}
