package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rolltap/capture"
	"rolltap/capture/training"
	"rolltap/internal/demomodel"
)

// object is a JSON object that is written by tests.
type object = map[string]any

// talker is a client that holds a conversation with tools in one dialect.
type talker struct {
	dialect, path string
	streamPath    string                                   // "": the body asks for a stream
	ask           object                                   // what every request has, but the turns
	turns         string                                   // the member with the turns
	user          func(text string) any                    // a turn
	said          func(response record) []any              // the model's turn, as clients put it back
	results       func(response record, text string) []any // of the tools that it calls, none without calls
}

func talkers() []talker {
	parameters := object{"type": "object", "properties": object{"city": object{"type": "string"}}, "required": []string{"city"}}
	list := func(v any) []any { l, _ := v.([]any); return l }
	return []talker{
		{
			dialect: "chat", path: "/v1/chat/completions", turns: "messages",
			ask:  object{"model": demomodel.DefaultModel, "tools": []any{object{"type": "function", "function": object{"name": "get_weather", "description": "look", "parameters": parameters}}}},
			user: func(text string) any { return object{"role": "user", "content": text} },
			said: func(r record) []any { return []any{r.at("choices.0.message")} },
			results: func(r record, text string) (out []any) {
				for _, c := range list(r.at("choices.0.message.tool_calls")) {
					out = append(out, object{"role": "tool", "tool_call_id": c.(object)["id"], "content": text})
				}
				return out
			},
		},
		{
			dialect: "messages", path: "/v1/messages", turns: "messages",
			ask: object{"model": demomodel.DefaultModel, "max_tokens": 200, "system": "be brief",
				"tools": []any{object{"name": "get_weather", "description": "look", "input_schema": parameters}}},
			user: func(text string) any { return object{"role": "user", "content": text} },
			said: func(r record) []any { return []any{object{"role": "assistant", "content": r["content"]}} },
			results: func(r record, text string) []any {
				var blocks []any
				for _, b := range list(r["content"]) {
					if b := b.(object); b["type"] == "tool_use" {
						blocks = append(blocks, object{"type": "tool_result", "tool_use_id": b["id"], "content": text})
					}
				}
				if blocks == nil {
					return nil
				}
				return []any{object{"role": "user", "content": blocks}}
			},
		},
		{
			dialect: "gemini", path: "/v1beta/models/" + demomodel.DefaultModel + ":generateContent", turns: "contents",
			streamPath: "/v1beta/models/" + demomodel.DefaultModel + ":streamGenerateContent?alt=sse",
			ask: object{"systemInstruction": object{"parts": []any{object{"text": "be brief"}}}, "generationConfig": object{"maxOutputTokens": 200, "thinkingConfig": object{"includeThoughts": true}},
				"tools": []any{object{"functionDeclarations": []any{object{"name": "get_weather", "description": "look", "parametersJsonSchema": parameters}}}}},
			user: func(text string) any { return object{"role": "user", "parts": []any{object{"text": text}}} },
			said: func(r record) []any { return []any{r.at("candidates.0.content")} },
			results: func(r record, text string) []any {
				var parts []any
				for _, p := range list(r.at("candidates.0.content.parts")) {
					if c, ok := p.(object)["functionCall"].(object); ok {
						parts = append(parts, object{"functionResponse": object{"id": c["id"], "name": c["name"], "response": object{"output": text}}})
					}
				}
				if parts == nil {
					return nil
				}
				return []any{object{"role": "user", "parts": parts}}
			},
		},
		{
			dialect: "responses", path: "/v1/responses", turns: "input",
			ask: object{"model": demomodel.DefaultModel, "store": false, "instructions": "be brief",
				"tools": []any{object{"type": "function", "name": "get_weather", "description": "look", "parameters": parameters}}},
			user: func(text string) any { return object{"role": "user", "content": text} },
			said: func(r record) []any { return list(r["output"]) },
			results: func(r record, text string) (out []any) {
				for _, i := range list(r["output"]) {
					if i := i.(object); i["type"] == "function_call" {
						out = append(out, object{"type": "function_call_output", "call_id": i["call_id"], "output": text})
					}
				}
				return out
			},
		},
	}
}

// asks is where the talker asks, and what it adds to the body, for a stream or for no stream.
func (k talker) asks(stream bool) (path string, more object) {
	switch {
	case k.streamPath == "":
		return k.path, object{"stream": stream}
	case stream:
		return k.streamPath, nil
	}
	return k.path, nil
}

// idMember is what the id of an answer is called.
func (k talker) idMember() string {
	if k.dialect == "gemini" {
		return "responseId"
	}
	return "id"
}

// cool is what a request has besides to be sampled at 0.5.
func (k talker) cool() object {
	if k.streamPath != "" {
		return object{"generationConfig": object{"temperature": 0.5}}
	}
	return object{"temperature": 0.5}
}

// body is the request with these turns.
func (k talker) body(t testing.TB, turns []any, more object) string {
	t.Helper()
	q := object{k.turns: turns}
	for name, v := range k.ask {
		q[name] = v
	}
	for name, v := range more {
		q[name] = v
	}
	b, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// demo starts the demo model, a server that tells token ids as vLLM does.
func demo(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(demomodel.New(demomodel.Options{}))
	t.Cleanup(s.Close)
	return s.URL
}

// taughtBy makes a sidecar in front of a Chat upstream that captures tokens.
func taughtBy(c *Config) { c.UpstreamDialects, c.TokenCapture = []string{"chat"}, "auto" }

const trainingPrefix = "/ng-rollout/r/training-token-capture"

// kept is a token entry as a trainer reads it.
type kept struct {
	*training.View
	prompt, generation, logprobs []string // numbers as they are spelled; the prompt whole
	facts                        record   // its member rolltap
}

// keptTokens proves the token files of a rollout and returns its entries in the order in which they became durable.
func (r *rig) keptTokens(rollout string) []kept {
	r.t.Helper()
	seen, err := training.Verify(r.cfg.Store, rollout)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, p := range seen.Problems {
		r.t.Errorf("verify: %s", p)
	}
	s, err := training.Open(training.Options{Dir: r.cfg.Store})
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.Close(r.t.Context())
	snap, err := s.Freeze(r.t.Context(), rollout)
	if err != nil {
		r.t.Fatal(err)
	}
	defer snap.Close()
	chains, err := training.NewChains(snap.File(), snap.Entries())
	if err != nil {
		r.t.Fatal(err)
	}
	var out []kept
	for entries := snap.Entries(); ; {
		v, err := entries.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			r.t.Fatal(err)
		}
		k := kept{View: v, generation: spelled(r.t, v.Generation.Numbers(snap.File())), logprobs: spelled(r.t, v.LogProbs.Numbers(snap.File()))}
		var whole bytes.Buffer
		if err := chains.WritePrompt(&whole, v); err != nil {
			r.t.Fatal(err)
		}
		k.prompt = numbersOf(r.t, whole.String())
		facts, err := io.ReadAll(v.Rolltap.Open(snap.File()))
		if err != nil || json.Unmarshal(facts, &k.facts) != nil {
			r.t.Fatalf("facts %q: %v", facts, err)
		}
		out = append(out, k)
	}
}

func spelled(t testing.TB, n *training.Numbers) []string {
	t.Helper()
	out := []string{}
	for n.Next() {
		out = append(out, string(n.Text()))
	}
	if err := n.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// numbersOf are the numbers of a JSON array as they are spelled.
func numbersOf(t testing.TB, array string) []string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(array))
	d.UseNumber()
	var ns []json.Number
	if err := d.Decode(&ns); err != nil {
		t.Fatalf("%v: %.100s", err, array)
	}
	out := make([]string, len(ns))
	for i, n := range ns {
		out[i] = n.String()
	}
	return out
}

// upstreamRequest is what the upstream was sent in the n-th call of a rollout, byte for byte.
func (r *rig) upstreamRequest(rollout string, n int) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.cfg.Store, rollout+".capture.jsonl"))
	if err != nil {
		r.t.Fatal(err)
	}
	var rec struct {
		Rolltap struct {
			Upstream struct {
				Request json.RawMessage `json:"request"`
			} `json:"upstream"`
		} `json:"rolltap"`
	}
	if err := json.Unmarshal(bytes.Split(b, []byte("\n"))[n], &rec); err != nil {
		r.t.Fatal(err)
	}
	return string(rec.Rolltap.Upstream.Request)
}

// direct asks the upstream itself for the tokens of a request that it was sent, in one piece.
func direct(t testing.TB, r *rig, upstream, request string) (prompt, generation, logprobs []string) {
	t.Helper()
	body := strings.Replace(strings.Replace(request, `"stream":true`, `"stream":false`, 1), `"stream_options":{"include_usage":true}`, `"user":"u"`, 1)
	res, err := r.client.Post(upstream+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		Prompt  json.RawMessage `json:"prompt_token_ids"`
		Choices []struct {
			IDs      json.RawMessage `json:"token_ids"`
			Logprobs struct {
				Content []struct {
					Logprob json.Number `json:"logprob"`
				} `json:"content"`
			} `json:"logprobs"`
		} `json:"choices"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	for _, c := range answer.Choices[0].Logprobs.Content {
		logprobs = append(logprobs, c.Logprob.String())
	}
	return numbersOf(t, string(answer.Prompt)), numbersOf(t, string(answer.Choices[0].IDs)), logprobs
}

// same compares two lists of numbers, which may be spelled in two ways.
func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b string) bool {
		x, err := strconv.ParseFloat(a, 64)
		y, err2 := strconv.ParseFloat(b, 64)
		return a == b || err == nil && err2 == nil && x == y && strings.ContainsAny(a+b, ".eE")
	}) {
		t.Errorf("%s: %d numbers %.200v, want %d: %.200v", what, len(got), got, len(want), want)
	}
}

// idle waits until nothing of a rollout is in flight: until its record, and what there is to say of its tokens, is in the store.
func (r *rig) idle(rollout string) {
	r.t.Helper()
	if err := capture.Idle(r.t.Context(), r.cfg.Store, rollout); err != nil {
		r.t.Fatal(err)
	}
}

// incomplete reports whether the tokens of a rollout are marked, or some call's fate is unknown.
func (r *rig) incomplete(rollout string) bool {
	r.t.Helper()
	r.idle(rollout)
	v, err := training.Verify(r.cfg.Store, rollout)
	if err != nil {
		r.t.Fatal(err)
	}
	return v.Incomplete
}

// marks are the reasons why a rollout is incomplete.
func (r *rig) marks(rollout string) string {
	r.t.Helper()
	r.idle(rollout)
	v, err := training.Verify(r.cfg.Store, rollout)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, m := range v.Marks {
		out = append(out, m.Reason)
	}
	return strings.Join(out, " ")
}

func tokenCalls(result string) string {
	return fmt.Sprintf("rolltap_token_calls_total{result=%q}", result)
}

// tokenFile is the path of one of a rollout's token files.
func (r *rig) tokenFile(rollout, suffix string) string {
	return filepath.Join(r.cfg.Store, rollout+".tokens"+suffix)
}
