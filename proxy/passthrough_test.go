package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// headerLines are the lines of a head behind the first, sorted by name; lines of one name keep their order.
func headerLines(head string) []string {
	lines := strings.Split(strings.TrimRight(head, "\r\n"), "\r\n")[1:]
	name := func(i int) string { n, _, _ := strings.Cut(lines[i], ":"); return n }
	sort.SliceStable(lines, func(i, j int) bool { return name(i) < name(j) })
	return lines
}

func TestHeaders_ofRequestsArriveAsTheyWere(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url())
	const sent = "Accept: text/event-stream\r\nAccept: application/json\r\nAccept-Encoding: br, x-odd\r\nAnthropic-Beta: a\r\nAnthropic-Beta: b,c\r\n" +
		"Authorization: Bearer client-secret\r\nCookie: a=b; c=d\r\nForwarded: for=192.0.2.1\r\nTraceparent: 00-1-2-01\r\nVia: 1.1 before\r\n" +
		"X-Api-Key: other-secret\r\nX-Empty: \r\nX-Forwarded-For: 192.0.2.1, 192.0.2.2\r\nX-Forwarded-Host: public.test\r\nX-Forwarded-Proto: https\r\n" +
		"X-Latin: caf\xe9\r\n"
	const hop = "Connection: keep-alive, X-Drop\r\nX-Drop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTe: gzip\r\nProxy-Authorization: Basic eA==\r\n"
	for _, path := range []string{"/v1/chat/completions", "/ng-rollout/r/v1/chat/completions", "/tokenize"} {
		w := dial(t, r.addr)
		w.send("POST " + path + " HTTP/1.1\r\nHost: public.test\r\n" + sent + hop + "Content-Length: 2\r\n\r\n{}")
		if _, _, err := w.answer("POST"); err != nil {
			t.Fatal(err)
		}
		want := "x\r\n" + sent + "Content-Length: 2\r\nHost: " + up.addr
		c := up.next()
		if strings.HasPrefix(path, "/ng-rollout/") {
			want += "\r\nX-Request-Id: " + r.record("r").at("model_call_id").(string)
		}
		if diff := cmp.Diff(headerLines(want), headerLines(c.Head)); diff != "" {
			t.Errorf("%s (-sent +arrived):\n%s", path, diff)
		}
	}
}

func TestHeaders_ofRequestsAreNotInvented(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url())
	for _, request := range []struct{ line, want string }{
		{"GET /health HTTP/1.1", "Host: " + up.addr},
		{"POST /v1/responses HTTP/1.1", "Content-Length: 0\r\nHost: " + up.addr},
	} {
		w := dial(t, r.addr)
		w.send(request.line + "\r\nHost: a\r\n\r\n")
		if _, _, err := w.answer("GET"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(headerLines("x\r\n"+request.want), headerLines(up.next().Head)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", request.line, diff)
		}
	}
}

func TestRequestID_ofTheClientIsKept(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url())
	r.post("/ng-rollout/r/v1/responses", "{}", "X-Request-Id", "mine")
	if got := up.next().Header["X-Request-Id"]; !slices.Equal(got, []string{"mine"}) {
		t.Errorf("the upstream got x-request-id %q", got)
	}
}

func TestHeaders_ofAnswersArriveAsTheyWere(t *testing.T) {
	const sent = "Content-Length: 2\r\nRequest-Id: req_1\r\nServer: uvicorn\r\nServer-Timing: a;dur=1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2; Path=/\r\nX-Empty: \r\nX-Latin: caf\xe9\r\nX-Ratelimit-Remaining: 7\r\n"
	const hop = "Connection: X-Drop\r\nX-Drop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\n"
	for _, path := range []string{"/v1/messages", "/ng-rollout/r/v1/messages", "/tokenize"} {
		up := newUpstream(t, func(c *call) { c.say("HTTP/1.1 200 OK\r\n" + sent + hop + "\r\n{}"); c.keepAlive() })
		r := start(t, up.url())
		w := dial(t, r.addr)
		w.ask("POST", path, "{}")
		head := w.head()
		want := "x\r\n" + strings.TrimRight(sent, "\r\n")
		if strings.HasPrefix(path, "/ng-rollout/") {
			want += "\r\nX-Rolltap-Call-Id: " + r.record("r").at("model_call_id").(string)
		}
		if diff := cmp.Diff(headerLines(want), headerLines(head)); diff != "" {
			t.Errorf("%s (-sent +arrived):\n%s", path, diff)
		}
	}
}

func TestDateAndContentType_areTheUpstreamsIfItSendsAny(t *testing.T) {
	up := newUpstream(t, func(c *call) {
		c.reply(200, "application/x-odd", "{}", "Date", "Thu, 01 Jan 1970 00:00:00 GMT")
	})
	r := start(t, up.url())
	res, _ := r.post("/v1/messages", "{}")
	if res.Header.Get("Date") != "Thu, 01 Jan 1970 00:00:00 GMT" || res.Header.Get("Content-Type") != "application/x-odd" {
		t.Errorf("got Date %q and Content-Type %q", res.Header.Get("Date"), res.Header.Get("Content-Type"))
	}
}

// every is n bytes: every byte there is in many orders, then text, which the race detector does not take seconds to escape.
func every(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
		if i > 100_000 {
			b[i] = 'a' + byte(i*7+i>>8)%26
		}
	}
	return string(b)
}

func TestBodies_ofAnyBytesArriveWhole(t *testing.T) {
	for _, row := range []struct {
		name    string
		size    int
		chunked bool
	}{
		{"no byte", 0, false},
		{"one byte", 1, false},
		{"just what is held", holdBytes, false},
		{"one byte more than is held", holdBytes + 1, false},
		{"one byte more than is held, in chunks", holdBytes + 1, true},
		{"3 MiB in chunks without a length", 3 << 20, true},
		{"5 MiB with a length", 5 << 20, false},
	} {
		for _, path := range []string{"/v1/audio/transcriptions", "/ng-rollout/r/v1/responses"} {
			t.Run(row.name+" to "+path, func(t *testing.T) {
				body := every(row.size)
				up := newUpstream(t, func(c *call) { c.reply(200, "application/octet-stream", c.Body()) }) // an echo
				r := start(t, up.url(), func(c *Config) {
					if row.size > 4<<20 {
						c.CaptureMaxBytes = 2 << 20
					}
				})
				var reader io.Reader = strings.NewReader(body)
				if row.chunked {
					reader = io.MultiReader(reader)
				}
				res, err := r.client.Post(r.url(path), "application/octet-stream", reader)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				back, err := io.ReadAll(res.Body)
				if err != nil || string(back) != body {
					t.Errorf("%d bytes came back, %v, want %d", len(back), err, len(body))
				}
				if got := up.next().Body(); got != body {
					t.Errorf("the upstream got %d bytes, want %d", len(got), len(body))
				}
				if path == "/v1/audio/transcriptions" {
					return
				}
				rec := r.record("r")
				rec.expect(t, "rolltap.request_bytes", len(body), "rolltap.response_bytes", len(body))
				want := any(nil)
				if row.size > 4<<20 {
					want = "request"
				}
				rec.expect(t, "rolltap.truncated.0", want, "request", nil)
				if n := r.counted(`rolltap_capture_truncated_total{body="request"}`); n > 0 != (want != nil) {
					t.Errorf("%v cut requests are counted", n)
				}
			})
		}
	}
}

// The conversation of an agent grows to megabytes; all of it is in the record.
func TestBodies_ofMegabytesAreRecordedWhole(t *testing.T) {
	s := messagesSample()
	long := strings.Repeat("lorem ipsum ", 250_000)
	ask := `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"` + long + `"}]}`
	up := newUpstream(t, func(c *call) { c.Body(); c.reply(200, "application/json", s.unary) })
	r := start(t, up.url())
	for _, chunked := range []bool{false, true} {
		var reader io.Reader = strings.NewReader(ask)
		if chunked {
			reader = io.MultiReader(reader)
		}
		rollout := fmt.Sprintf("chunked-%v", chunked)
		res, err := r.client.Post(r.url("/ng-rollout/"+rollout+s.path), "application/json", reader)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(got) != s.unary {
			t.Errorf("answered %q, %v", got, err)
		}
		if c := up.next(); c.Body() != ask || (c.Header.Get("Content-Length") == "") != chunked {
			t.Errorf("the upstream got %d bytes with length %q", len(c.Body()), c.Header.Get("Content-Length"))
		}
		r.record(rollout).expect(t, "request.messages.0.content", long, "rolltap.outcome", "ok")
	}
}

func TestHEAD_ofUnknownPaths(t *testing.T) {
	up := newUpstream(t, func(c *call) {
		c.say("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nContent-Type: text/plain\r\n\r\n")
		c.keepAlive()
	})
	r := start(t, up.url())
	for _, path := range []string{"/docs", "/ng-rollout/r/v1/responses"} {
		w := dial(t, r.addr)
		w.send("HEAD " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		rest, err := io.ReadAll(w.br)
		if err != nil {
			t.Fatal(err)
		}
		if want := "HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"; string(rest) != want {
			t.Errorf("%s: got %q, want %q", path, rest, want)
		}
		if got := up.next().Method; got != "HEAD" {
			t.Errorf("the upstream got %s", got)
		}
	}
}

func TestUpgrade_onOtherPaths(t *testing.T) {
	up := newUpstream(t, func(c *call) {
		c.say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello ")
		_, _ = io.Copy(c.conn, c.br) // until the client is done
	})
	r := start(t, up.url())
	w := dial(t, r.addr)
	w.send("GET /ng-rollout/r/v1/realtime HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	if head := w.head(); !strings.HasPrefix(head, "HTTP/1.1 101 ") || !strings.Contains(head, "Upgrade: echo\r\n") {
		t.Fatalf("got %q", head)
	}
	c := up.next()
	if c.Target != "/v1/realtime" || c.Header.Get("Upgrade") != "echo" || c.Header.Get("Connection") != "Upgrade" {
		t.Errorf("the upstream got %q", c.Head)
	}
	read := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(w.br, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
	read("hello ")
	for _, s := range []string{"\x00\xff\x81", every(100_000), "bye"} {
		w.send(s)
		read(s)
	}
	if err := w.conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(w.br); err != nil || len(rest) != 0 {
		t.Errorf("at the end came %q, %v", rest, err)
	}
	if len(r.stored()) != 0 {
		t.Errorf("the store holds %v", r.stored())
	}
}

func TestTrailers(t *testing.T) {
	for _, path := range []string{"/tokenize", "/ng-rollout/r/v1/chat/completions"} {
		up := newUpstream(t, func(c *call) {
			c.open(200, "application/json", "Trailer", "X-Sum")
			c.chunk(`{"a":1}`)
			c.sayEarly("0\r\nX-Sum: 7\r\nX-Late: 8\r\n\r\n")
			c.keepAlive()
		})
		r := start(t, up.url())
		w := dial(t, r.addr)
		w.send("POST " + path + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Check\r\n\r\n2\r\n{}\r\n0\r\nX-Check: 9\r\n\r\n")
		res, body, err := w.answer("POST")
		if err != nil || body != `{"a":1}` {
			t.Fatalf("%s: %q, %v", path, body, err)
		}
		if diff := cmp.Diff(http.Header{"X-Sum": {"7"}, "X-Late": {"8"}}, res.Trailer); diff != "" {
			t.Errorf("%s: trailers of the answer (-want +got):\n%s", path, diff)
		}
		c := up.next()
		if c.Body() != "{}" || c.Trailer != "X-Check: 9\r\n" {
			t.Errorf("%s: the upstream got the body %q and trailers %q", path, c.Body(), c.Trailer)
		}
	}
}

func TestInformationalAnswers(t *testing.T) {
	s := messagesSample()
	up := newUpstream(t, func(c *call) {
		c.say("HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n")
		c.reply(200, "application/json", s.unary)
	})
	r := start(t, up.url())
	w := dial(t, r.addr)
	w.ask("POST", "/ng-rollout/r"+s.path, s.ask)
	if got := w.head(); !strings.HasPrefix(got, "HTTP/1.1 103 ") || !strings.Contains(got, "Link: </a>; rel=preload") {
		t.Errorf("first came %q", got)
	}
	if got := w.head(); !strings.HasPrefix(got, "HTTP/1.1 102 ") {
		t.Errorf("then came %q", got)
	}
	res, body, err := w.answer("POST")
	if err != nil || res.StatusCode != 200 || body != s.unary || res.Header.Get("Link") != "" {
		t.Errorf("at last came %s %q, %v, Link %q", res.Status, body, err, res.Header.Get("Link"))
	}
	r.record("r").expect(t, "status_code", 200, "rolltap.outcome", "ok")
}

// TestConnection_isUsedAgain: streams are read to their end, so that their connection is.
func TestConnection_isUsedAgain(t *testing.T) {
	up := newUpstream(t, answerBySample)
	r := start(t, up.url())
	for i := range 50 {
		s := samples()[i%3]
		if _, body := r.post("/ng-rollout/r"+s.path, s.askStream); body != s.stream() {
			t.Fatalf("stream %d: %q", i, body)
		}
	}
	if n := up.connections(); n != 1 {
		t.Errorf("50 streams in a row took %d connections, want 1", n)
	}
	if n := len(r.records("r")); n != 50 {
		t.Errorf("%d records, want 50", n)
	}
}

// TestConcurrency: no more exchanges than allowed are at the upstream, and each gives its place back.
func TestConcurrency(t *testing.T) {
	s := chatSample()
	proceed := make(chan struct{})
	up := newUpstream(t, func(c *call) {
		await(proceed)
		c.reply(200, "application/json", s.unary)
	})
	r := start(t, up.url(), func(c *Config) { c.UpstreamConcurrency = 2 })
	const n = 6
	done := make(chan exchanged, n)
	for range n {
		go func() { done <- r.exchange("/ng-rollout/r"+s.path, s.ask) }()
	}
	up.next()
	up.next()
	eventually(t, "all have arrived", func() bool { return r.metric("rolltap_in_flight_requests") == n })
	up.quiet()
	close(proceed)
	for range n {
		if got := wait(t, "an answer", done); got.status != 200 {
			t.Errorf("answered %d", got.status)
		}
	}
	eventually(t, "all records", func() bool { return len(r.records("r")) == n })
}

// TestParallelClients: what belongs to one exchange stays with it.
func TestParallelClients(t *testing.T) {
	up := newUpstream(t, func(c *call) { // an echo, as JSON
		c.reply(200, "application/json", `{"id":"c","echo":`+c.Body()+`}`)
	})
	r := start(t, up.url())
	const clients, calls = 8, 25
	errs := make(chan error, clients)
	for k := range clients {
		go func() {
			errs <- func() error {
				for i := range calls {
					ask := fmt.Sprintf(`{"model":"m%d-%d","messages":[]}`, k, i)
					res, err := r.client.Post(r.url("/ng-rollout/r"+strconv.Itoa(k)+"/v1/chat/completions"), "application/json", strings.NewReader(ask))
					if err != nil {
						return err
					}
					got, err := io.ReadAll(res.Body)
					res.Body.Close()
					if err != nil || !bytes.Contains(got, []byte(ask)) {
						return fmt.Errorf("asked %s, got %s, %w", ask, got, err)
					}
				}
				return nil
			}()
		}()
	}
	for range clients {
		if err := wait(t, "a client", errs); err != nil {
			t.Error(err)
		}
	}
	for k := range clients {
		all := r.records("r" + strconv.Itoa(k))
		if len(all) != calls {
			t.Errorf("client %d has %d records, want %d", k, len(all), calls)
		}
		for i, rec := range all {
			want := fmt.Sprintf("m%d-%d", k, i)
			rec.expect(t, "request.model", want, "response.echo.model", want, "rolltap.seq", i+1)
		}
	}
}
