package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rolltap/capture"
)

// With no memory and no file for copies nothing is kept, and the body passes all the same.
func TestRequestOfWhichNothingCanBeKept_passesWhole(t *testing.T) {
	s := chatSample()
	up := newUpstream(t, func(c *call) { c.Body(); c.reply(200, "application/json", s.unary) })
	r := start(t, up.url())
	r.srv.handler.copyOptions.Budget = capture.NewBudget(0)
	r.srv.handler.copyOptions.Dir = filepath.Join(t.TempDir(), "missing")
	body := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("a", 100_000) + `"}]}`
	got := r.exchange("/ng-rollout/r"+s.path, body)
	if got.status != 200 {
		t.Errorf("answered %d", got.status)
	}
	if c := up.next(); c.Body() != body {
		t.Errorf("the upstream got %d bytes, want %d", len(c.Body()), len(body))
	}
	r.record("r").expect(t, "rolltap.outcome", "ok", "rolltap.request_bytes", len(body))
}

// The transport takes an idempotency key for leave to send again what the upstream may have read, bodies or none.
func TestRequestWithoutBody_isNeverRepeated(t *testing.T) {
	for _, key := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		for _, request := range []string{"POST /v1/load_lora_adapter", "DELETE /v1/files/1", "POST /ng-rollout/r/v1/chat/completions"} {
			t.Run(request+" "+key, func(t *testing.T) {
				asked := make(chan *call, 10)
				up := newUpstream(t, func(c *call) {
					asked <- c
					if strings.Contains(c.Head, "X-First") {
						c.reply(200, "application/json", `{}`)
					} // else the connection is closed without a word
				})
				r := start(t, up.url())
				method, path, _ := strings.Cut(request, " ")
				if res, _, err := r.do(method, path, "", "X-First", "1"); err != nil || res.StatusCode != 200 {
					t.Fatal(res, err)
				}
				wait(t, "the first request", asked)
				if res, _, err := r.do(method, path, "", key, "k1"); err != nil || res.StatusCode != 502 {
					t.Errorf("answered %v, %v, want 502", res, err)
				}
				c := wait(t, "the second request", asked)
				if c.Header.Get(key) != "k1" || c.Header.Get("Transfer-Encoding") != "" {
					t.Errorf("the upstream got %q", c.Head)
				}
				select {
				case again := <-asked:
					t.Errorf("the upstream got the request again: %q", again.Head)
				default:
				}
			})
		}
	}
}

// An upload that goes on is no silence of the upstream, on whichever path.
func TestSlowUpload_isNoSilence(t *testing.T) {
	for _, path := range []string{"/v1/upload", "/ng-rollout/r/v1/chat/completions"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			up := newUpstream(t, func(c *call) { c.Body(); c.reply(200, "application/json", "{}") })
			r := start(t, up.url(), func(c *Config) { c.UpstreamIdleTimeout = 200 * time.Millisecond })
			w := dial(t, r.addr)
			first := 2 << 20 // more than is held
			w.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", path, first+10, strings.Repeat(" ", first)))
			for range 10 {
				time.Sleep(50 * time.Millisecond)
				w.send(" ")
			}
			if head := w.head(); !strings.HasPrefix(head, "HTTP/1.1 200 ") {
				t.Errorf("got %q", head)
			}
		})
	}
}

// A client that never sends the body it announced holds a connection for a while, not for ever: the server would wait for
// it before it answers, or before it takes the next request.
func TestBodyThatNeverComes(t *testing.T) {
	for _, row := range []struct{ name, path, status string }{
		{"no token", "/v1/chat/completions", "401"},
		{"an invalid id", "/ng-rollout/-/v1/chat/completions", "400"},
		{"a call", "/ng-rollout/r/v1/chat/completions", ""},
		{"anything else", "/v1/upload", ""},
		{"anything else, answered early", "/early", "200"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			up := newUpstream(t, func(c *call) {
				if c.Target == "/early" {
					c.sayEarly("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
				io.Copy(io.Discard, c.br)
			})
			r := start(t, up.url(), func(c *Config) {
				if row.status == "401" {
					c.AuthTokenFile = tokenFileOf(t, "right\n")
				}
			})
			r.srv.handler.uploadSilence = 100 * time.Millisecond
			w := dial(t, r.addr)
			w.send("POST " + row.path + " HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf")
			w.conn.SetReadDeadline(time.Now().Add(patience / 2))
			got, err := io.ReadAll(w.br)
			if err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
				t.Errorf("the connection is still open: %v", err)
			}
			if row.status != "" && !strings.HasPrefix(string(got), "HTTP/1.1 "+row.status) || row.status == "" && len(got) > 0 {
				t.Errorf("the client got %q", got)
			}
			eventually(t, "nothing is in flight", func() bool { return r.srv.handler.inFlight.Load() == 0 })
		})
	}
}

// The server waits for the rest of an upload before it closes a connection; an abort must not wait with it.
func TestAbort_insideAnUploadIsSeenAtOnce(t *testing.T) {
	for _, path := range []string{"/v1/upload", "/ng-rollout/r/v1/chat/completions"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			up := newUpstream(t, func(c *call) {
				c.sayEarly(replyHead(200, "text/event-stream", "Transfer-Encoding: chunked") + "5\r\ndata:\r\n")
				time.Sleep(20 * time.Millisecond)
				c.reset()
			})
			r := start(t, up.url())
			w := dial(t, r.addr)
			w.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", path, 2<<20+100, strings.Repeat(" ", 2<<20)))
			w.conn.SetReadDeadline(time.Now().Add(patience / 2))
			if got, err := io.ReadAll(w.br); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection is still open behind %q", got)
			}
			eventually(t, "nothing is in flight", func() bool { return r.srv.handler.inFlight.Load() == 0 })
		})
	}
}

// What a long JSON answer says of itself is read although it has moved to a file, and so is what a long request asked for.
func TestLongBodies_areReadForTheRecord(t *testing.T) {
	s := chatSample()
	long := strings.Replace(s.unary, "Hello there", strings.Repeat("a", 3<<20), 1)
	up := newUpstream(t, func(c *call) { c.Body(); c.reply(200, "application/json", long) })
	r := start(t, up.url())
	ask := strings.Replace(s.askStream, `"hi"`, `"`+strings.Repeat("a", 2<<20)+`"`, 1)
	if got := r.exchange("/ng-rollout/r"+s.path, ask); got.body != long {
		t.Errorf("the client got %d bytes", len(got.body))
	}
	r.record("r").expect(t, "rolltap.usage.prompt_tokens", 3, "rolltap.finish_reason", "stop", "rolltap.upstream.model", "m", "rolltap.stream", true)
}

// The text of a stream under a coding that nobody here knows is evidence all the same.
func TestStreamUnderAnUnknownCoding_isKept(t *testing.T) {
	s := chatSample()
	up := newUpstream(t, func(c *call) {
		c.open(200, "text/event-stream", "Content-Encoding", "br")
		c.chunk("not really")
		c.chunk(" brotli")
		c.end()
	})
	r := start(t, up.url())
	if got := r.exchange("/ng-rollout/r"+s.path, s.askStream); got.body != "not really brotli" {
		t.Errorf("the client got %q", got.body)
	}
	r.record("r").expect(t, "rolltap.outcome", "ok", "error_category", "capture_parse_error", "response", nil, "response_raw", "not really brotli", "rolltap.truncated.0", nil)
}

// The copy of a request goes with its record, which an early answer has before the request was read to its end.
func TestCopyThatIsGone_isNoBrokenRequest(t *testing.T) {
	h := &Handler{}
	x := &exchange{h: h, request: capture.NewCopy(capture.CopyOptions{Memory: 1, Budget: capture.NewBudget(0), Dir: t.TempDir()})}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	x.ctx = ctx
	io.WriteString(x.request, every(1000))
	body := x.reader(x.request)
	if _, err := io.ReadFull(body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	x.request.Release()
	ended := make(chan error, 1)
	go func() {
		_, err := body.Read(make([]byte, 10))
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Errorf("the request broke with %v while its answer was under way", err)
	case <-time.After(50 * time.Millisecond):
		cancel(errEnded)
		if err := wait(t, "the reader ends with the exchange", ended); err == nil {
			t.Error("the reader goes on after the exchange")
		}
	}
}
