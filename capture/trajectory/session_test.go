package trajectory

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// session is a rollout that is written call by call, as a store has it.
type session struct {
	t       *testing.T
	dir     string
	dialect string
	client  map[string]string
	n       int
	clock   float64
	lines   []string
}

func newSession(t *testing.T, dialect string) *session {
	return &session{t: t, dir: t.TempDir(), dialect: dialect, client: map[string]string{}, clock: 1795000000}
}

// call records a call: its request, what was answered (nil: nothing) and its outcome.
func (s *session) call(request, response any, outcome string) string {
	s.t.Helper()
	id := fmt.Sprintf("%032x", s.n+1)
	s.n++
	start := s.clock
	s.clock += 2
	status := 200
	if outcome != "ok" {
		status = 500
	}
	line, err := json.Marshal(map[string]any{
		"model_call_id": id, "dialect": s.dialect, "started_at": start, "completed_at": start + 1, "latency_ms": 1000.0, "status_code": status,
		"request": request, "response": response,
		"rolltap": map[string]any{"v": 1, "outcome": outcome, "stream": true, "client": s.client, "path": "/v1/" + s.dialect, "usage": map[string]any{"prompt_tokens": 10, "completion_tokens": 5}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.lines = append(s.lines, string(line))
	return id
}

func (s *session) read() *Rollout {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "r.capture.jsonl"), []byte(strings.Join(s.lines, "\n")+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	r, err := Read(s.dir, "r", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	var b strings.Builder
	if err := r.WriteJSON(&b, s.dir, true); err != nil {
		s.t.Fatal(err)
	}
	if !json.Valid([]byte(b.String())) {
		s.t.Errorf("the trajectory is no JSON: %s", b.String())
	}
	return r
}

// roles is one word a call.
func roles(r *Rollout) string {
	var words []string
	for i := range r.Calls {
		words = append(words, string(r.Calls[i].Role))
	}
	return strings.Join(words, " ")
}

func codes(r *Rollout) string {
	var words []string
	for _, g := range r.Gaps {
		words = append(words, g.Code)
	}
	return strings.Join(words, " ")
}

// recorded is a request of a real client.
type recorded struct {
	Client  string            `json:"client"`
	Note    string            `json:"note"`
	Dialect string            `json:"dialect"`
	Headers map[string]string `json:"headers"`
	Body    map[string]any    `json:"body"`
	name    string
}

func recordedRequests(t *testing.T) []recorded {
	t.Helper()
	paths, err := filepath.Glob("testdata/harness/*.json")
	if err != nil || len(paths) < 70 {
		t.Fatalf("%d recorded requests, %v", len(paths), err)
	}
	var all []recorded
	for _, p := range paths {
		raw, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		r := recorded{name: strings.TrimSuffix(filepath.Base(p), ".json")}
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// list is the name of the member that holds the conversation.
func (r *recorded) list() string {
	if r.Dialect == "responses" {
		return "input"
	}
	return "messages"
}

// step is what a recorded history says of an earlier call: the request that it must have been, and its answer.
type step struct {
	request map[string]any
	run     []any
}

// steps takes a history apart into the calls that made it.
func (r *recorded) steps() (steps []step, last map[string]any) {
	items, _ := r.Body[r.list()].([]any)
	var run []any
	start := 0
	for i := 0; i <= len(items); i++ {
		if i < len(items) && r.spoken(items[i].(map[string]any)) {
			if run == nil {
				start = i
			}
			run = append(run, items[i])
			continue
		}
		if run != nil {
			steps = append(steps, step{r.with(items[:start]), run})
			run = nil
		}
	}
	return steps, r.Body
}

func (r *recorded) spoken(item map[string]any) bool {
	kind, _ := item["type"].(string)
	return item["role"] == "assistant" || kind == "reasoning" || kind == "item_reference" || strings.HasSuffix(kind, "_call")
}

// with is the request with another conversation.
func (r *recorded) with(items []any) map[string]any {
	body := map[string]any{}
	for k, v := range r.Body {
		body[k] = v
	}
	body[r.list()] = append([]any(nil), items...)
	return body
}

// answer is a response that says what a run of a history says.
func (r *recorded) answer(run []any) map[string]any {
	switch r.Dialect {
	case "messages":
		var content []any
		for _, m := range run {
			switch c := m.(map[string]any)["content"].(type) {
			case string:
				content = append(content, map[string]any{"type": "text", "text": c})
			case []any:
				content = append(content, c...)
			}
		}
		return map[string]any{"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"}
	case "responses":
		var output []any // a reference stands for something that this client does not send
		for _, item := range run {
			if item.(map[string]any)["type"] != "item_reference" {
				output = append(output, item)
			}
		}
		return map[string]any{"object": "response", "status": "completed", "output": output}
	}
	return map[string]any{"object": "chat.completion", "choices": []any{map[string]any{"index": 0, "message": run[0], "finish_reason": "stop"}}}
}

// says is an answer that is a text.
func (r *recorded) says(text string) map[string]any {
	switch r.Dialect {
	case "responses":
		return r.answer([]any{map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": text}}}})
	}
	return r.answer([]any{map[string]any{"role": "assistant", "content": text}})
}

// asks is a message of the user.
func (r *recorded) asks(text string) any {
	if r.Dialect == "responses" {
		return map[string]any{"type": "message", "role": "user", "content": []any{map[string]any{"type": "input_text", "text": text}}}
	}
	return map[string]any{"role": "user", "content": text}
}

func (r *recorded) session(t *testing.T) *session {
	s := newSession(t, r.Dialect)
	for _, h := range []string{"x-session-id", "x-claude-code-session-id", "session-id", "session_id"} {
		if v := r.Headers[h]; v != "" {
			s.client["session"] = v
			break
		}
	}
	for name, hs := range map[string][]string{"agent": {"x-claude-code-agent-id", "thread-id"}, "parent_agent": {"x-claude-code-parent-agent-id", "x-codex-parent-thread-id"}} {
		for _, h := range hs {
			if v := r.Headers[h]; v != "" {
				s.client[name] = v
			}
		}
	}
	return s
}
