package proxy

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// recordedAnswer is an answer of vLLM 0.32.0, of its Python front end or (rust-) of its Rust one, with the request that it answers.
type recordedAnswer struct {
	name    string
	stream  bool
	body    string
	Request json.RawMessage
	IDs     int // that were counted in it by other means
	Choices int
}

// recordedAnswers are those of package tokens, by name.
func recordedAnswers(t testing.TB) []*recordedAnswer {
	t.Helper()
	index, err := os.ReadFile("../rewrite/tokens/testdata/vllm.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*recordedAnswer{}
	if err := json.Unmarshal(index, &all); err != nil {
		t.Fatal(err)
	}
	for name, a := range all {
		files, _ := filepath.Glob("../rewrite/tokens/testdata/vllm/" + name + ".*")
		if len(files) != 1 {
			t.Fatalf("%s: %d files", name, len(files))
		}
		body, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		a.name, a.body, a.stream = name, string(body), filepath.Ext(files[0]) == ".sse"
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *recordedAnswer) int { return strings.Compare(a.name, b.name) })
}

// asked are the members of the request that token capture may add, as the recorded client sent them.
func (a *recordedAnswer) asked() (ids, logprobs, usage bool) {
	var q struct {
		IDs      bool `json:"return_token_ids"`
		Logprobs bool
		Options  struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := json.Unmarshal(a.Request, &q); err != nil {
		panic(err)
	}
	return q.IDs, q.Logprobs, q.Options.Usage
}

// unasked is the request of a client that asks for no ids, no log probabilities, and for usage when it is told to.
func (a *recordedAnswer) unasked(t testing.TB, usage bool) string {
	t.Helper()
	var q map[string]json.RawMessage
	if err := json.Unmarshal(a.Request, &q); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"return_token_ids", "logprobs", "top_logprobs", "stream_options", "return_tokens_as_token_ids"} {
		delete(q, name)
	}
	if a.stream && usage {
		q["stream_options"] = json.RawMessage(`{"include_usage":true}`)
	}
	b, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// serve sends the answer as the engine did, an event a chunk.
func (a *recordedAnswer) serve(c *call, body string) {
	if !a.stream {
		c.reply(200, "application/json", body)
		return
	}
	c.open(200, "text/event-stream; charset=utf-8")
	for event := range strings.SplitSeq(body, "\n\n") {
		if event != "" {
			c.chunk(event + "\n\n")
		}
	}
	c.end()
}

// permuted is the answer with ids that no tokenizer gives to its text.
func (a *recordedAnswer) permuted() string {
	k := 0
	return idList.ReplaceAllStringFunc(a.body, func(m string) string {
		parts := idList.FindStringSubmatch(m)
		var ids []string
		for range strings.Split(parts[2], ",") {
			k++
			ids = append(ids, strconv.Itoa(k*7919%100003))
		}
		return parts[1] + strings.Join(ids, ",") + "]"
	})
}

var idList = regexp.MustCompile(`("(?:prompt_)?token_ids":\[)([0-9,]+)\]`)

// objects are the JSON texts of an answer: one, or those of a stream's events, the marks of its end as they are.
func objects(stream bool, body string) []string {
	if !stream {
		return []string{body}
	}
	var all []string
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			all = append(all, data)
		}
	}
	return all
}

// decoded is a JSON text as encoding/json reads it, its numbers as they are spelled.
func decoded(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	return v
}

// told are the numbers in an answer, read without any code of the product.
func (a *recordedAnswer) told(t testing.TB, body string) (prompt, generation, logprobs []string) {
	t.Helper()
	numbers := func(v any) (out []string) {
		list, _ := v.([]any)
		for _, n := range list {
			out = append(out, string(n.(json.Number)))
		}
		return out
	}
	for _, text := range objects(a.stream, body) {
		if text == "[DONE]" {
			continue
		}
		o := decoded(t, text).(object)
		if p := numbers(o["prompt_token_ids"]); p != nil {
			prompt = p
		}
		choices, _ := o["choices"].([]any)
		for _, c := range choices {
			generation = append(generation, numbers(c.(object)["token_ids"])...)
			entries, _ := c.(object)["logprobs"].(object)
			list, _ := entries["content"].([]any)
			for _, e := range list {
				logprobs = append(logprobs, string(e.(object)["logprob"].(json.Number)))
			}
		}
	}
	return prompt, generation, logprobs
}

// bare is what the engine says to a client that asked for none of it, as JSON texts in a spelling of their own: events that are there for
// an id only do not exist (TestHiderIsBare holds this against recordings without ids).
func (a *recordedAnswer) bare(t testing.TB, body string, usage bool) []string {
	t.Helper()
	var out []string
	forced := false // the engine tells usage on every event, asked or not
	for _, text := range objects(a.stream, body) {
		if text == "[DONE]" {
			out = append(out, text)
			continue
		}
		o := decoded(t, text).(object)
		delete(o, "prompt_token_ids")
		choices, _ := o["choices"].([]any)
		silent := len(choices) > 0
		for _, c := range choices {
			c := c.(object)
			delta, ok := c["delta"].(object)
			ids, _ := c["token_ids"].([]any)
			if !ok || len(delta) > 0 || c["finish_reason"] != nil || len(ids) == 0 && c["logprobs"] == nil {
				silent = false
			}
			delete(c, "token_ids")
			if strings.HasPrefix(a.name, "rust-") && a.stream {
				delete(c, "logprobs")
			} else if _, ok := c["logprobs"]; ok {
				c["logprobs"] = nil
			}
		}
		forced = forced || a.stream && len(choices) > 0 && o["usage"] != nil
		if silent || a.stream && !usage && !forced && len(choices) == 0 && o["usage"] != nil {
			continue
		}
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

// seen are the JSON texts that a Chat client got, in the spelling of bare.
func (a *recordedAnswer) seen(t testing.TB, got string) []string {
	t.Helper()
	all := objects(a.stream, got)
	for i, text := range all {
		if text == "[DONE]" {
			continue
		}
		o := decoded(t, text).(object)
		if strings.HasPrefix(a.name, "rust-") && a.stream {
			choices, _ := o["choices"].([]any)
			for _, c := range choices {
				if c := c.(object); c["logprobs"] == nil {
					delete(c, "logprobs")
				}
			}
		}
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = string(b)
	}
	return all
}

// What a recorded answer comes to in the store, by what happened in it.
func (a *recordedAnswer) result() string {
	ids, logprobs, _ := a.asked()
	switch {
	case strings.HasSuffix(a.name, "error-regex"):
		return "failed" // nothing but an error
	case strings.HasSuffix(a.name, "engine-death"):
		return "upstream_error"
	case strings.HasSuffix(a.name, "client-abort"):
		return "truncated"
	case strings.HasSuffix(a.name, "reasoning-hidden"):
		return "hidden_reasoning"
	case strings.HasSuffix(a.name, "token-strings"):
		return "no_prompt_ids" // the tokenizer does not answer here
	case !ids:
		return "no_token_ids"
	case !logprobs:
		return "no_logprobs"
	}
	return "ok"
}

// Every recorded answer of vLLM, byte for byte through the proxy to a client of each dialect, with its own ids and with ones that no tokenizer
// gives: the store has the engine's numbers as they are spelled, or says why not, and the client sees what it asked for.
func TestTokens_recordings(t *testing.T) {
	type playing struct {
		a    *recordedAnswer
		body string
	}
	var now atomic.Pointer[playing]
	up := newUpstream(t, func(c *call) {
		if c.Target != "/v1/chat/completions" {
			c.reply(404, "application/json", `{"detail":"Not Found"}`)
			return
		}
		p := now.Load()
		p.a.serve(c, p.body)
	})
	r := start(t, up.url(), taughtBy)
	whole := 0
	for i, a := range recordedAnswers(t) {
		if a.Choices > 1 {
			continue // never asked for: TestTokens_severalChoices
		}
		for _, variant := range []string{"as it was", "permuted"} {
			body := a.body
			if variant == "permuted" {
				if body = a.permuted(); body == a.body {
					continue
				}
			}
			for _, k := range talkers() {
				for _, usage := range []bool{false, true} {
					if usage && (k.dialect != "chat" || !a.stream) {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%s/usage=%t", a.name, variant, k.dialect, usage), func(t *testing.T) {
						now.Store(&playing{a, body})
						r := *r
						r.t = t
						rollout := fmt.Sprintf("r%d-%s-%s-%t", i, strings.ReplaceAll(variant, " ", ""), k.dialect, usage)
						path, more := k.asks(a.stream)
						ask := a.unasked(t, usage)
						if k.dialect != "chat" {
							ask = k.body(t, []any{k.user("hi")}, more)
						}
						_, got, _ := r.do("POST", "/ng-rollout/"+rollout+"/training-token-capture"+path, ask) // it may be cut
						if strings.Contains(got, "token_ids") || strings.Contains(got, `"logprob"`) && !strings.Contains(a.name, "prompt-logprobs") {
							t.Errorf("the client sees ids or log probabilities: %.300s", got)
						}
						if k.dialect == "chat" {
							got, want := a.seen(t, got), a.bare(t, body, usage)
							for i := range max(len(got), len(want)) {
								if i >= len(got) || i >= len(want) || got[i] != want[i] {
									t.Fatalf("event %d of %d and %d: got\n%q\nwant\n%q", i, len(got), len(want), got[min(i, len(got)):min(i+1, len(got))], want[min(i, len(want)):min(i+1, len(want))])
								}
							}
						}
						want := a.result()
						if want == "ok" && strings.HasPrefix(a.name, "extra-chat-stream-") && strings.Contains(a.name, "abort") && k.dialect != "chat" {
							want = "upstream_error" // an end that these dialects have no word for
						}
						if want == "hidden_reasoning" && k.dialect != "chat" { // which cannot ask for that
							if want = "no_token_ids"; a.IDs > 0 {
								want = "count_mismatch"
							}
						}
						r.record(rollout).expect(t, "rolltap.tokens.result", want)
						if marked := want != "ok" && want != "failed"; r.incomplete(rollout) != marked {
							t.Errorf("%s: incomplete is %t", want, !marked)
						}
						if want != "ok" {
							return
						}
						whole++
						entries := r.keptTokens(rollout)
						if len(entries) != 1 {
							t.Fatalf("%d entries", len(entries))
						}
						prompt, generation, logprobs := a.told(t, body)
						if len(generation) != a.IDs {
							t.Fatalf("%d ids are told, %d were counted", len(generation), a.IDs)
						}
						e := entries[0]
						same(t, "prompt ids", e.prompt, prompt)
						same(t, "generated ids", e.generation, generation)
						same(t, "log probabilities", e.logprobs, logprobs)
					})
				}
			}
		}
	}
	if whole < 300 {
		t.Errorf("only %d calls with tokens", whole)
	}
}

// A client that asks for everything itself gets the engine's bytes, every one of them.
func TestTokens_recordingsAskedFor(t *testing.T) {
	var now atomic.Pointer[recordedAnswer]
	var sent atomic.Value
	up := newUpstream(t, func(c *call) {
		sent.Store(c.Body())
		now.Load().serve(c, now.Load().body)
	})
	r := start(t, up.url(), taughtBy)
	for i, a := range recordedAnswers(t) {
		ids, logprobs, usage := a.asked()
		if !ids || !logprobs || a.stream && !usage || a.Choices > 1 {
			continue
		}
		now.Store(a)
		rollout := fmt.Sprintf("r%d", i)
		path := "/ng-rollout/" + rollout + "/training-token-capture/v1/chat/completions"
		res, got, err := r.do("POST", path, string(a.Request))
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v", a.name, err)
		}
		if got != a.body {
			t.Errorf("%s: the client's bytes were changed", a.name)
		}
		if sent.Load() != string(a.Request) {
			t.Errorf("%s: the engine was asked %s", a.name, sent.Load())
		}
		r.record(rollout).expect(t, "rolltap.tokens.result", a.result())
	}
}

// An answer that is longer than what is held passes as it is, and is told to be too large, not to lack its end.
func TestTokens_tooLong(t *testing.T) {
	body := chatSample().unary + strings.Repeat(" ", maxAnswer)
	up := newUpstream(t, func(c *call) { c.reply(200, "application/json", body) })
	r := start(t, up.url(), taughtBy)
	if _, got := r.post(trainingPrefix+chatSample().path, chatSample().ask); got != body {
		t.Errorf("%d bytes, want %d", len(got), len(body))
	}
	r.record("r").expect(t, "rolltap.tokens.result", "too_large")
	if got := r.marks("r"); got != "too_large" {
		t.Errorf("marked with %q", got)
	}
}
