package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestClientLeaves(t *testing.T) {
	type leaving struct {
		name   string
		stream bool
		script func(s sample, c *call)
		until  func(s sample) string // what the client reads before it leaves
		want   facts
		raw    func(s sample) string
		// response as in a row of the situations
		response string
	}
	rows := []leaving{
		{name: "before the head", script: func(_ sample, c *call) { c.untilLeft() },
			want: facts{outcome: "client_gone", category: "cancelled", unfounded: true}},
		{name: "inside a stream", stream: true, script: func(s sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(untilWord(s))
			c.untilLeft()
		}, until: untilWord, want: facts{status: 200, outcome: "client_gone", category: "cancelled", upStatus: 200}, raw: untilWord, response: "partial"},
		{name: "before the first event of a stream", stream: true, script: func(_ sample, c *call) {
			c.open(200, "text/event-stream")
			c.untilLeft()
		}, until: fixed(""), want: facts{status: 200, outcome: "client_gone", category: "cancelled", upStatus: 200}},
		{name: "inside a JSON answer", script: func(s sample, c *call) {
			c.say(replyHead(200, "application/json", fmt.Sprintf("Content-Length: %d", len(s.spaced()))) + s.unary[:20])
			c.untilLeft()
		}, until: func(s sample) string { return s.unary[:20] }, want: facts{status: 200, outcome: "client_gone", category: "cancelled", upStatus: 200},
			raw: func(s sample) string { return s.unary[:20] }},
	}
	for _, s := range samples() {
		for _, row := range rows {
			t.Run(s.dialect+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				freed := make(chan struct{})
				up := newUpstream(t, func(c *call) { row.script(s, c); close(freed) })
				r := start(t, up.url())
				w := dial(t, r.addr)
				ask := s.ask
				if row.stream {
					ask = s.askStream
				}
				w.ask("POST", "/ng-rollout/r"+s.path, ask)
				up.next()
				if row.until != nil {
					res, err := http.ReadResponse(w.br, &http.Request{Method: "POST"})
					if err != nil {
						t.Fatal(err)
					}
					want := row.until(s)
					got := make([]byte, len(want))
					if _, err := readFull(res, got); err != nil || string(got) != want {
						t.Fatalf("read %q, %v", got, err)
					}
				}
				w.conn.Close()
				wait(t, "the upstream is released", freed)
				rec := r.expectFacts("r", s, row.want)
				switch row.response {
				case "partial":
					rec.expect(t, "response."+s.foldedText, "Hello")
				default:
					rec.expect(t, "response", nil)
				}
				if row.raw == nil {
					rec.expect(t, "response_raw", nil)
				} else {
					rec.expect(t, "response_raw", row.raw(s))
				}
			})
		}
	}
}

func readFull(res *http.Response, p []byte) (int, error) {
	n := 0
	for n < len(p) {
		m, err := res.Body.Read(p[n:])
		n += m
		if err != nil && n < len(p) {
			return n, err
		}
	}
	return n, nil
}

// A client that has its whole answer and hangs up at once has not left: its record is the ordinary one (vector R13a).
func TestClientLeaves_rightAfterACompleteAnswer(t *testing.T) {
	up := newUpstream(t, func(c *call) {
		s := samples()[0]
		for _, one := range samples() {
			if one.path == c.Target {
				s = one
			}
		}
		switch {
		case strings.Contains(c.Body(), `"stream":true`):
			c.open(200, "text/event-stream")
			c.chunk(s.stream())
			c.end()
		case strings.Contains(c.Head, "X-Chunked"):
			c.open(200, "application/json")
			c.chunk(s.unary)
			c.end()
		default:
			c.reply(200, "application/json", s.unary)
		}
	})
	r := start(t, up.url())
	const each = 20
	for _, s := range samples() {
		for _, shape := range []string{"length", "chunked", "stream"} {
			id := s.dialect + "-" + shape
			for range each {
				w := dial(t, r.addr)
				ask, want, header := s.ask, s.unary, "X-None"
				switch shape {
				case "stream":
					ask, want = s.askStream, s.stream()
				case "chunked":
					header = "X-Chunked"
				}
				w.ask("POST", "/ng-rollout/"+id+s.path, ask, header, "1")
				res, err := http.ReadResponse(w.br, &http.Request{Method: "POST"})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := readFull(res, make([]byte, len(want))); err != nil {
					t.Fatal(err)
				}
				w.conn.SetLinger(0) // the rudest way
				w.conn.Close()
			}
			var all []record
			eventually(t, "all records of "+id, func() bool { all = r.records(id); return len(all) >= each })
			if len(all) != each {
				t.Errorf("%s: %d records, want %d", id, len(all), each)
			}
			for _, rec := range all {
				rec.expect(t, "rolltap.outcome", "ok", "error_category", nil, "response."+s.foldedText, s.text)
			}
		}
	}
}

// A client that has half-closed its connection still waits for its answer only in theory: net/http cannot tell it from one
// that has left. What matters is that there is one record and that no upload that was cut is taken for a request.
func TestClientLeaves_insideItsRequestBody(t *testing.T) {
	for _, row := range []struct{ name, head, part string }{
		{"a body of known length", "Content-Length: 100\r\n", `{"model":"m"`},
		{"a chunked body", "Transfer-Encoding: chunked\r\n", "c\r\n" + `{"model":"m"` + "\r\n"},
	} {
		for _, s := range samples() {
			t.Run(s.dialect+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				up := newUpstream(t, answerAll)
				r := start(t, up.url())
				w := dial(t, r.addr)
				w.send("POST /ng-rollout/r" + s.path + " HTTP/1.1\r\nHost: a\r\n" + row.head + "\r\n" + row.part)
				w.conn.Close()
				rec := r.expectFacts("r", s, facts{outcome: "client_gone", category: "cancelled", unasked: true, unfounded: true})
				rec.expect(t, "request", nil, "request_raw", `{"model":"m"`, "rolltap.upstream", nil, "rolltap.request_bytes", 12)
				up.quiet()
			})
		}
	}
}

// A body that is no HTTP is the client's fault, and it is told so.
func TestMalformedChunkedBody(t *testing.T) {
	for _, s := range samples() {
		up := newUpstream(t, answerAll)
		r := start(t, up.url())
		w := dial(t, r.addr)
		w.send("POST /ng-rollout/r" + s.path + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n")
		res, body, err := w.answer("POST")
		if err != nil || res.StatusCode != 400 || res.Header.Get("X-Rolltap-Error") != "invalid_request" {
			t.Errorf("answered %s with code %q, %v", res.Status, res.Header.Get("X-Rolltap-Error"), err)
		}
		s.checkError(t, body, "invalid_request")
		r.expectFacts("r", s, facts{status: 400, code: "invalid_request", outcome: "refused", category: "client_error", unasked: true})
		up.quiet()
	}
}

// A client that stops reading frees the upstream's slot.
func TestClientThatStopsReading_isGivenUp(t *testing.T) {
	freed := make(chan struct{})
	up := newUpstream(t, func(c *call) {
		defer close(freed)
		c.open(200, "text/event-stream")
		frame := data(`{"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 32<<10) + `"}}]}`)
		for range 2000 {
			if _, err := fmt.Fprintf(c.conn, "%x\r\n%s\r\n", len(frame), frame); err != nil {
				return
			}
		}
		t.Error("the upstream could send everything to a client that reads nothing")
	})
	r := start(t, up.url(), func(c *Config) { c.ClientWriteTimeout = 300 * time.Millisecond })
	s := chatSample()
	w := dial(t, r.addr)
	w.conn.SetReadBuffer(4 << 10)
	w.ask("POST", "/ng-rollout/r"+s.path, s.askStream)
	wait(t, "the upstream is released", freed)
	r.expectFacts("r", s, facts{status: 200, outcome: "client_gone", category: "cancelled", upStatus: 200})
}

// The answer to one call is the next request of an agent; on one connection both have to be told apart.
func TestPipelinedCalls_haveARecordEach(t *testing.T) {
	s := chatSample()
	up := newUpstream(t, func(c *call) { c.reply(200, "application/json", s.unary) })
	r := start(t, up.url())
	w := dial(t, r.addr)
	w.ask("POST", "/ng-rollout/r"+s.path, s.ask)
	w.ask("POST", "/ng-rollout/r"+s.path, s.ask)
	for range 2 {
		if res, body, err := w.answer("POST"); err != nil || res.StatusCode != 200 || body != s.unary {
			t.Errorf("answered %s %q %v", res.Status, body, err)
		}
	}
	if got := len(r.records("r")); got != 2 {
		t.Errorf("%d records, want 2", got)
	}
}

// rolltap never repeats a request that the upstream has begun to read: not even where net/http would, which takes some
// methods and headers of the client's for a permission.
func TestRequests_areNotRepeatedOnceTheyWereRead(t *testing.T) {
	for _, row := range []struct {
		name, method, path string
		header             []string
	}{
		{"a call", "POST", "/ng-rollout/r/v1/chat/completions", nil},
		{"a call with an idempotency key", "POST", "/ng-rollout/r/v1/chat/completions", []string{"Idempotency-Key", "k1"}},
		{"a call with an X- idempotency key", "POST", "/ng-rollout/r/v1/chat/completions", []string{"X-Idempotency-Key", "k1"}},
		{"a GET", "GET", "/v1/models", nil},
		{"another POST with an idempotency key", "POST", "/v1/embeddings", []string{"Idempotency-Key", "k1"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked := make(chan string, 10)
			up := newUpstream(t, func(c *call) {
				asked <- c.Line + " " + c.Body()
				if strings.Contains(c.Head, "X-First") {
					c.reply(200, "application/json", `{}`)
				} // else the connection is closed without a word
			})
			r := start(t, up.url())
			body := ""
			if row.method == "POST" {
				body = `{"model":"m"}`
			}
			if res, _, err := r.do(row.method, row.path, body, "X-First", "1"); err != nil || res.StatusCode != 200 {
				t.Fatal(res, err)
			}
			wait(t, "the first request", asked)
			res, _, err := r.do(row.method, row.path, body, row.header...)
			if err != nil || res.StatusCode != 502 {
				t.Errorf("answered %v, %v, want 502", res, err)
			}
			wait(t, "the second request", asked)
			select {
			case again := <-asked:
				t.Errorf("the upstream got the request again: %s", again)
			default:
			}
		})
	}
}

// A connection that the upstream closed while it was idle is not used again. Each call begins once the closing was noticed:
// before that a request may be on its way already, and then nobody may send it again.
func TestClosedIdleConnections_areNoFailure(t *testing.T) {
	s := chatSample()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	noticed := make(chan error)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer ln.Close()
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				io.Copy(io.Discard, req.Body)
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(s.unary), s.unary)
			c.(*net.TCPConn).CloseWrite()
			_, err = c.Read(make([]byte, 1))
			c.Close()
			noticed <- err
		}
	})
	r := start(t, "http://"+ln.Addr().String())
	for i := range 20 {
		res, body := r.post("/ng-rollout/r"+s.path, s.ask)
		if res.StatusCode != 200 || body != s.unary {
			t.Fatalf("call %d: %s %s", i, res.Status, body)
		}
		if err := <-noticed; err != io.EOF {
			t.Fatalf("call %d: the connection was used again: %v", i, err)
		}
	}
}

func TestExpect_isAnsweredOnceAndNotSentOn(t *testing.T) {
	s := chatSample()
	for _, framing := range []string{"length", "chunked"} {
		up := newUpstream(t, func(c *call) { c.reply(200, "application/json", s.unary) })
		r := start(t, up.url())
		w := dial(t, r.addr)
		head, body := fmt.Sprintf("Content-Length: %d", len(s.ask)), s.ask
		if framing == "chunked" {
			head, body = "Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(s.ask), s.ask)
		}
		w.send("POST /ng-rollout/r" + s.path + " HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n" + head + "\r\n\r\n")
		if got := w.head(); !strings.HasPrefix(got, "HTTP/1.1 100 ") {
			t.Fatalf("%s: before the body came %q", framing, got)
		}
		w.send(body)
		if got := w.head(); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("%s: behind the body came %q", framing, got)
		}
		c := up.next()
		if c.Body() != s.ask || c.Header.Get("Expect") != "" {
			t.Errorf("%s: the upstream got Expect %q and body %q", framing, c.Header.Get("Expect"), c.Body())
		}
	}
}
