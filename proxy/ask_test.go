package proxy

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"rolltap/rewrite"
)

func TestCountTokensByTheUpstreamsTokenizer(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		status, want int
		body, code   string
	}{
		{"counted", `{"count":17,"max_model_len":100,"tokens":[1,2]}`, 200, 200, `{"input_tokens":17}`, ""},
		{"no tokenizer", `{"detail":"Not Found"}`, 404, 501, "", "not_supported"},
		{"no such model", `{"error":{"message":"The model does not exist.","type":"NotFoundError","code":404}}`, 404, 404, "", ""},
		{"an error", `{"error":{"message":"no such model","type":"x","code":404}}`, 400, 400, "", ""},
		{"nonsense", `{"tokens":[]}`, 200, 502, "", "upstream_invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asked := ""
			u := newUpstream(t, func(k *call) { asked = k.Body(); k.reply(c.status, "application/json", c.answer) })
			r := start(t, u.url(), chatOnly)
			got := r.exchange("/ng-rollout/r/v1/messages/count_tokens", `{"model":"m","system":"be brief","messages":[{"role":"user","content":"hi"}]}`)
			if got.status != c.want || got.header.Get("X-Rolltap-Error") != c.code || c.body != "" && got.body != c.body {
				t.Errorf("status %d, %v: %s", got.status, got.header, got.body)
			}
			if k := u.next(); k.Target != "/tokenize" || !strings.Contains(asked, `"be brief"`) || strings.Contains(asked, "stream") {
				t.Errorf("the upstream was asked %s %s", k.Target, asked)
			}
			if len(r.stored()) != 0 {
				t.Error("a count left a record")
			}
		})
	}
}

// An upstream that has no Chat counts in its own dialect or by its tokenizer, whichever it has.
func TestCountTokens_everyUpstream(t *testing.T) {
	const anthropic = `{"model":"m","system":"be brief","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`
	const unknown = `{"error":{"message":"there is no model m","type":"invalid_request_error","param":null,"code":null}}`
	const gemini = `{"contents":[{"parts":[{"text":"hi"}]}],"systemInstruction":{"parts":[{"text":"be brief"}]}}`
	for _, c := range []struct {
		speaks, path, ask string
		has               map[string]string // answers of the upstream; others are 404
		asked             []string
		status            int
		body              string
	}{
		{"responses", "/v1/messages/count_tokens", anthropic, map[string]string{"/v1/responses/input_tokens": `{"object":"response.input_tokens","input_tokens":9}`},
			[]string{"/v1/responses/input_tokens"}, 200, `{"input_tokens":9}`},
		{"responses", "/v1/messages/count_tokens", anthropic, map[string]string{"/tokenize": `{"count":7,"tokens":[1]}`},
			[]string{"/v1/responses/input_tokens", "/tokenize"}, 200, `{"input_tokens":7}`},
		{"responses", "/v1/messages/count_tokens", anthropic, map[string]string{"/v1/responses/input_tokens": unknown, "/tokenize": `{"count":7,"tokens":[1]}`},
			[]string{"/v1/responses/input_tokens", "/tokenize"}, 200, `{"input_tokens":7}`},
		{"responses", "/v1/messages/count_tokens", anthropic, map[string]string{"/v1/responses/input_tokens": unknown, "/tokenize": strings.Replace(unknown, "model m", "path", 1)},
			[]string{"/v1/responses/input_tokens", "/tokenize"}, 404, `{"type":"error","error":{"type":"not_found_error","message":"there is no model m"}}`},
		{"responses", "/v1/messages/count_tokens", anthropic, nil, []string{"/v1/responses/input_tokens", "/tokenize"}, 501, ""},
		{"responses", "/v1beta/models/m:countTokens", gemini, map[string]string{"/tokenize": `{"count":7,"tokens":[1]}`},
			[]string{"/v1/responses/input_tokens", "/tokenize"}, 200, `{"totalTokens":7}`},
		{"messages", "/v1beta/models/m:countTokens", gemini, map[string]string{"/v1/messages/count_tokens": `{"input_tokens":5}`},
			[]string{"/v1/messages/count_tokens"}, 200, `{"totalTokens":5}`},
		{"messages", "/v1beta/models/m:countTokens", gemini, map[string]string{"/tokenize": `{"count":7,"tokens":[1]}`},
			[]string{"/v1/messages/count_tokens", "/tokenize"}, 200, `{"totalTokens":7}`},
	} {
		t.Run(fmt.Sprint(c.speaks, c.path, c.has), func(t *testing.T) {
			t.Parallel()
			u := newUpstream(t, func(k *call) {
				body := k.Body()
				if k.Method == "GET" { // how long may a prompt be?
					k.reply(404, "application/json", `{"detail":"Not Found"}`)
					return
				}
				if !strings.Contains(body, `be brief`) || strings.Contains(body, "max_") || strings.Contains(body, `"stream"`) {
					t.Errorf("%s was asked %s", k.Target, body)
				}
				switch answer := c.has[k.Target]; {
				case strings.HasPrefix(answer, `{"error"`):
					k.reply(404, "application/json", answer)
					return
				case answer != "":
					k.reply(200, "application/json", answer)
					return
				}
				k.reply(404, "application/json", `{"detail":"Not Found"}`)
			})
			r := start(t, u.url(), func(cfg *Config) { cfg.UpstreamDialects, cfg.Gemini = []string{c.speaks}, true })
			got := r.exchange("/ng-rollout/r"+c.path, c.ask)
			if got.status != c.status || c.body != "" && got.body != c.body {
				t.Errorf("status %d: %s", got.status, got.body)
			}
			if code := got.header.Get("X-Rolltap-Error"); (code == "not_supported") != (c.status == 501) || len(r.stored()) != 0 {
				t.Errorf("code %q, %d files in the store", code, len(r.stored()))
			}
			for _, path := range c.asked {
				k := u.next()
				if k.Method == "GET" {
					k = u.next()
				}
				if k.Target != path {
					t.Errorf("the upstream was asked %s, want %s", k.Target, path)
				}
				if c.status == 501 && !strings.Contains(got.body, path) {
					t.Errorf("%s is not named: %s", path, got.body)
				}
			}
		})
	}
}

func TestModelsInTheClientsShape(t *testing.T) {
	const list = `{"object":"list","data":[{"id":"a","object":"model","created":1700000000,"max_model_len":100},{"id":"b\"c","object":"model"}]}`
	u := newUpstream(t, func(k *call) { k.reply(200, "application/json", list) })
	r := start(t, u.url(), chatOnly)
	res, body, err := r.do("GET", "/ng-rollout/r/v1/models?limit=1000", "", "anthropic-version", "2023-06-01")
	const want = `{"data":[{"type":"model","id":"a","display_name":"a","created_at":"2023-11-14T22:13:20Z"},` +
		`{"type":"model","id":"b\"c","display_name":"b\"c","created_at":"1970-01-01T00:00:00Z"}],"has_more":false,"first_id":"a","last_id":"b\"c"}`
	if err != nil || res.StatusCode != 200 || body != want {
		t.Errorf("%v: %s", err, body)
	}
	if _, body, _ := r.do("GET", "/v1/models", ""); body != list {
		t.Errorf("to others the list passes as it is: %s", body)
	}
}

// Max tokens beyond what the upstream says of its model are lowered to that.
func TestMaxTokensAreThoseOfTheUpstreamsModel(t *testing.T) {
	lists := 0
	u := newUpstream(t, func(k *call) {
		if k.Method == "GET" {
			lists++
			k.reply(200, "application/json", `{"object":"list","data":[{"id":"m","max_model_len":64}]}`)
			return
		}
		k.reply(200, "application/json", chatSample().unary)
	})
	r := start(t, u.url(), chatOnly, func(cfg *Config) { cfg.Rewrite = rewrite.DefaultPolicy() })
	for i := range 3 {
		id := fmt.Sprint("r", i)
		r.exchange("/ng-rollout/"+id+"/v1/messages", `{"model":"m","max_tokens":32000,"messages":[{"role":"user","content":"hi"}]}`)
		r.record(id).expect(t, "rolltap.upstream.request.max_tokens", 64)
	}
	if lists != 1 {
		t.Errorf("the upstream was asked for its models %d times", lists)
	}
}

// In the upstream's own dialect a renamed model changes its name and nothing else.
func TestModelIsRenamedInPlace(t *testing.T) {
	for _, s := range samples() {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream %v", s.dialect, stream), func(t *testing.T) {
				t.Parallel()
				served := func(text string) string { return strings.ReplaceAll(text, `"model":"m"`, `"model":"served"`) }
				ask, answer := s.ask, s.unary
				if stream {
					ask, answer = s.askStream, s.stream()
				}
				got := ""
				u := newUpstream(t, func(k *call) {
					got = k.Body()
					if !stream {
						k.reply(200, "application/json", served(answer))
						return
					}
					k.open(200, "text/event-stream")
					k.chunk(served(answer))
					k.end()
				})
				r := start(t, u.url(), func(cfg *Config) { cfg.Model = "served" })
				if seen := r.exchange("/ng-rollout/r"+s.path, ask); seen.body != answer {
					t.Errorf("the client saw %s", seen.body)
				}
				if got != served(ask) {
					t.Errorf("the upstream got %s", got)
				}
				rec := r.record("r")
				rec.expect(t, "rolltap.outcome", "ok", "rolltap.upstream.request.model", "served", "rolltap.upstream.response", nil, "request.model", "m",
					"rolltap.upstream.model", "served")
			})
		}
	}
}

// The record names the model as the upstream did, which may be neither of the two that were asked for.
func TestModelOfTheUpstreamIsRecorded(t *testing.T) {
	for _, s := range samples() {
		for _, stream := range []bool{false, true} {
			for _, said := range []string{"its own", ""} {
				t.Run(fmt.Sprintf("%s/stream %v/%q", s.dialect, stream, said), func(t *testing.T) {
					t.Parallel()
					served := func(text string) string { return strings.ReplaceAll(text, `"model":"m"`, `"model":"`+said+`"`) }
					ask, want := s.ask, said
					if stream {
						ask = s.askStream
					}
					if said == "" {
						want = "served" // as it was asked
					}
					u := newUpstream(t, func(k *call) {
						if !stream {
							k.reply(200, "application/json", served(s.unary))
							return
						}
						k.open(200, "text/event-stream")
						k.chunk(served(s.stream()))
						k.end()
					})
					r := start(t, u.url(), func(cfg *Config) { cfg.Model = "served" })
					r.exchange("/ng-rollout/r"+s.path, ask)
					r.record("r").expect(t, "rolltap.upstream.model", want)
				})
			}
		}
	}
}

// A count of tokens asks for the model that a call would ask for, whether it passes or is translated.
func TestCountAsksForTheRenamedModel(t *testing.T) {
	long := strings.Repeat("long ", 300_000)
	for name, body := range map[string]string{
		"short": `{"model":"m", "messages":[{"role":"user","content":"hi"}]}`, "long": `{"model":"m", "messages":[{"role":"user","content":"` + long + `"}]}`,
		"another": `{"model":"other", "messages":[]}`, "none": `{"messages":[]}`, "no object": `[`,
	} {
		for _, coding := range []string{"", "gzip"} {
			t.Run(name+coding, func(t *testing.T) {
				t.Parallel()
				got := ""
				u := newUpstream(t, func(k *call) {
					if got = k.Body(); k.Header.Get("Content-Encoding") == "gzip" {
						d, err := gzip.NewReader(strings.NewReader(got))
						if err != nil {
							t.Error(err)
							return
						}
						plain, _ := io.ReadAll(d)
						got = string(plain)
					}
					k.reply(200, "application/json", `{"input_tokens":1}`)
				})
				r := start(t, u.url(), func(cfg *Config) { cfg.ModelMap = map[string]string{"m": "served", "other": "other"} })
				ask, header := body, []string{}
				if coding != "" {
					ask, header = string(encoded(t, coding, []string{body})[0]), []string{"Content-Encoding", coding}
				}
				res, answer := r.post("/ng-rollout/r/v1/messages/count_tokens", ask, header...)
				if res.StatusCode != 200 || answer != `{"input_tokens":1}` {
					t.Errorf("answered %d %s", res.StatusCode, answer)
				}
				if want := strings.Replace(body, `"model":"m"`, `"model":"served"`, 1); got != want {
					t.Errorf("the upstream got %.100s…", got)
				}
			})
		}
	}
}

// A slot at the upstream is waited for in order, and the client is kept alive meanwhile.
func TestTranslatedWaitForASlotIsKeptAlive(t *testing.T) {
	up, s := chatSample(), messagesSample()
	release := make(chan struct{})
	u := newUpstream(t, func(k *call) {
		k.open(200, "text/event-stream")
		await(release)
		k.chunk(up.stream())
		k.end()
	})
	r := start(t, u.url(), chatOnly, func(cfg *Config) {
		cfg.UpstreamConcurrency = 1
		cfg.KeepaliveOpen, cfg.Keepalive = 10*time.Millisecond, 10*time.Millisecond
	})
	first, second := dial(t, r.addr), dial(t, r.addr)
	first.ask("POST", "/ng-rollout/a"+s.path, s.askStream)
	u.next()
	second.ask("POST", "/ng-rollout/b"+s.path, s.askStream)
	res, err := http.ReadResponse(second.br, nil)
	if err != nil || res.StatusCode != 200 {
		t.Fatal(err)
	}
	u.quiet()
	close(release)
	r.record("a").expect(t, "rolltap.outcome", "ok")
	u.next()
	r.record("b").expect(t, "rolltap.outcome", "ok")
}

// In the upstream's own dialect the keys that act there replace what they are about, and are recorded.
func TestPolicyInTheUpstreamsOwnDialect(t *testing.T) {
	s := messagesSample()
	for _, c := range []struct {
		name, ask, sent string
		change          func(*rewrite.Policy)
		lost            any
	}{
		{"extra_body", `{"model":"m", "max_tokens":9,"messages":[]}`, `{"model":"m", "max_tokens":9,"messages":[],"top_k":5}`,
			func(p *rewrite.Policy) { p.ExtraBody = []byte(`{"top_k":5,"max_tokens":1}`) }, nil},
		{"override", `{"model":"m", "max_tokens":9,"messages":[]}`, `{"model":"m", "max_tokens":1,"messages":[]}`,
			func(p *rewrite.Policy) { p.Override = []byte(`{"max_tokens":1}`) }, nil},
		{"unsigned_thinking", `{"model":"m", "messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t"}, {"type":"text","text":"a"}]}]}`,
			`{"model":"m", "messages":[{"role":"assistant","content":[{"type":"text","text":"a"}]}]}`,
			func(p *rewrite.Policy) { p.UnsignedThinking = "drop" }, "messages[0].content[0].thinking"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := ""
			u := newUpstream(t, func(k *call) { got = k.Body(); k.reply(200, "application/json", s.unary) })
			r := start(t, u.url(), func(cfg *Config) { c.change(&cfg.Rewrite) })
			if seen := r.exchange("/ng-rollout/r"+s.path, c.ask); seen.body != s.unary {
				t.Errorf("the client saw %s", seen.body)
			}
			if got != c.sent {
				t.Errorf("the upstream got %s", got)
			}
			rec := r.record("r")
			if rec.expect(t, "rolltap.outcome", "ok", "rolltap.losses.0.path", c.lost); rec.at("rolltap.upstream.request") == nil {
				t.Error("what was sent is not in the record")
			}
		})
	}
}

// The list of models is for all: neither a client that leaves while it is asked for nor one that may not list models takes it from the others.
func TestMaxTokensWhateverTheFirstClientDoes(t *testing.T) {
	listed := make(chan struct{})
	u := newUpstream(t, func(k *call) {
		switch {
		case k.Method == "GET" && k.Header.Get("Authorization") == "Bearer nobody":
			k.reply(401, "application/json", `{"error":"Unauthorized"}`)
		case k.Method == "GET":
			await(listed)
			k.reply(200, "application/json", `{"object":"list","data":[{"id":"m","max_model_len":64}]}`)
		default:
			k.reply(200, "application/json", chatSample().unary)
		}
	})
	r := start(t, u.url(), chatOnly, func(cfg *Config) { cfg.Rewrite = rewrite.DefaultPolicy() })
	const ask = `{"model":"m","max_tokens":32000,"messages":[{"role":"user","content":"hi"}]}`
	r.exchange("/ng-rollout/a/v1/messages", ask, "X-Api-Key", "nobody")
	u.next() // its list
	u.next() // its call
	w := dial(t, r.addr)
	w.ask("POST", "/ng-rollout/b/v1/messages", ask)
	u.next()
	w.conn.Close()
	close(listed)
	r.exchange("/ng-rollout/c/v1/messages", ask)
	r.record("c").expect(t, "rolltap.upstream.request.max_tokens", 64)
}
