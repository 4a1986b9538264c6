package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// facts are what the one table of the documentation says of a situation.
type facts struct {
	status    int    // to the client; 0: no head was sent
	code      string // x-rolltap-error
	told      string // the same, of a failure that the client was told inside a stream that nobody but us had opened
	outcome   string
	category  string // "" null
	upStatus  int    // 0 null
	unasked   bool   // the upstream was not asked
	cut       bool   // the client's connection is aborted
	noRecord  bool
	finish    string
	unfounded bool   // the answer's source is unknown: nothing came
	upDialect string // spoken at the upstream, "" the client's
}

// expectFacts compares the record, the metric and the log line of the only exchange of a rig with the table.
func (r *rig) expectFacts(rollout string, s sample, f facts) record {
	r.t.Helper()
	line := r.logged()
	if line["outcome"] != f.outcome {
		r.t.Errorf("the log says outcome %v, want %s", line["outcome"], f.outcome)
	}
	upstream := s.dialect
	if f.upDialect != "" {
		upstream = f.upDialect
	}
	if f.unasked {
		upstream = "none"
	}
	// The log line is written after the metric has moved.
	if got := r.metric(requestsTotal(s.dialect, upstream, f.outcome)); got != 1 {
		_, text := r.get("/metrics")
		r.t.Errorf("%s is %v, want 1\n%s", requestsTotal(s.dialect, upstream, f.outcome), got, grep(text, "rolltap_requests_total"))
	}
	if got := r.metric("rolltap_in_flight_requests"); got != 0 {
		r.t.Errorf("%v requests are in flight", got)
	}
	if f.noRecord {
		if got := r.stored(); len(got) != 0 {
			r.t.Errorf("the store holds %v, want nothing", got)
		}
		return nil
	}
	orNull := func(n int) any {
		if n == 0 {
			return nil
		}
		return n
	}
	word := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	source := any("upstream")
	switch {
	case f.code != "", f.told != "":
		source = "local"
	case f.unfounded:
		source = nil
	}
	rec := r.record(rollout)
	rec.expect(r.t, "dialect", s.dialect, "status_code", orNull(f.status), "error_category", word(f.category), "rolltap.outcome", f.outcome,
		"upstream_attempted", !f.unasked, "response_source", source, "upstream_status_code", orNull(f.upStatus), "local_response_reason", word(f.code+f.told),
		"rolltap.finish_reason", word(f.finish), "rolltap.path", s.path, "rolltap.method", "POST")
	if got := r.metric(`rolltap_capture_records_total{result="ok"}`); got != 1 {
		r.t.Errorf("%v records were counted, want 1", got)
	}
	return rec
}

func grep(text, word string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, word) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// exchanged is what a client saw of one exchange.
type exchanged struct {
	status int
	header http.Header
	body   string
	cut    bool
}

// exchange posts one call over a connection of its own.
func (r *rig) exchange(path, body string, header ...string) exchanged {
	r.t.Helper()
	w := dial(r.t, r.addr)
	w.ask("POST", path, body, header...)
	res, err := http.ReadResponse(w.br, &http.Request{Method: "POST"})
	if err != nil {
		return exchanged{cut: true}
	}
	b, err := io.ReadAll(res.Body)
	return exchanged{res.StatusCode, res.Header, string(b), err != nil}
}

// situation is one row: what the upstream does, and what has to come of it.
type row struct {
	name   string
	only   string // a dialect; "" all
	stream bool
	script func(s sample, c *call)
	want   facts
	body   func(s sample) string // what the client sees; nil: an error of our own in the client's dialect
	// raw is the text kept beside or instead of the response; nil: none.
	raw func(s sample) string
	// response is "object" (the unary body), "folded" (all of the stream's text), "partial" (its first word) or null.
	response string
}

func whole(s sample) string     { return s.unary }
func wholeText(s sample) string { return s.stream() }

// untilWord is a stream up to its first event with content.
func untilWord(s sample) string { return strings.Join(s.events[:s.contentBearing+1], "") }

func fixed(text string) func(sample) string { return func(sample) string { return text } }

func situations() []row {
	rows := []row{
		{name: "a whole JSON answer", script: func(s sample, c *call) { c.reply(200, "application/json", s.unary) },
			want: facts{status: 200, outcome: "ok", upStatus: 200, finish: "stop"}, body: whole, response: "object"},
		{name: "a whole JSON answer in chunks", script: func(s sample, c *call) {
			c.open(200, "application/json")
			c.chunk(s.unary[:10])
			c.chunk(s.unary[10:])
			c.end()
		}, want: facts{status: 200, outcome: "ok", upStatus: 200, finish: "stop"}, body: whole, response: "object"},
		{name: "a whole JSON answer that ends with the connection", script: func(s sample, c *call) {
			c.say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + s.unary)
		}, want: facts{status: 200, outcome: "ok", upStatus: 200, finish: "stop"}, body: whole, response: "object"},
		{name: "a whole stream", stream: true, script: func(s sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(s.stream())
			c.end()
		}, want: facts{status: 200, outcome: "ok", upStatus: 200, finish: "stop"}, body: wholeText, raw: wholeText, response: "folded"},
		{name: "a whole stream that ends with the connection", stream: true, script: func(s sample, c *call) {
			c.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + s.stream())
		}, want: facts{status: 200, outcome: "ok", upStatus: 200, finish: "stop"}, body: wholeText, raw: wholeText, response: "folded"},
		{name: "the media type of a stream has no case", stream: true, script: func(s sample, c *call) {
			c.open(200, "Text/Event-Stream; charset=utf-8")
			c.chunk(s.stream())
			c.end()
		}, want: facts{status: 200, outcome: "ok", upStatus: 200, finish: "stop"}, body: wholeText, raw: wholeText, response: "folded"},
		{name: "the terminal event lacks its blank line", stream: true, script: func(s sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(strings.TrimRight(s.stream(), "\n"))
			c.end()
		}, want: facts{status: 200, outcome: "ok", upStatus: 200, finish: "stop"},
			body: func(s sample) string { return strings.TrimRight(s.stream(), "\n") },
			raw:  func(s sample) string { return strings.TrimRight(s.stream(), "\n") }, response: "folded"},
		{name: "a stream that was cut short", only: "responses", stream: true, script: func(s sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(s.before() + s.incomplete)
			c.end()
		}, want: facts{status: 200, outcome: "ok", category: "incomplete", upStatus: 200, finish: "length"},
			body: func(s sample) string { return s.before() + s.incomplete },
			raw:  func(s sample) string { return s.before() + s.incomplete }, response: "folded"},
		{name: "an answer that is no JSON", script: func(_ sample, c *call) { c.reply(200, "text/plain", "not json") },
			want: facts{status: 200, outcome: "ok", category: "capture_parse_error", upStatus: 200}, body: fixed("not json"), raw: fixed("not json")},
		{name: "an answer that is no JSON object", script: func(_ sample, c *call) { c.reply(200, "application/json", "[1]") },
			want: facts{status: 200, outcome: "ok", category: "capture_parse_error", upStatus: 200}, body: fixed("[1]"), raw: fixed("[1]")},
		{name: "an answer without a body", script: func(_ sample, c *call) { c.say("HTTP/1.1 204 No Content\r\n\r\n"); c.keepAlive() },
			want: facts{status: 204, outcome: "ok", upStatus: 204}, body: fixed("")},
		{name: "an answer with an empty body", script: func(_ sample, c *call) { c.reply(200, "application/json", "") },
			want: facts{status: 200, outcome: "ok", upStatus: 200}, body: fixed("")},
		{name: "a stream of the terminal event alone", only: "messages", stream: true, script: func(s sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(s.terminal())
			c.end()
		}, want: facts{status: 200, outcome: "ok", category: "capture_parse_error", upStatus: 200},
			body: sample.terminal, raw: sample.terminal},
		{name: "a bad gateway in words", script: func(_ sample, c *call) { c.reply(502, "text/plain", "bad gateway") },
			want: facts{status: 502, outcome: "upstream_error", category: "upstream_error", upStatus: 502}, body: fixed("bad gateway"), raw: fixed("bad gateway")},
		{name: "an error status over a whole stream", stream: true, script: func(s sample, c *call) {
			c.open(500, "text/event-stream")
			c.chunk(s.stream())
			c.end()
		}, want: facts{status: 500, outcome: "upstream_error", category: "upstream_error", upStatus: 500, finish: "stop"}, body: wholeText, raw: wholeText, response: "folded"},
		{name: "an error frame is the first event", stream: true, script: func(s sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(s.failure)
			c.end()
		}, want: facts{status: 200, outcome: "upstream_error", category: "upstream_error", upStatus: 200},
			body: func(s sample) string { return s.failure }, raw: func(s sample) string { return s.failure }, response: "any"},
		{name: "an error frame inside a stream", stream: true, script: func(s sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(untilWord(s) + s.failure)
			c.end()
		}, want: facts{status: 200, outcome: "upstream_error", category: "upstream_error", upStatus: 200},
			body: func(s sample) string { return untilWord(s) + s.failure }, raw: func(s sample) string { return untilWord(s) + s.failure }, response: "partial"},
		{name: "broken inside a stream", stream: true, script: func(s sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(untilWord(s))
		}, want: facts{status: 200, outcome: "upstream_cut", category: "connection", upStatus: 200, cut: true}, body: untilWord, raw: untilWord, response: "partial"},
		{name: "broken inside an answer of known length", script: func(s sample, c *call) {
			c.say(replyHead(200, "application/json", fmt.Sprintf("Content-Length: %d", len(s.unary))) + s.unary[:20])
		}, want: facts{status: 200, outcome: "upstream_cut", category: "connection", upStatus: 200, cut: true},
			body: func(s sample) string { return s.unary[:20] }, raw: func(s sample) string { return s.unary[:20] }},
		{name: "broken inside a long answer of known length", script: func(s sample, c *call) {
			c.say(replyHead(200, "application/json", fmt.Sprintf("Content-Length: %d", len(s.spaced()))) + s.spaced()[:6<<10])
		}, want: facts{status: 200, outcome: "upstream_cut", category: "connection", upStatus: 200, cut: true, finish: "stop"},
			body: func(s sample) string { return s.spaced()[:6<<10] }, response: "object"},
		{name: "broken inside an answer in chunks", script: func(s sample, c *call) {
			c.open(200, "application/json")
			c.chunk(s.unary[:20])
		}, want: facts{status: 200, outcome: "upstream_cut", category: "connection", upStatus: 200, cut: true},
			body: func(s sample) string { return s.unary[:20] }, raw: func(s sample) string { return s.unary[:20] }},
		{name: "broken behind a JSON answer in chunks whose end was not told", script: func(s sample, c *call) {
			c.open(200, "application/json")
			c.chunk(s.unary)
		}, want: facts{status: 200, outcome: "upstream_cut", category: "connection", upStatus: 200, cut: true, finish: "stop"}, body: whole, response: "object"},
		{name: "a clean end without the terminal event", stream: true, script: func(s sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(untilWord(s))
			c.end()
		}, want: facts{status: 200, outcome: "upstream_cut", category: "stream_truncated", upStatus: 200}, body: untilWord, raw: untilWord, response: "partial"},
		{name: "an empty stream", stream: true, script: func(_ sample, c *call) { c.open(200, "text/event-stream"); c.end() },
			want: facts{status: 200, outcome: "upstream_cut", category: "stream_truncated", upStatus: 200}, body: fixed("")},
		{name: "closed before a head", script: func(_ sample, c *call) { c.Body() },
			want: facts{status: 502, code: "upstream_unavailable", outcome: "upstream_error", category: "connection"}},
		{name: "reset before a head", script: func(_ sample, c *call) { c.Body(); c.reset() },
			want: facts{status: 502, code: "upstream_unavailable", outcome: "upstream_error", category: "connection"}},
		{name: "broken inside a head", script: func(_ sample, c *call) { c.say("HTTP/1.1 200 OK\r\nContent-Ty") },
			want: facts{status: 502, code: "upstream_unavailable", outcome: "upstream_error", category: "connection"}},
		{name: "no HTTP", script: func(_ sample, c *call) { c.say("SSH-2.0-OpenSSH_9.6\r\n") },
			want: facts{status: 502, code: "upstream_unavailable", outcome: "upstream_error", category: "connection"}},
		{name: "a head without end", script: func(_ sample, c *call) {
			c.say("HTTP/1.1 200 OK\r\nX-Big: " + strings.Repeat("x", 2<<20) + "\r\n\r\n")
		}, want: facts{status: 502, code: "upstream_unavailable", outcome: "upstream_error", category: "connection"}},
	}
	for status, category := range map[int]string{400: "client_error", 401: "auth", 403: "auth", 404: "not_found", 408: "timeout", 422: "client_error",
		429: "rate_limit", 500: "upstream_error", 503: "upstream_error", 504: "timeout", 529: "upstream_error"} {
		rows = append(rows, row{name: fmt.Sprintf("the upstream answers %d", status),
			script: func(s sample, c *call) { c.reply(status, "application/json", s.nativeErrorBody, "Retry-After", "7") },
			want:   facts{status: status, outcome: "upstream_error", category: category, upStatus: status},
			body:   func(s sample) string { return s.nativeErrorBody }, response: "error"})
	}
	return rows
}

func TestSituations(t *testing.T) {
	for _, s := range samples() {
		for _, row := range situations() {
			if row.only != "" && row.only != s.dialect {
				continue
			}
			t.Run(s.dialect+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				up := newUpstream(t, func(c *call) { row.script(s, c) })
				r := start(t, up.url())
				ask := s.ask
				if row.stream {
					ask = s.askStream
				}
				row.check(r, s, r.exchange("/ng-rollout/r"+s.path, ask))
			})
		}
	}
}

// check compares what the client saw and what was recorded with the row.
func (row row) check(r *rig, s sample, got exchanged) {
	t := r.t
	t.Helper()
	if got.status != row.want.status || got.cut != row.want.cut {
		t.Errorf("the client got status %d, cut %v, want %d, %v", got.status, got.cut, row.want.status, row.want.cut)
	}
	if code := got.header.Get("X-Rolltap-Error"); code != row.want.code {
		t.Errorf("x-rolltap-error %q, want %q", code, row.want.code)
	}
	if row.body != nil {
		if diff := cmp.Diff(row.body(s), got.body); diff != "" {
			t.Errorf("the client's body (-want +got):\n%s", diff)
		}
	} else {
		s.checkError(t, got.body, row.want.code)
	}
	rec := r.expectFacts("r", s, row.want)
	rec.expect(t, "model_call_id", got.header.Get("X-Rolltap-Call-Id"), "rolltap.stream", row.stream, "rolltap.response_bytes", len(got.body))
	if ms, ok := rec.at("latency_ttft_ms").(float64); (len(got.body) > 0 && row.want.code == "" && row.response != "any" && (!row.stream || row.response != "")) != ok || ms < 0 {
		t.Errorf("latency_ttft_ms is %v", rec.at("latency_ttft_ms"))
	}
	switch row.response {
	case "object":
		rec.expect(t, "response."+s.foldedText, s.text, "rolltap.usage.prompt_tokens", 3, "rolltap.usage.completion_tokens", 2, "rolltap.upstream.model", "m")
	case "folded":
		rec.expect(t, "response."+s.foldedText, s.text, "rolltap.usage.prompt_tokens", 3, "rolltap.usage.completion_tokens", 2)
	case "partial":
		rec.expect(t, "response."+s.foldedText, "Hello")
	case "error":
		if rec.at("response.error.message") != "no such model" {
			t.Errorf("the record's response is %v", rec["response"])
		}
	case "":
		rec.expect(t, "response", nil)
	}
	if row.raw == nil {
		if rec.has("response_raw") {
			t.Errorf("response_raw is kept without need: %v", rec["response_raw"])
		}
	} else if diff := cmp.Diff(row.raw(s), rec["response_raw"]); diff != "" {
		t.Errorf("response_raw (-want +got):\n%s", diff)
	}
}

func TestRefusedConnection(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	for _, s := range samples() {
		r := start(t, "http://"+addr)
		row{want: facts{status: 502, code: "upstream_unavailable", outcome: "upstream_error", category: "connection"}}.check(r, s, r.exchange("/ng-rollout/r"+s.path, s.ask))
	}
}

func TestUnresolvableHost(t *testing.T) {
	r := start(t, "http://nowhere.invalid:1")
	row{want: facts{status: 502, code: "upstream_unavailable", outcome: "upstream_error", category: "connection"}}.check(r, chatSample(), r.exchange("/ng-rollout/r"+chatSample().path, chatSample().ask))
}

func TestTLSThatFails(t *testing.T) {
	up := newUpstream(t, func(*call) {})
	r := start(t, "https://"+up.addr)
	go func() {
		// What the transport says first is no request line, and no line at all: the connection is what the script would see.
		eventually(t, "a connection", func() bool { return up.connections() > 0 })
		up.mu.Lock()
		defer up.mu.Unlock()
		for _, c := range up.all {
			c.Close()
		}
	}()
	s := messagesSample()
	row{want: facts{status: 502, code: "upstream_unavailable", outcome: "upstream_error", category: "connection"}}.check(r, s, r.exchange("/ng-rollout/r"+s.path, s.ask))
}

func TestSilence_beforeTheHeadAndInside(t *testing.T) {
	const slow = "a slow stream is not silent"
	rows := []row{
		{name: "before the head", script: func(_ sample, c *call) { c.untilLeft() },
			want: facts{status: 504, code: "upstream_timeout", outcome: "upstream_timeout", category: "timeout"}},
		{name: "inside the head", script: func(_ sample, c *call) { c.say("HTTP/1.1 200 OK\r\n"); c.untilLeft() },
			want: facts{status: 504, code: "upstream_timeout", outcome: "upstream_timeout", category: "timeout"}},
		{name: "inside a stream", stream: true, script: func(s sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(untilWord(s))
			c.untilLeft()
		}, want: facts{status: 200, outcome: "upstream_timeout", category: "timeout", upStatus: 200, cut: true}, body: untilWord, raw: untilWord, response: "partial"},
		{name: "inside a JSON answer", script: func(s sample, c *call) {
			c.say(replyHead(200, "application/json", fmt.Sprintf("Content-Length: %d", len(s.spaced()))) + s.unary[:20])
			c.untilLeft()
		}, want: facts{status: 200, outcome: "upstream_timeout", category: "timeout", upStatus: 200, cut: true},
			body: func(s sample) string { return s.unary[:20] }, raw: func(s sample) string { return s.unary[:20] }},
		{name: slow, stream: true, script: func(s sample, c *call) {
			c.open(200, "text/event-stream")
			for _, e := range s.events {
				time.Sleep(800 * time.Millisecond / time.Duration(len(s.events)-1)) // far less than the timeout; together more
				c.chunk(e)
			}
			c.end()
		}, want: facts{status: 200, outcome: "ok", upStatus: 200, finish: "stop"}, body: wholeText, raw: wholeText, response: "folded"},
	}
	for _, s := range samples() {
		for _, row := range rows {
			t.Run(s.dialect+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				up := newUpstream(t, func(c *call) { row.script(s, c) })
				limit := 150 * time.Millisecond
				if row.name == slow {
					limit = 700 * time.Millisecond // a machine that is busy may be late by much of it
				}
				r := start(t, up.url(), func(c *Config) { c.UpstreamIdleTimeout = limit })
				ask := s.ask
				if row.stream {
					ask = s.askStream
				}
				row.check(r, s, r.exchange("/ng-rollout/r"+s.path, ask))
			})
		}
	}
}
