package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// chatOnly is an upstream that speaks Chat, so that everything else is translated; it is asked for nothing but what clients ask.
func chatOnly(c *Config) {
	c.UpstreamDialects = []string{"chat"}
	c.Rewrite.MaxTokensLimit = 0
}

// translatedRow is a row of the one table where client and upstream speak different dialects.
type translatedRow struct {
	name   string
	stream bool
	script func(up sample, c *call)
	want   facts
	// says is a text that the client sees; failed: the stream ends with the dialect's failure event.
	says   string
	failed bool
	// response is "whole" (all of the sample's text), "partial" (its first word), "error" or nothing.
	response string
}

func translatedRows() []translatedRow {
	return []translatedRow{
		{name: "a whole JSON answer", script: func(up sample, c *call) { c.reply(200, "application/json", up.unary) },
			want: facts{status: 200, outcome: "ok", upStatus: 200, finish: "stop"}, says: "Hello there", response: "whole"},
		{name: "a whole stream", stream: true, script: func(up sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(up.stream())
			c.end()
		}, want: facts{status: 200, outcome: "ok", upStatus: 200, finish: "stop"}, says: "there", response: "whole"},
		{name: "JSON to a client that wants a stream", stream: true, script: func(up sample, c *call) { c.reply(200, "application/json", up.unary) },
			want: facts{status: 200, outcome: "ok", upStatus: 200, finish: "stop"}, says: "Hello there", response: "whole"},
		{name: "a stream to a client that wants none", script: func(up sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(up.stream())
			c.end()
		}, want: facts{status: 200, outcome: "ok", upStatus: 200, finish: "stop"}, says: "Hello there", response: "whole"},
		{name: "an error frame is the first event", stream: true, script: func(_ sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(data(`{"error":{"message":"no such grammar","type":"BadRequestError","code":400}}`) + data("[DONE]"))
			c.end()
		}, want: facts{status: 400, outcome: "upstream_error", category: "client_error", upStatus: 200}, says: "no such grammar", response: "error"},
		{name: "an error frame inside a stream", stream: true, script: func(up sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(untilWord(up))
			c.chunk(up.failure + data("[DONE]"))
			c.end()
		}, want: facts{status: 200, outcome: "upstream_error", category: "upstream_error", upStatus: 200, cut: true}, says: "boom", failed: true, response: "partial"},
		{name: "an event that cannot be understood", stream: true, script: func(up sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(untilWord(up))
			c.chunk(data(`{"choices":[{]`))
			c.end()
		}, want: facts{status: 200, outcome: "upstream_error", category: "upstream_error", upStatus: 200, cut: true}, failed: true, response: "partial"},
		{name: "a first event that cannot be understood", stream: true, script: func(_ sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(data(`nonsense`))
			c.end()
		}, want: facts{status: 502, code: "upstream_invalid", outcome: "upstream_error", category: "upstream_error", upStatus: 200}},
		{name: "an error in disguise", script: func(_ sample, c *call) {
			c.reply(200, "application/json", `{"error":{"message":"out of memory","type":"server_error","code":503}}`)
		}, want: facts{status: 503, outcome: "upstream_error", category: "upstream_error", upStatus: 200}, says: "out of memory", response: "error"},
		{name: "HTML", script: func(_ sample, c *call) { c.reply(200, "text/html", "<html>hello</html>") },
			want: facts{status: 502, code: "upstream_invalid", outcome: "upstream_error", category: "upstream_error", upStatus: 200}},
		{name: "other JSON", script: func(_ sample, c *call) { c.reply(200, "application/json", `{"status":"fine"}`) },
			want: facts{status: 502, code: "upstream_invalid", outcome: "upstream_error", category: "upstream_error", upStatus: 200}},
		{name: "HTML to a client that wants a stream", stream: true, script: func(_ sample, c *call) { c.reply(200, "text/html", "<html>hello</html>") },
			want: facts{status: 502, code: "upstream_invalid", outcome: "upstream_error", category: "upstream_error", upStatus: 200}},
		{name: "a redirect", script: func(_ sample, c *call) { c.reply(307, "", "", "Location", "/elsewhere") },
			want: facts{status: 502, code: "upstream_invalid", outcome: "upstream_error", category: "upstream_error", upStatus: 307}},
		{name: "another protocol", script: func(_ sample, c *call) {
			c.say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
			c.untilLeft()
		}, want: facts{status: 502, code: "upstream_unavailable", outcome: "upstream_error", category: "connection"}},
		{name: "a failure as JSON to a client that wants a stream", stream: true, script: func(up sample, c *call) {
			c.reply(200, "application/json", strings.Replace(up.unary, `"finish_reason":"stop"`, `"finish_reason":"abort"`, 1))
		}, want: facts{status: 503, outcome: "upstream_error", category: "upstream_error", upStatus: 200, finish: "abort"}, says: "aborted", response: "error"},
		{name: "a clean end inside an event", stream: true, script: func(up sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(untilWord(up) + up.events[up.contentBearing+1][:30])
			c.end()
		}, want: facts{status: 200, outcome: "upstream_cut", category: "stream_truncated", upStatus: 200, cut: true}, failed: true, response: "partial"},
		{name: "an endless error", script: func(_ sample, c *call) {
			c.open(500, "text/plain")
			for range 3000 {
				c.chunk(strings.Repeat("it broke. ", 100))
			}
			c.untilLeft()
		}, want: facts{status: 500, outcome: "upstream_error", category: "upstream_error", upStatus: 500}, says: "it broke.", response: "error"},
		{name: "closed before a head", script: func(_ sample, c *call) { c.Body() },
			want: facts{status: 502, code: "upstream_unavailable", outcome: "upstream_error", category: "connection"}},
		{name: "closed before a head, to a client that wants a stream", stream: true, script: func(_ sample, c *call) { c.Body() },
			want: facts{status: 502, code: "upstream_unavailable", outcome: "upstream_error", category: "connection"}},
		{name: "broken inside a JSON answer", script: func(up sample, c *call) {
			c.open(200, "application/json")
			c.chunk(up.unary[:20])
		}, want: facts{status: 502, code: "upstream_cut", outcome: "upstream_cut", category: "connection", upStatus: 200}},
		{name: "broken in front of the first event", stream: true, script: func(_ sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(": hello\n\n")
		}, want: facts{status: 502, code: "upstream_cut", outcome: "upstream_cut", category: "connection", upStatus: 200}},
		{name: "broken inside a stream", stream: true, script: func(up sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(untilWord(up))
		}, want: facts{status: 200, outcome: "upstream_cut", category: "connection", upStatus: 200, cut: true}, failed: true, response: "partial"},
		{name: "a clean end without the terminal event", stream: true, script: func(up sample, c *call) {
			c.open(200, "text/event-stream")
			c.chunk(up.before())
			c.end()
		}, want: facts{status: 200, outcome: "upstream_cut", category: "stream_truncated", upStatus: 200, cut: true, finish: "stop"}, failed: true, response: "whole"},
		{name: "an empty stream", stream: true, script: func(_ sample, c *call) { c.open(200, "text/event-stream"); c.end() },
			want: facts{status: 502, code: "upstream_cut", outcome: "upstream_cut", category: "stream_truncated", upStatus: 200}},
	}
}

func TestTranslatedSituations(t *testing.T) {
	rows := translatedRows()
	for status, category := range map[int]string{400: "client_error", 401: "auth", 404: "not_found", 408: "timeout", 429: "rate_limit", 500: "upstream_error", 503: "upstream_error", 529: "upstream_error"} {
		for _, stream := range []bool{false, true} {
			rows = append(rows, translatedRow{name: fmt.Sprintf("the upstream answers %d, stream %v", status, stream), stream: stream,
				script: func(up sample, c *call) {
					c.reply(status, "application/json", up.nativeErrorBody, "Retry-After", "7", "Set-Cookie", "a=b")
				},
				want: facts{status: status, outcome: "upstream_error", category: category, upStatus: status}, says: "no such model", response: "error"})
		}
	}
	up := chatSample()
	for _, dialect := range []string{"messages", "responses"} {
		s := sampleOf(dialect)
		for _, row := range rows {
			t.Run(dialect+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				u := newUpstream(t, func(c *call) { row.script(up, c) })
				r := start(t, u.url(), chatOnly)
				ask := s.ask
				if row.stream {
					ask = s.askStream
				}
				row.check(r, s, r.exchange("/ng-rollout/r"+s.path, ask, "Accept-Encoding", "gzip", "X-Api-Key", "secret"))
				if row.want.upStatus != 0 {
					c := u.next()
					if c.Target != up.path || c.Header.Get("Accept-Encoding") != "identity" || c.Header.Get("Authorization") != "Bearer secret" || c.Header.Get("X-Api-Key") != "" {
						t.Errorf("the upstream was asked %s with %v", c.Target, c.Header)
					}
				}
			})
		}
	}
}

func (row translatedRow) check(r *rig, s sample, got exchanged) {
	t := r.t
	t.Helper()
	if got.status != row.want.status || got.cut != row.want.cut {
		t.Errorf("the client got status %d, cut %v, want %d, %v\n%s", got.status, got.cut, row.want.status, row.want.cut, got.body)
	}
	if code := got.header.Get("X-Rolltap-Error"); code != row.want.code {
		t.Errorf("x-rolltap-error %q, want %q", code, row.want.code)
	}
	if !strings.Contains(got.body, row.says) {
		t.Errorf("the client does not see %q:\n%s", row.says, got.body)
	}
	if failed := s.failureSeen(got.body); failed != row.failed {
		t.Errorf("a failure event was sent: %v, want %v\n%s", failed, row.failed, got.body)
	}
	if row.want.status >= 400 {
		s.checkError(t, got.body, bodyCode(row))
		if got.header.Get("Content-Type") != "application/json" {
			t.Errorf("the error is of type %s", got.header.Get("Content-Type"))
		}
	} else if stream := strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream"); stream != row.stream {
		t.Errorf("the client was sent %s", got.header.Get("Content-Type"))
	}
	if row.want.upStatus >= 400 && row.name != "an endless error" && (got.header.Get("Retry-After") != "7" || got.header.Get("Set-Cookie") != "") {
		t.Errorf("of the upstream's headers the client sees %v", got.header)
	}
	want := row.want
	want.upDialect = "chat"
	rec := r.expectFacts("r", s, want)
	rec.expect(t, "model_call_id", got.header.Get("X-Rolltap-Call-Id"), "rolltap.stream", row.stream, "rolltap.response_bytes", len(got.body),
		"rolltap.upstream.dialect", "chat", "rolltap.upstream.path", "/v1/chat/completions", "rolltap.upstream.request.messages.0.content", "hi")
	switch row.response {
	case "whole":
		rec.expect(t, "response."+s.foldedText, s.text, "rolltap.upstream.response.choices.0.message.content", s.text, "rolltap.usage.prompt_tokens", 3, "rolltap.upstream.model", "m")
	case "partial":
		rec.expect(t, "response."+s.foldedText, "Hello", "rolltap.upstream.response.choices.0.message.content", "Hello")
	case "error":
		if rec.at("response.error.message") == nil {
			t.Errorf("the record's response is %v", rec["response"])
		}
	case "":
		rec.expect(t, "response", nil)
	}
}

// bodyCode is the code that an error in OpenAI's shape has; upstream errors have their own.
func bodyCode(row translatedRow) string {
	switch {
	case row.want.code != "":
		return row.want.code
	case row.want.status == 429:
		return "rate_limit_exceeded"
	case row.want.status == 404:
		return "model_not_found"
	case row.want.status == 503, row.want.status == 529:
		return "overloaded"
	}
	return ""
}

func (s sample) failureSeen(body string) bool {
	switch s.dialect {
	case "messages":
		return strings.Contains(body, "event: error\n")
	case "responses":
		return strings.Contains(body, "event: response.failed\n")
	}
	return strings.Contains(body, `data: {"error":`)
}

// Refusals come before anything is sent upstream, name the field and are recorded.
func TestTranslatedRefusals(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		header           []string
		status           int
		code, param      string
	}{
		{name: "no JSON", path: "/v1/messages", body: "{", status: 400, code: "invalid_request"},
		{name: "no body", path: "/v1/responses", body: "", status: 400, code: "invalid_request"},
		{name: "no object", path: "/v1/messages", body: "[]", status: 400, code: "invalid_request"},
		{name: "a member twice", path: "/v1/responses", body: `{"model":"m","input":"a","input":"b"}`, status: 400, code: "invalid_request", param: "input"},
		{name: "a field of the wrong type", path: "/v1/responses", body: `{"model":"m","input":7}`, status: 400, code: "invalid_request", param: "input"},
		{name: "stream is a word", path: "/v1/responses", body: `{"model":"m","input":"a","stream":"false"}`, status: 400, code: "invalid_request", param: "stream"},
		{name: "an earlier response", path: "/v1/responses", body: `{"model":"m","input":"a","previous_response_id":"resp_1"}`, status: 400, code: "unsupported_parameter", param: "previous_response_id"},
		{name: "a coding that nobody knows", path: "/v1/messages", body: "x", header: []string{"Content-Encoding", "br"}, status: 415, code: "unsupported_encoding"},
		{name: "a coding that is not true", path: "/v1/messages", body: "{}", header: []string{"Content-Encoding", "gzip"}, status: 400, code: "invalid_request"},
		{name: "too large", path: "/v1/messages", body: `{"model":"` + strings.Repeat("m", 3000) + `"}`, status: 413, code: "request_too_large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := newUpstream(t, func(c *call) { c.reply(200, "application/json", chatSample().unary) })
			r := start(t, u.url(), chatOnly, func(cfg *Config) { cfg.MaxRequestBytes = 2000 })
			got := r.exchange("/ng-rollout/r"+c.path, c.body, c.header...)
			if got.status != c.status || got.header.Get("X-Rolltap-Error") != c.code {
				t.Errorf("status %d, code %q: %s", got.status, got.header.Get("X-Rolltap-Error"), got.body)
			}
			s := sampleOf(strings.TrimPrefix(c.path, "/v1/"))
			s.checkError(t, got.body, c.code)
			if c.param != "" && !strings.Contains(got.body, c.param) {
				t.Errorf("the field %s is not named: %s", c.param, got.body)
			}
			u.quiet()
			rec := r.record("r")
			rec.expect(t, "rolltap.outcome", "refused", "status_code", c.status, "local_response_reason", c.code, "upstream_attempted", false, "response_source", "local", "rolltap.upstream", nil)
		})
	}
}

// Connections are used again behind a translated stream.
func TestTranslatedConnectionsAreUsedAgain(t *testing.T) {
	up, s := chatSample(), messagesSample()
	u := newUpstream(t, func(k *call) {
		k.open(200, "text/event-stream")
		k.chunk(up.stream())
		k.end()
	})
	r := start(t, u.url(), chatOnly)
	for range 20 {
		if got := r.exchange("/ng-rollout/r"+s.path, s.askStream); got.cut {
			t.Fatal("cut")
		}
	}
	if n := u.connections(); n > 2 {
		t.Errorf("%d connections were opened for 20 calls, one after the other", n)
	}
}

// The empty turn that stands for an overflow by policy is a turn like any other to the client.
func TestTranslatedOverflowAsLength(t *testing.T) {
	const words = `{"error":{"message":"This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025 input tokens.","type":"BadRequestError","param":null,"code":400}}`
	for _, dialect := range []string{"messages", "responses"} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream %v", dialect, stream), func(t *testing.T) {
				t.Parallel()
				s := sampleOf(dialect)
				ask, stop := s.ask, map[string]string{"messages": `"stop_reason":"max_tokens"`, "responses": `"reason":"max_output_tokens"`}[dialect]
				if stream {
					ask = s.askStream
				}
				u := newUpstream(t, func(k *call) { k.reply(400, "application/json", words) })
				r := start(t, u.url(), chatOnly, func(cfg *Config) { cfg.Rewrite.ContextOverflow = "length" })
				got := r.exchange("/ng-rollout/r"+s.path, ask)
				if got.status != 200 || got.cut || !strings.Contains(got.body, stop) {
					t.Errorf("status %d: %s", got.status, got.body)
				}
				r.record("r").expect(t, "rolltap.outcome", "upstream_error", "error_category", "context_length_exceeded", "upstream_status_code", 400,
					"response_source", "local", "local_response_reason", "context_length_exceeded")
			})
		}
	}
}

// Behind an early opening the empty turn is the rest of the stream, however the upstream told.
func TestTranslatedOverflowAsLengthBehindAKeepAlive(t *testing.T) {
	const words = `{"error":{"message":"This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025 input tokens.","type":"BadRequestError","param":null,"code":400}}`
	for name, answer := range map[string]func(*call){
		"a status": func(k *call) { k.reply(400, "application/json", words) },
		"a frame":  func(k *call) { k.open(200, "text/event-stream"); k.chunk(data(words)); k.end() },
		"JSON":     func(k *call) { k.reply(200, "application/json", words) },
	} {
		for dialect, stop := range map[string]string{"messages": `"stop_reason":"max_tokens"`, "responses": `"reason":"max_output_tokens"`} {
			t.Run(dialect+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := sampleOf(dialect)
				u := newUpstream(t, func(k *call) {
					k.Body()
					time.Sleep(50 * time.Millisecond)
					answer(k)
				})
				r := start(t, u.url(), chatOnly, func(cfg *Config) {
					cfg.Rewrite.ContextOverflow, cfg.KeepaliveOpen, cfg.Keepalive = "length", 5*time.Millisecond, 10*time.Millisecond
				})
				got := r.exchange("/ng-rollout/r"+s.path, s.askStream)
				if got.status != 200 || got.cut || !strings.Contains(got.body, stop) || s.failureSeen(got.body) {
					t.Errorf("status %d, cut %v: %s", got.status, got.cut, got.body)
				}
				r.record("r").expect(t, "rolltap.outcome", "upstream_error", "error_category", "context_length_exceeded",
					"response_source", "local", "local_response_reason", "context_length_exceeded")
			})
		}
	}
}

// A model is renamed on the way up, and the client sees the name that it asked for.
func TestTranslatedModel(t *testing.T) {
	up := chatSample()
	u := newUpstream(t, func(k *call) {
		k.reply(200, "application/json", strings.Replace(up.unary, `"model":"m"`, `"model":"served"`, 1))
	})
	r := start(t, u.url(), chatOnly, func(cfg *Config) { cfg.Model, cfg.ModelMap = "served", map[string]string{"small": "tiny"} })
	for asked, want := range map[string]string{"m": "served", "small": "tiny"} {
		s := messagesSample()
		got := r.exchange("/ng-rollout/"+asked+s.path, strings.Replace(s.ask, `"model":"m"`, `"model":"`+asked+`"`, 1))
		if !strings.Contains(got.body, `"model":"`+asked+`"`) {
			t.Errorf("the client sees %s", got.body)
		}
		r.record(asked).expect(t, "rolltap.upstream.request.model", want, "rolltap.upstream.model", "served")
	}
}

// A whole answer that is not what its content coding says is an invalid one; it did not break off.
func TestTranslatedAnswerThatCannotBeDecoded(t *testing.T) {
	up := chatSample()
	for name, script := range map[string]func(k *call, body string){
		"a coding that nobody knows": func(k *call, body string) { k.reply(200, "application/json", body, "Content-Encoding", "br") },
		"a coding that is not true":  func(k *call, body string) { k.reply(200, "application/json", body, "Content-Encoding", "gzip") },
		"a stream of one that is not": func(k *call, body string) {
			k.open(200, "text/event-stream", "Content-Encoding", "zstd")
			k.chunk(body)
			k.end()
		},
	} {
		for _, dialect := range []string{"messages", "responses"} {
			t.Run(dialect+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := sampleOf(dialect)
				u := newUpstream(t, func(k *call) { script(k, up.unary) })
				r := start(t, u.url(), chatOnly)
				got := r.exchange("/ng-rollout/r"+s.path, s.askStream)
				if got.status != 502 || got.header.Get("X-Rolltap-Error") != "upstream_invalid" {
					t.Errorf("answered %d %s", got.status, got.body)
				}
				r.record("r").expect(t, "rolltap.outcome", "upstream_error", "error_category", "upstream_error", "upstream_status_code", 200, "response_source", "local")
			})
		}
	}
}

// An error whose words cannot be decoded keeps its status.
func TestTranslatedErrorThatCannotBeDecoded(t *testing.T) {
	for _, dialect := range []string{"messages", "responses"} {
		for _, coding := range []string{"br", "gzip"} {
			t.Run(dialect+"/"+coding, func(t *testing.T) {
				t.Parallel()
				s := sampleOf(dialect)
				u := newUpstream(t, func(k *call) {
					k.reply(429, "application/json", "slow down, please", "Content-Encoding", coding, "Retry-After", "7")
				})
				r := start(t, u.url(), chatOnly)
				if got := r.exchange("/ng-rollout/r"+s.path, s.askStream); got.status != 429 || got.header.Get("Retry-After") != "7" {
					t.Errorf("answered %d %v %s", got.status, got.header, got.body)
				}
				r.record("r").expect(t, "rolltap.outcome", "upstream_error", "error_category", "rate_limit", "upstream_status_code", 429, "response_source", "upstream")
			})
		}
	}
}

// What comes together with the error of a content coding counts: the checksum of a coding stands behind its last byte.
func TestTranslatedAnswerWithAWrongChecksum(t *testing.T) {
	up := chatSample()
	wrong := func(text string) string {
		body := encoded(t, "deflate", []string{text})[0]
		body[len(body)-1] ^= 1
		return string(body)
	}
	for _, dialect := range []string{"messages", "responses"} {
		s := sampleOf(dialect)
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream %v", dialect, stream), func(t *testing.T) {
				t.Parallel()
				ask, want := s.ask, 502
				if stream {
					ask, want = s.askStream, 200
				}
				u := newUpstream(t, func(k *call) {
					if stream {
						k.reply(200, "text/event-stream", wrong(up.stream()), "Content-Encoding", "deflate")
						return
					}
					k.reply(200, "application/json", wrong(up.unary), "Content-Encoding", "deflate")
				})
				r := start(t, u.url(), chatOnly)
				if got := r.exchange("/ng-rollout/r"+s.path, ask); got.status != want || got.cut {
					t.Errorf("answered %d, cut %v: %s", got.status, got.cut, got.body)
				}
				r.record("r").expect(t, "rolltap.upstream.response.choices.0.message.content", "Hello there", "rolltap.usage.completion_tokens", 2,
					"rolltap.finish_reason", "stop")
			})
		}
	}
}
