package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func tokenFileOf(t testing.TB, tokens string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(tokens), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRefusals(t *testing.T) {
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13"}
	locked := func(c *Config) { c.AuthTokenFile = tokenFileOf(t, "right\n") }
	for _, row := range []struct {
		name, method, dialect, path string
		header                      []string
		change                      func(*Config)
		status                      int
		code                        string
		counted                     bool // as a model call
	}{
		{"a websocket on chat", "GET", "chat", "", upgrade, nil, 426, "upgrade_required", false},
		{"a websocket on messages", "GET", "messages", "", upgrade, nil, 426, "upgrade_required", false},
		{"a websocket on responses", "GET", "responses", "", upgrade, nil, 426, "upgrade_required", false},
		{"chat without a token", "POST", "chat", "", nil, locked, 401, "unauthorized", true},
		{"messages with a wrong token", "POST", "messages", "", []string{"X-Api-Key", "wrong"}, locked, 401, "unauthorized", true},
		{"responses with a longer token", "POST", "responses", "", []string{"Authorization", "Bearer right1"}, locked, 401, "unauthorized", true},
		{"an unknown path without a token", "GET", "chat", "/metrics", nil, locked, 401, "unauthorized", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			up := newUpstream(t, answerAll)
			r := start(t, up.url(), func(c *Config) {
				if row.change != nil {
					row.change(c)
				}
			})
			s := sampleOf(row.dialect)
			path, body := row.path, ""
			if path == "" {
				path = s.path
			}
			if row.method == "POST" {
				body = s.ask
			}
			res, got, err := r.do(row.method, "/ng-rollout/r"+path, body, row.header...)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != row.status || res.Header.Get("X-Rolltap-Error") != row.code || res.Header.Get("Content-Type") != "application/json" {
				t.Errorf("answered %s with code %q and type %q", res.Status, res.Header.Get("X-Rolltap-Error"), res.Header.Get("Content-Type"))
			}
			s.checkError(t, got, row.code)
			up.quiet()
			switch {
			case row.counted:
				r.expectFacts("r", s, facts{outcome: "refused", unasked: true, noRecord: true})
			default:
				if line := r.logged(); line["outcome"] != "refused" || line["status"] != int64(row.status) {
					t.Errorf("logged %v", line)
				}
				if len(r.stored()) != 0 || res.Header.Get("X-Rolltap-Call-Id") != "" {
					t.Errorf("the store holds %v, the call id is %q", r.stored(), res.Header.Get("X-Rolltap-Call-Id"))
				}
			}
		})
	}
}

func TestHTTP10AndOldClients(t *testing.T) {
	s := chatSample()
	up := newUpstream(t, func(c *call) {
		c.open(200, "text/event-stream")
		c.chunk(s.stream())
		c.end()
	})
	r := start(t, up.url())
	w := dial(t, r.addr)
	w.send("POST /ng-rollout/r" + s.path + " HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}")
	if _, body, err := w.answer("POST"); err != nil || body != s.stream() {
		t.Errorf("got %q, %v", body, err)
	}
	r.record("r").expect(t, "rolltap.outcome", "ok")
}

func TestDrainTimeout_cutsWhatIsInFlight(t *testing.T) {
	for _, s := range samples() {
		for _, row := range []row{
			{name: "inside a stream", stream: true, script: func(s sample, c *call) {
				c.open(200, "text/event-stream")
				c.chunk(untilWord(s))
				c.untilLeft()
			}, want: facts{status: 200, outcome: "aborted", category: "exception", upStatus: 200, cut: true}, body: untilWord, raw: untilWord, response: "partial"},
			{name: "before the head", script: func(_ sample, c *call) { c.untilLeft() },
				want: facts{status: 500, code: "internal", outcome: "aborted", category: "exception"}},
		} {
			t.Run(s.dialect+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				up := newUpstream(t, func(c *call) { row.script(s, c) })
				r := start(t, up.url(), func(c *Config) { c.DrainTimeout = 100 * time.Millisecond })
				ask := s.ask
				if row.stream {
					ask = s.askStream
				}
				w := dial(t, r.addr)
				w.ask("POST", "/ng-rollout/r"+s.path, ask)
				up.next()
				if row.stream {
					eventually(t, "the answer has begun", func() bool { _, err := w.br.Peek(1); return err == nil })
				}
				r.stop()
				res, err := http.ReadResponse(w.br, &http.Request{Method: "POST"})
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				if res.StatusCode != row.want.status || (err != nil) != row.want.cut || res.Header.Get("X-Rolltap-Error") != row.want.code {
					t.Errorf("the client got %s with code %q, %v", res.Status, res.Header.Get("X-Rolltap-Error"), err)
				}
				if row.body != nil && string(body) != row.body(s) {
					t.Errorf("the client got %q", body)
				}
				wait(t, "Run returns", r.ended)
				if !errors.Is(r.err, ErrCut) {
					t.Errorf("Run said %v, want ErrCut", r.err)
				}
				if line := r.logged(); line["outcome"] != "aborted" {
					t.Errorf("logged %v", line)
				}
				rec := r.record("r")
				rec.expect(t, "rolltap.outcome", "aborted", "error_category", "exception", "status_code", row.want.status)
				if row.response == "partial" {
					rec.expect(t, "response."+s.foldedText, "Hello", "response_raw", row.raw(s))
				} else {
					rec.expect(t, "response", nil, "local_response_reason", "internal")
				}
			})
		}
	}
}

func TestDrain_letsAnswersEnd(t *testing.T) {
	s := messagesSample()
	proceed := make(chan struct{})
	up := newUpstream(t, func(c *call) {
		c.open(200, "text/event-stream")
		c.chunk(s.before())
		await(proceed)
		c.chunk(s.terminal())
		c.end()
	})
	r := start(t, up.url())
	w := dial(t, r.addr)
	w.ask("POST", "/ng-rollout/r"+s.path, s.askStream)
	up.next()
	if _, err := w.br.Peek(1); err != nil {
		t.Fatal(err)
	}
	r.stop()
	eventually(t, "new connections are refused", func() bool {
		c, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(newGet(t, r.url("/")))
		if err == nil {
			c.Body.Close()
		}
		return err != nil
	})
	if code, _ := r.get("/livez"); code != 200 {
		t.Errorf("/livez says %d while draining", code)
	}
	if code, _ := r.get("/readyz"); code != 503 {
		t.Errorf("/readyz says %d while draining", code)
	}
	close(proceed)
	if _, body, err := w.answer("POST"); err != nil || body != s.stream() {
		t.Errorf("got %q, %v", body, err)
	}
	wait(t, "Run returns", r.ended)
	if r.err != nil {
		t.Errorf("Run said %v", r.err)
	}
	r.record("r").expect(t, "rolltap.outcome", "ok")
}

func newGet(t testing.TB, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// tripper stands in for the transport where a fault of our own is needed.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// faultyBody panics when what was promised has been read.
type faultyBody struct{ io.Reader }

func (b faultyBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil {
		panic("a fault inside the answer")
	}
	return n, nil
}
func (faultyBody) Close() error { return nil }

func TestPanic_isAnsweredRecordedAndSurvived(t *testing.T) {
	for _, s := range samples() {
		for _, row := range []struct {
			row
			trip tripper
		}{
			{row{name: "before the head", want: facts{status: 500, code: "internal", outcome: "aborted", category: "exception"}},
				func(*http.Request) (*http.Response, error) { panic("a fault before the head") }},
			{row{name: "inside a stream", stream: true,
				want: facts{status: 200, outcome: "aborted", category: "exception", upStatus: 200, cut: true}, body: untilWord, raw: untilWord, response: "partial"},
				func(r *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Request: r,
						Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: faultyBody{strings.NewReader(untilWord(s))}}, nil
				}},
		} {
			t.Run(s.dialect+"/"+row.name, func(t *testing.T) {
				up := newUpstream(t, answerAll)
				r := start(t, up.url())
				ordinary := r.srv.handler.transport
				r.srv.handler.transport = row.trip
				ask := s.ask
				if row.stream {
					ask = s.askStream
				}
				row.check(r, s, r.exchange("/ng-rollout/r"+s.path, ask))
				if got := r.logs.FilterMessage("panic while serving an exchange").Len(); got != 1 {
					t.Errorf("the panic was logged %d times", got)
				}
				r.srv.handler.transport = ordinary
				if res, _ := r.post("/ng-rollout/r2"+s.path, s.ask); res.StatusCode != 200 {
					t.Errorf("the next call is answered %s", res.Status)
				}
			})
		}
	}
}

func TestPanic_outsideOfModelCalls(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url())
	r.srv.handler.transport = tripper(func(*http.Request) (*http.Response, error) { panic("a fault") })
	got := r.exchange("/tokenize", "{}")
	if got.status != 500 || got.header.Get("X-Rolltap-Error") != "internal" {
		t.Errorf("answered %d with code %q", got.status, got.header.Get("X-Rolltap-Error"))
	}
	if line := r.logged(); line["outcome"] != "aborted" {
		t.Errorf("logged %v", line)
	}
}

func TestUncaptured(t *testing.T) {
	for _, s := range samples() {
		for _, row := range []struct {
			name, prefix, reason string
			change               func(*Config)
		}{
			{"without a prefix", "", "no_prefix", everyDialect},
			{"capture is off", "/ng-rollout/r", "capture_off", func(c *Config) { c.Capture = CaptureOff }},
		} {
			for _, stream := range []bool{false, true} {
				t.Run(s.dialect+"/"+row.name, func(t *testing.T) {
					up := newUpstream(t, func(c *call) {
						if stream {
							c.open(200, "text/event-stream")
							c.chunk(s.stream())
							c.end()
							return
						}
						c.reply(200, "application/json", s.unary)
					})
					r := start(t, up.url(), row.change)
					want, ask := s.unary, s.ask
					if stream {
						want, ask = s.stream(), s.askStream
					}
					got := r.exchange(row.prefix+s.path, ask)
					if got.status != 200 || got.body != want || got.cut || got.header.Get("X-Rolltap-Call-Id") != "" {
						t.Errorf("answered %d %q, call id %q", got.status, got.body, got.header.Get("X-Rolltap-Call-Id"))
					}
					r.expectFacts("r", s, facts{outcome: "ok", noRecord: true})
					if n := r.metric(`rolltap_uncaptured_requests_total{reason="` + row.reason + `"}`); n != 1 {
						t.Errorf("counted %v as %s, want 1", n, row.reason)
					}
					if n := r.metric("rolltap_generation_tokens_count"); n != 1 {
						t.Errorf("the tokens of %v calls were observed, want 1", n)
					}
				})
			}
		}
	}
}
