package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
)

// segments is how many pieces with data have arrived on a connection. On the loopback device each write is one.
func segments(t *testing.T, c *net.TCPConn) int {
	t.Helper()
	info := tcpInfo(c)
	if info == nil {
		t.Fatal("the system does not tell")
	}
	return int(info.Data_segs_in)
}

// A head and a body that is in memory leave in one write, whoever made the body, and so do the end of a stream and that of its body: each write wakes
// the other side once more.
func TestSmallMessagesAreOneWrite(t *testing.T) {
	translated := func(dialect string) func(*Config) { return func(c *Config) { c.UpstreamDialects = []string{dialect} } }
	for name, row := range map[string]struct {
		client, upstream string
		change           func(*Config)
		edited           bool // on the way back: its length is not known beforehand
	}{
		"as it came":            {"chat", "chat", everyDialect, false},
		"renamed":               {"chat", "chat", func(c *Config) { c.Model = "served" }, true},
		"messages to chat":      {"messages", "chat", translated("chat"), false},
		"responses to chat":     {"responses", "chat", translated("chat"), false},
		"chat to messages":      {"chat", "messages", translated("messages"), false},
		"responses to messages": {"responses", "messages", translated("messages"), false},
		"chat to responses":     {"chat", "responses", translated("responses"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, stream := range []bool{false, true} {
				s, up := sampleOf(row.client), sampleOf(row.upstream)
				asked := make(chan int, 1)
				u := newUpstream(t, func(k *call) {
					k.Body()
					asked <- segments(t, k.conn)
					if !stream {
						k.reply(200, "application/json", up.unary)
						return
					}
					events := up.stream()
					k.say(replyHead(200, "text/event-stream", "Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(events), events))
					k.keepAlive()
				})
				r := start(t, u.url(), row.change, func(c *Config) { c.Rewrite.MaxTokensLimit = 0 })
				w := dial(t, r.addr)
				ask, most := s.ask, 1
				switch {
				case stream:
					ask, most = s.askStream, 3 // the head, what does not wait for the end, and the end with what ends the body
				case row.edited:
					most = 2
				}
				w.send(fmt.Sprintf("POST /ng-rollout/r%s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", s.path, len(ask), ask))
				if n := wait(t, "a request", asked); n != 1 {
					t.Errorf("stream %v: the request came in %d pieces", stream, n)
				}
				res, err := http.ReadResponse(w.br, nil)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				if err != nil || res.StatusCode != 200 {
					t.Fatalf("status %d, %v: %s", res.StatusCode, err, body)
				}
				if n := segments(t, w.conn); n > most {
					t.Errorf("stream %v: the answer came in %d pieces, want %d", stream, n, most)
				}
				if !stream && !row.edited && res.ContentLength != int64(len(body)) {
					t.Errorf("the answer's length is said to be %d and is %d", res.ContentLength, len(body))
				}
			}
		})
	}
}
