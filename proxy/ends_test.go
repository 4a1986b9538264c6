package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// quietFor reports what comes on a wire that has to stay silent while something is held back.
func (w *wire) quietFor(d time.Duration) {
	w.t.Helper()
	w.conn.SetReadDeadline(time.Now().Add(d))
	if b, err := w.br.Peek(1); err == nil {
		rest, _ := w.br.Peek(w.br.Buffered())
		w.t.Errorf("the client has %q before the record is durable (%d bytes)", rest, len(b))
	}
	w.conn.SetReadDeadline(time.Now().Add(3 * patience))
}

// The head of an answer without a body is its end, and ReverseProxy flushes it on a timer of its own.
func TestEmptyAnswers_waitForTheirRecord(t *testing.T) {
	for name, head := range map[string]string{
		"no length":         "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Type: application/json\r\n\r\n",
		"no content":        "HTTP/1.1 204 No Content\r\n\r\n",
		"an error":          "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
		"an empty stream":   "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Type: text/event-stream\r\n\r\n",
		"an encoded stream": "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := chatSample()
			up := newUpstream(t, func(c *call) { c.say(head); c.keepAlive() })
			r := start(t, up.url())
			unlock := r.lockRollout("r")
			w := dial(t, r.addr)
			w.ask("POST", "/ng-rollout/r"+s.path, s.ask)
			up.next()
			w.quietFor(200 * time.Millisecond)
			unlock()
			if got := w.head(); !strings.HasPrefix(got, head[:12]) || !strings.Contains(got, "X-Rolltap-Call-Id: ") {
				t.Errorf("the client got %q", got)
			}
			var status int
			fmt.Sscanf(head, "HTTP/1.1 %d", &status)
			r.record("r").expect(t, "status_code", status, "upstream_status_code", status, "response", nil, "rolltap.response_bytes", 0)
		})
	}
}

func TestEmptyAnswer_requiredAndNotDurableIsAborted(t *testing.T) {
	s := chatSample()
	up := newUpstream(t, func(c *call) { c.reply(200, "application/json", "") })
	r := start(t, up.url(), func(c *Config) { c.Capture = CaptureRequired })
	defer r.breakStore()()
	if got := r.exchange("/ng-rollout/r"+s.path, s.ask); !got.cut || got.status != 0 {
		t.Errorf("the client got %d, cut %v; nothing of it is durable", got.status, got.cut)
	}
	if line := r.logged(); line["outcome"] != "aborted" {
		t.Errorf("logged %v", line)
	}
}

// A body of known length ends with its last byte, whatever the events in it are: a stream without its terminal event too.
func TestStreamOfKnownLength_lastByteWaitsForTheRecord(t *testing.T) {
	for _, s := range samples() {
		gz := bytes.Join(encoded(t, "gzip", append(s.events[:len(s.events)-1:len(s.events)-1], "")), nil)
		for name, body := range map[string]string{
			"whole events":       s.before(),
			"half an event":      s.before() + s.terminal()[:4],
			"comments":           ": nothing\n\n",
			"an encoded stream":  string(gz),
			"no events at all":   "hello",
			"terminal, more":     s.stream() + ": bye\n\n",
			"an encoded comment": string(bytes.Join(encoded(t, "gzip", []string{": hi\n\n", ""}), nil)),
		} {
			t.Run(s.dialect+"/"+name, func(t *testing.T) {
				t.Parallel()
				var header []string
				if strings.Contains(name, "encoded") {
					header = []string{"Content-Encoding", "gzip"}
				}
				up := newUpstream(t, func(c *call) { c.reply(200, "text/event-stream", body, header...) })
				r := start(t, up.url())
				unlock := r.lockRollout("r")
				w := dial(t, r.addr)
				w.ask("POST", "/ng-rollout/r"+s.path, s.askStream)
				up.next()
				res, err := http.ReadResponse(w.br, &http.Request{Method: "POST"})
				if err != nil {
					t.Fatal(err)
				}
				w.conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
				early, _ := io.ReadAll(res.Body)
				if len(early) >= len(body) {
					t.Errorf("all %d bytes are with the client before the record is durable", len(early))
				}
				unlock()
				w.conn.SetReadDeadline(time.Now().Add(patience))
				// http keeps the error of the read that ran out of time, so the rest is read from the connection.
				rest := make([]byte, len(body)-len(early))
				if _, err := io.ReadFull(w.br, rest); err != nil || string(early)+string(rest) != body {
					t.Errorf("got %q and %q, %v", early, rest, err)
				}
				r.record("r")
			})
		}
	}
}
