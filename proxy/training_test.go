package proxy

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"rolltap/capture/training"
	"rolltap/internal/demomodel"
)

// A client of each dialect, streaming or not, sees what it sees without token capture, and the store has exactly what the engine tells who asks
// it directly.
func TestTokens(t *testing.T) {
	model := demo(t)
	for _, k := range talkers() {
		for _, stream := range []bool{false, true} {
			t.Run(k.dialect+map[bool]string{true: "/stream", false: "/whole"}[stream], func(t *testing.T) {
				path, more := k.asks(stream)
				ask := k.body(t, []any{k.user("Think: say something in unicode")}, more)
				r := start(t, model, taughtBy)
				res, got, err := r.do("POST", trainingPrefix+path, ask, "X-Request-Id", "fixed")
				if err != nil || res.StatusCode != http.StatusOK {
					t.Fatalf("%v, %v: %s", err, res, got)
				}
				plain := start(t, model, taughtBy)
				_, want, err := plain.do("POST", "/ng-rollout/r"+path, ask, "X-Request-Id", "fixed")
				if err != nil {
					t.Fatal(err)
				}
				// What was not asked for is null for a client of the engine, and not there for a client of ours. The fingerprint
				// stands in a stream's usage, which is hidden.
				got, want = sameTimes(got), unasked.ReplaceAllString(sameTimes(want), "")
				if stream && k.dialect == "chat" {
					want = strings.Replace(want, `,"system_fingerprint":"vllm-0.32.0-demo"`, "", 1)
				}
				if got != want {
					t.Errorf("the client sees\n%s\nwithout token capture\n%s", got, want)
				}
				rec := r.record("r")
				prompt, generation, logprobs := direct(t, r, model, r.upstreamRequest("r", 0))
				all := r.keptTokens("r")
				if len(all) != 1 || len(generation) == 0 || len(prompt) == 0 {
					t.Fatalf("%d entries, %d ids, %d prompt ids", len(all), len(generation), len(prompt))
				}
				e := all[0]
				same(t, "prompt ids", e.prompt, prompt)
				same(t, "generated ids", e.generation, generation)
				same(t, "log probabilities", e.logprobs, logprobs)
				rec.expect(t, "model_call_id", e.CallID, "rolltap.tokens.result", "ok", "rolltap.tokens.source", "inline", "rolltap.tokens.parent", "root",
					"rolltap.tokens.prompt", len(prompt), "rolltap.tokens.generated", len(generation), "rolltap.tokens.logprobs_mode", "unknown",
					"rolltap.usage.prompt_tokens", len(prompt), "rolltap.usage.completion_tokens", len(generation), "response."+k.idMember(), e.ResponseID)
				e.facts.expect(t, "result", "ok", "generated", len(generation))
				if n := r.counted(tokenCalls("ok")); n != 1 {
					t.Errorf("%v calls are counted", n)
				}
				for _, name := range []string{"rolltap_captured_tokens_total", "rolltap_trainable_tokens_total"} {
					if n := r.counted(name); n != float64(len(generation)) {
						t.Errorf("%s is %v, want %d", name, n, len(generation))
					}
				}
				if files := strings.Join(plain.stored(), " "); strings.Contains(files, ".tokens") {
					t.Errorf("a call that nobody asked to capture left %s", files)
				}
			})
		}
	}
}

var (
	answerIDs   = regexp.MustCompile(`("responseId":"|msg_|resp_|call_|toolu_|fc_|rs_|ct_|chatcmpl-(?:tool-)?)[A-Za-z0-9_-]+`)
	unasked     = regexp.MustCompile(`,"(?:prompt_)?token_ids":null`)
	answerTimes = regexp.MustCompile(`("(?:created|created_at|completed_at)"):[0-9.]+`)
)

// sameTimes takes the seconds and the random ids out of an answer.
func sameTimes(s string) string {
	return answerTimes.ReplaceAllString(answerIDs.ReplaceAllString(s, "$1"), `$1:0`)
}

// Each call of a conversation with tools is the child of the one before, in every dialect, and what is stored of it grows with what is new.
func TestTokens_conversation(t *testing.T) {
	model := demo(t)
	for _, k := range talkers() {
		for _, stream := range []bool{false, true} {
			t.Run(k.dialect+map[bool]string{true: "/stream", false: "/whole"}[stream], func(t *testing.T) {
				r := start(t, model, taughtBy)
				path, more := k.asks(stream)
				turns := []any{k.user("What is the weather in Paris? Use the tool.")}
				for i, next := range []string{"Count to 12", "echo: still here", "Think: why is the sky blue?", ""} {
					if res, got := r.post(trainingPrefix+path, k.body(t, turns, more)); res.StatusCode != http.StatusOK {
						t.Fatalf("call %d: %s %s", i+1, res.Status, got)
					}
					said := record(r.records("r")[len(r.records("r"))-1]["response"].(object))
					turns = append(turns, k.said(said)...)
					if results := k.results(said, "18 degrees"); results != nil {
						turns = append(turns, results...)
						if res, got := r.post(trainingPrefix+path, k.body(t, turns, more)); res.StatusCode != http.StatusOK {
							t.Fatalf("call %d, with results: %s %s", i+1, res.Status, got)
						}
						said = record(r.records("r")[len(r.records("r"))-1]["response"].(object))
						turns = append(turns, k.said(said)...)
					}
					turns = append(turns, k.user(next))
				}
				all := r.keptTokens("r")
				if len(all) != 5 {
					t.Fatalf("%d calls, want five", len(all))
				}
				for i, e := range all {
					rec := r.records("r")[i]
					prompt, generation, _ := direct(t, r, model, r.upstreamRequest("r", i))
					same(t, "prompt ids", e.prompt, prompt)
					same(t, "generated ids", e.generation, generation)
					if i == 0 {
						rec.expect(t, "rolltap.tokens.parent", "root")
						continue
					}
					rec.expect(t, "rolltap.tokens.parent", "resolved", "rolltap.tokens.parent_call_id", all[i-1].CallID)
					if e.Parent != training.Resolved || e.ParentCallID != all[i-1].CallID {
						t.Errorf("call %d follows %q (%s)", i+1, e.ParentCallID, e.Parent)
					}
					if !e.PromptIsDelta {
						t.Errorf("call %d repeats the prompt of its parent", i+1)
					}
				}
				if r.incomplete("r") {
					t.Error("the rollout is masked")
				}
			})
		}
	}
}

// What is wrong with the tokens of an answer costs the call nothing: the rollout is marked with the reason, which the record and a counter have.
func TestTokens_marks(t *testing.T) {
	answer := func(prompt, ids, logprobs, count string) string {
		return `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"` +
			ids + logprobs + `}]` + prompt + `,"usage":{"prompt_tokens":2,"completion_tokens":` + count + `}}`
	}
	const prompt, ids = `,"prompt_token_ids":[1,2]`, `,"token_ids":[3,4]`
	const logprobs = `,"logprobs":{"content":[{"token":"h","logprob":-0.5,"bytes":null,"top_logprobs":[]},{"token":"i","logprob":-1.25e-05,"bytes":null,"top_logprobs":[]}]}`
	for _, row := range []struct{ name, answer, reason string }{
		{"whole", answer(prompt, ids, logprobs, "2"), ""},
		{"no ids", answer("", "", logprobs, "2"), "no_token_ids"},
		{"no prompt", answer("", ids, logprobs, "2"), "no_prompt_ids"},
		{"no log probabilities", answer(prompt, ids, "", "2"), "no_logprobs"},
		{"fewer log probabilities", answer(prompt, `,"token_ids":[3,4,5]`, logprobs, "3"), "logprobs_mismatch"},
		{"more counted", answer(prompt, ids, logprobs, "3"), "count_mismatch"},
		{"an id below zero", answer(prompt, `,"token_ids":[3,-4]`, logprobs, "2"), "invalid_ids"},
	} {
		for _, k := range talkers() {
			t.Run(row.name+"/"+k.dialect, func(t *testing.T) {
				up := newUpstream(t, func(c *call) {
					if c.Target != "/v1/chat/completions" {
						c.reply(404, "application/json", `{}`)
						return
					}
					c.reply(200, "application/json", row.answer)
				})
				r := start(t, up.url(), taughtBy)
				res, got := r.post(trainingPrefix+k.path, k.body(t, []any{k.user("hi")}, nil))
				if res.StatusCode != http.StatusOK || strings.Contains(got, "token_ids") || strings.Contains(got, "-0.5") {
					t.Errorf("answered %s: %s", res.Status, got)
				}
				want := row.reason
				if want == "" {
					want = "ok"
				}
				r.record("r").expect(t, "rolltap.outcome", "ok", "rolltap.tokens.result", want)
				if got := r.marks("r"); got != row.reason || r.incomplete("r") != (row.reason != "") {
					t.Errorf("marked with %q, incomplete %t, want %q", got, r.incomplete("r"), row.reason)
				}
				if n := r.counted(tokenCalls(want)); n != 1 {
					t.Errorf("%s counts %v", tokenCalls(want), n)
				}
				if row.reason == "" {
					same(t, "log probabilities", r.keptTokens("r")[0].logprobs, []string{"-0.5", "-1.25e-05"})
				}
			})
		}
	}
}

// A call that failed before its first words leaves nothing that a later prompt could hold: its rollout stays whole. One that broke off behind
// them is masked, since the client may go on from what it has seen. The record says which.
func TestTokens_failures(t *testing.T) {
	for _, row := range []struct {
		name   string
		script func(*call)
		result string
		marks  bool
	}{
		{"an error", func(c *call) { c.reply(500, "application/json", `{"error":{"message":"no"}}`) }, "failed", false},
		{"a refusal", func(c *call) { c.reply(400, "application/json", `{"error":{"message":"no"}}`) }, "failed", false},
		{"a cut", func(c *call) { c.reset() }, "failed", false},
		{"a stream without its end", func(c *call) {
			c.open(200, "text/event-stream")
			c.chunk(chatSample().events[0] + chatSample().events[1])
			c.reset()
		}, "truncated", true},
		{"a stream that fails behind its first words", func(c *call) {
			c.open(200, "text/event-stream")
			c.chunk(chatSample().events[0] + chatSample().events[1] + chatSample().failure)
			c.end()
		}, "upstream_error", true},
		{"a stream that ends before its first words", func(c *call) {
			c.open(200, "text/event-stream")
			c.chunk(chatSample().events[0])
			c.reset()
		}, "failed", false},
		{"a stream that is an error", func(c *call) {
			c.open(200, "text/event-stream")
			c.chunk(chatSample().events[0] + chatSample().failure)
			c.end()
		}, "failed", false},
	} {
		for _, k := range talkers() {
			t.Run(row.name+"/"+k.dialect, func(t *testing.T) {
				up := newUpstream(t, row.script)
				r := start(t, up.url(), taughtBy)
				path, more := k.asks(true)
				r.do("POST", trainingPrefix+path, k.body(t, []any{k.user("hi")}, more)) // it may be cut
				r.record("r").expect(t, "rolltap.tokens.result", row.result)
				if got := r.incomplete("r"); got != row.marks {
					t.Errorf("incomplete: %t, marks %q", got, r.marks("r"))
				}
				if n := r.counted(tokenCalls(row.result)); n != 1 {
					t.Errorf("%s counts %v", tokenCalls(row.result), n)
				}
			})
		}
	}
}

// A client that leaves inside an answer may go on from what it has seen, which nobody else knows.
func TestTokens_clientLeaves(t *testing.T) {
	s := chatSample()
	up := newUpstream(t, func(c *call) {
		c.open(200, "text/event-stream")
		c.chunk(s.events[0] + s.events[1])
		c.untilLeft()
	})
	r := start(t, up.url(), taughtBy)
	w := dial(t, r.addr)
	w.ask("POST", trainingPrefix+s.path, s.askStream)
	w.head()
	if _, err := w.br.ReadString('H'); err != nil { // of Hello
		t.Fatal(err)
	}
	w.conn.Close()
	r.record("r").expect(t, "rolltap.outcome", "client_gone", "rolltap.tokens.result", "client_gone") // the mark stands beside it
	if got := r.marks("r"); got != "client_gone" {
		t.Errorf("marked with %q", got)
	}
}

// A call whose beginning cannot be made durable is not sent. It is the only failure of the store that a client sees.
func TestTokens_noIntent(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.dialect, func(t *testing.T) {
			up := newUpstream(t, func(c *call) {
				if c.Target != "/v1/models" { // what a translation may ask
					t.Errorf("the upstream was asked %s", c.Target)
				}
				answerAll(c)
			})
			r := start(t, up.url(), taughtBy)
			if err := os.MkdirAll(r.tokenFile("r", ".intents"), 0o750); err != nil {
				t.Fatal(err)
			}
			res, got := r.post(trainingPrefix+s.path, s.ask)
			if res.StatusCode != http.StatusInsufficientStorage || res.Header.Get("X-Rolltap-Error") != "store_unavailable" {
				t.Errorf("answered %s with code %q", res.Status, res.Header.Get("X-Rolltap-Error"))
			}
			s.checkError(t, got, "store_unavailable")
			if n := len(r.records("r")); n != 0 {
				t.Errorf("%d records", n)
			}
			eventually(t, "the rollout is marked", func() bool {
				_, err := os.Stat(r.cfg.Store + "/r.capture.incomplete")
				return err == nil
			})
		})
	}
}

// A rollout whose tokens are frozen takes no further call, and no one is sent.
func TestTokens_frozen(t *testing.T) {
	s := sampleOf("chat")
	model := demo(t)
	r := start(t, model, taughtBy)
	k := talkers()[0]
	r.post(trainingPrefix+k.path, k.body(t, []any{k.user("hi")}, nil))
	r.keptTokens("r") // freezes
	res, got := r.post(trainingPrefix+k.path, k.body(t, []any{k.user("hi")}, nil))
	if res.StatusCode != http.StatusConflict || res.Header.Get("X-Rolltap-Error") != "sealed" {
		t.Errorf("answered %s: %s", res.Status, got)
	}
	s.checkError(t, got, "sealed")
	if r.incomplete("r") {
		t.Error("a refused call masks the rollout")
	}
	r.records("r")[1].expect(t, "local_response_reason", "sealed", "upstream_attempted", false)
}

// More than one choice is refused by name, before anything is sent.
func TestTokens_severalChoices(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url(), taughtBy)
	res, got := r.post(trainingPrefix+"/v1/chat/completions", `{"model":"m","n":2,"messages":[]}`)
	if res.StatusCode != http.StatusBadRequest || res.Header.Get("X-Rolltap-Error") != "unsupported_parameter" || !strings.Contains(got, `"param":"n"`) {
		t.Errorf("answered %s: %s", res.Status, got)
	}
	up.quiet()
	if r.incomplete("r") {
		t.Error("a refused call masks the rollout")
	}
}

// Whose tokens are kept is a setting.
func TestTokens_setting(t *testing.T) {
	model := demo(t)
	k := talkers()[0]
	for _, row := range []struct {
		setting string
		prefix  string
		want    int
	}{
		{"off", "/ng-rollout/r", 0}, {"off", trainingPrefix, 0},
		{"auto", "/ng-rollout/r", 0}, {"auto", trainingPrefix, 1},
		{"always", "/ng-rollout/r", 1}, {"always", trainingPrefix, 1},
	} {
		t.Run(row.setting+" "+row.prefix, func(t *testing.T) {
			r := start(t, model, taughtBy, func(c *Config) { c.TokenCapture = row.setting })
			r.post(row.prefix+k.path, k.body(t, []any{k.user("hi")}, nil))
			if n := len(r.keptTokens("r")); n != row.want {
				t.Errorf("%d entries, want %d", n, row.want)
			}
		})
	}
}

// What may have generated and was not captured marks its rollout before the client sees the answer; discovery, counting, and what the upstream does
// not know do not.
func TestTokens_aside(t *testing.T) {
	for _, row := range []struct {
		method, path string
		status       int
		marks        bool
	}{
		{"GET", "/v1/models", 200, false},
		{"GET", "/v1/models/m", 200, false},
		{"POST", "/v1/messages/count_tokens", 200, false},
		{"POST", "/tokenize", 200, false},
		{"POST", "/v1/responses/input_tokens", 200, false},
		{"GET", "/healthz", 200, false}, {"GET", "/livez", 200, false}, {"GET", "/readyz", 200, false},
		{"HEAD", "/anything", 200, false}, {"OPTIONS", "/v1/chat/completions/old", 200, false},
		{"GET", "/title", 200, false}, // of the settings
		{"POST", "/v1/completions", 200, true},
		{"POST", "/v1/completions", 500, true}, // it may have been read
		{"POST", "/v1/completions", 404, false},
		{"POST", "/v1/embeddings", 405, false},
		{"GET", "/v1/chat/completions/old", 200, true},
	} {
		t.Run(row.method+row.path+http.StatusText(row.status), func(t *testing.T) {
			answer := `{"input_tokens":1,"count":1}`
			if row.method == "HEAD" {
				answer = ""
			}
			up := newUpstream(t, func(c *call) { c.reply(row.status, "application/json", answer) })
			r := start(t, up.url(), taughtBy, func(c *Config) { c.SideRequests = []string{"get /title"} })
			if _, _, err := r.do(row.method, trainingPrefix+row.path, `{"model":"m","messages":[]}`); err != nil {
				t.Fatal(err)
			}
			if got := r.incomplete("r"); got != row.marks {
				t.Errorf("incomplete: %t, want %t", got, row.marks)
			}
			if n := r.counted("rolltap_token_unseen_requests_total"); n != 0 != row.marks {
				t.Errorf("%v are counted", n)
			}
			if _, _, err := r.do(row.method, "/ng-rollout/other"+row.path, `{}`); err != nil || r.incomplete("other") {
				t.Errorf("without the training prefix: %v, incomplete %t", err, r.incomplete("other"))
			}
		})
	}
}

// An engine that tells the version of its weights has it in the entry, before and behind the call.
func TestTokens_weights(t *testing.T) {
	model := demomodel.New(demomodel.Options{})
	var version atomic.Value
	version.Store("v1")
	var during atomic.Bool // the version changes while a call runs
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/weight_info" {
			json.NewEncoder(w).Encode(object{"weight_version": version.Load()})
			return
		}
		model.ServeHTTP(w, r)
		if during.Load() {
			version.Store("v2")
		}
	}))
	t.Cleanup(s.Close)
	r := start(t, s.URL, taughtBy, func(c *Config) { c.LogprobsMode = "processed" })
	for _, k := range talkers() {
		r.post(trainingPrefix+k.path, k.body(t, []any{k.user("hi")}, k.cool()))
	}
	during.Store(true)
	r.post(trainingPrefix+talkers()[0].path, talkers()[0].body(t, []any{talkers()[0].user("hi")}, nil))
	all, last := r.keptTokens("r"), len(talkers())
	for i, e := range all {
		e.facts.expect(t, "weights.start", "v1", "weights.end", map[bool]string{false: "v1", true: "v2"}[i == last], "weights.straddled", i == last, "logprobs_mode", "processed")
		if i < last {
			e.facts.expect(t, "sampling.temperature", 0.5)
		}
	}
	if len(all) != last+1 {
		t.Errorf("%d entries", len(all))
	}
}

// The policy that replaced what a client asked to sample with stands in the entry.
func TestTokens_override(t *testing.T) {
	r := start(t, demo(t), taughtBy, func(c *Config) { c.Rewrite.Override = []byte(`{"temperature":1.0,"top_p":0.9}`) })
	for _, k := range talkers() {
		r.post(trainingPrefix+k.path, k.body(t, []any{k.user("hi")}, k.cool()))
	}
	for _, e := range r.keptTokens("r") {
		e.facts.expect(t, "sampling.temperature", 1, "sampling.top_p", 0.9, "override.0", "temperature", "override.1", "top_p")
	}
}

// What has no ids in its answer is asked for the prompt's at the engine's tokenizer, and only the ids that log probabilities name are taken.
func TestTokens_withoutInlineIDs(t *testing.T) {
	asked := make(chan string, 1)
	up := newUpstream(t, func(c *call) {
		if c.Target == "/tokenize" {
			asked <- c.Body()
			c.reply(200, "application/json", `{"count":3,"max_model_len":99,"tokens":[7,8,9]}`)
			return
		}
		c.reply(200, "application/json", `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop","logprobs":{"content":[{"token":"token_id:31","logprob":-0.25,"bytes":null,"top_logprobs":[]}]}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`)
	})
	r := start(t, up.url(), taughtBy)
	r.post(trainingPrefix+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":1}`)
	e := r.keptTokens("r")[0]
	same(t, "prompt ids", e.prompt, []string{"7", "8", "9"})
	same(t, "generated ids", e.generation, []string{"31"})
	e.facts.expect(t, "source", "logprobs")
	if got := <-asked; got != `{"model":"m","messages":[{"role":"user","content":"hi"}]}` {
		t.Errorf("the tokenizer was asked %s", got)
	}
}

// A store that does not take an entry costs the client nothing either.
func TestTokens_notStored(t *testing.T) {
	model := demo(t)
	k := talkers()[1]
	r := start(t, model, taughtBy)
	if err := os.MkdirAll(r.tokenFile("r", ".jsonl"), 0o750); err != nil {
		t.Fatal(err)
	}
	if res, got := r.post(trainingPrefix+k.path, k.body(t, []any{k.user("hi")}, nil)); res.StatusCode != http.StatusOK {
		t.Errorf("answered %s: %s", res.Status, got)
	}
	r.record("r")
	if n := r.counted(tokenCalls("store")); n != 1 {
		t.Errorf("%v are counted", n)
	}
	if err := os.Remove(r.tokenFile("r", ".jsonl")); err != nil {
		t.Fatal(err)
	}
	if !r.incomplete("r") {
		t.Error("the rollout is not masked")
	}
}
