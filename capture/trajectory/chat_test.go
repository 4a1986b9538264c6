package trajectory

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
)

type chatLine struct {
	Messages []chatWords      `json:"messages"`
	Tools    []map[string]any `json:"tools"`
	Rolltap  struct {
		Calls []string       `json:"model_call_ids"`
		Left  map[string]int `json:"left_out"`
	} `json:"rolltap"`
}

type chatWords struct {
	Role    string           `json:"role"`
	Content any              `json:"content"`
	Calls   []map[string]any `json:"tool_calls"`
	ID      string           `json:"tool_call_id"`
	Thought string           `json:"reasoning_content"`
	Weight  *int             `json:"weight"`
}

func (s *session) chat(r *Rollout) (line chatLine, raw string) {
	s.t.Helper()
	var b strings.Builder
	if _, err := r.WriteChat(&b, s.dir, nil); err != nil {
		s.t.Fatal(err)
	}
	if raw = b.String(); raw == "" {
		return line, raw
	}
	if strings.Count(raw, "\n") != 1 || !jsonx.Valid([]byte(raw)) {
		s.t.Fatalf("no line: %s", raw)
	}
	if err := json.Unmarshal([]byte(raw), &line); err != nil {
		s.t.Fatal(err)
	}
	return line, raw
}

// learned is how many answers are to be learned, and checks that results stand behind their calls.
func (l chatLine) learned(t *testing.T) (n int) {
	t.Helper()
	called := map[string]bool{}
	for i, m := range l.Messages {
		switch m.Role {
		case "assistant":
			if m.Weight == nil {
				n++
			}
			for _, c := range m.Calls {
				called[fmt.Sprint(c["id"])] = true
			}
		case "tool":
			if !called[m.ID] {
				t.Errorf("message %d is a result of %q, which nobody called", i, m.ID)
			}
		case "system":
			if i > 0 && l.Messages[i-1].Role == "system" {
				t.Errorf("message %d is a second system message in a row", i)
			}
		case "user":
		default:
			t.Errorf("message %d has the role %q", i, m.Role)
		}
	}
	return n
}

// TestChatOfRecordedSessions: each turn is learned once, and what the client threw away is not.
func TestChatOfRecordedSessions(t *testing.T) {
	looked := 0
	for _, rec := range recordedRequests(t) {
		steps, last := rec.steps()
		if len(steps) == 0 || strings.Contains(rec.Note, "compaction") {
			continue
		}
		looked++
		t.Run(rec.name, func(t *testing.T) {
			s := rec.session(t)
			for _, st := range steps {
				s.call(st.request, rec.says("An answer that the client threw away."), "ok")
				s.call(st.request, rec.answer(st.run), "ok")
			}
			s.call(last, rec.says("The end."), "ok")
			line, raw := s.chat(s.read())
			if got := line.learned(t); got != len(steps)+1 {
				t.Errorf("%d answers are learned, want %d: %s", got, len(steps)+1, raw)
			}
			if strings.Contains(raw, "threw away") || strings.Contains(raw, "x-anthropic-billing-header") {
				t.Errorf("in the line: %s", raw)
			}
			if line.Rolltap.Left["retry"] != len(steps) || len(line.Rolltap.Calls) != len(steps)+1 {
				t.Errorf("left out %v, calls %v", line.Rolltap.Left, line.Rolltap.Calls)
			}
		})
	}
	if looked < 40 {
		t.Errorf("only %d histories", looked)
	}
}

// TestChat compares whole lines with testdata/chat.
func TestChat(t *testing.T) {
	for name, do := range map[string]func(t *testing.T) *session{
		"chat": func(t *testing.T) *session {
			s := newSession(t, "chat")
			ls := calls("call_1", "sh", `{"cmd": "ls"}`)
			ls.(map[string]any)["reasoning_content"] = "I should look."
			example := []any{system("Be brief."), system("Be kind."), user("1+1"), says("2"), user("What is here?")}
			s.call(talk(example...), reply(ls), "ok")
			s.call(talk(append(example, calls("call_1", "sh", `{"cmd":"ls"}`), brings("call_1", "a\nb é\u2028"))...), reply(says("Two files.")), "ok")
			s.call(map[string]any{"messages": []any{map[string]any{"role": "user", "content": []any{
				map[string]any{"type": "text", "text": "see"}, map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,AAAA"}}}}}}, reply(says("An image.")), "ok")
			return s
		},
		"messages": func(t *testing.T) *session {
			s := newSession(t, "messages")
			tools := []any{map[string]any{"name": "Read", "description": "reads", "input_schema": map[string]any{"type": "object"}}, map[string]any{"type": "web_search_20250305", "name": "web_search"}}
			ask := map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": "look"}, map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/png", "data": "AAAA"}}}}
			sys := []any{map[string]any{"type": "text", "text": "x-anthropic-billing-header: cc_version=1"}, map[string]any{"type": "text", "text": "You are an agent."}}
			thought := map[string]any{"type": "thinking", "thinking": "hm", "signature": "s"}
			use := map[string]any{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": map[string]any{"path": "a<b>"}}
			s.call(map[string]any{"system": sys, "tools": tools, "messages": []any{ask}}, map[string]any{"content": []any{thought, map[string]any{"type": "text", "text": "Reading."}, use}}, "ok")
			back := map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": "toolu_1", "content": []any{
				map[string]any{"type": "text", "text": "text"}, map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/png", "data": "AAAA"}}}}, map[string]any{"type": "text", "text": "and then?"}}}
			s.call(map[string]any{"system": sys, "tools": tools, "messages": []any{ask, map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": "Reading."}, use}}, back}},
				map[string]any{"content": []any{map[string]any{"type": "text", "text": "Done."}}}, "ok")
			return s
		},
		"responses": func(t *testing.T) *session {
			s := newSession(t, "responses")
			tools := []any{map[string]any{"type": "function", "name": "exec", "parameters": map[string]any{"type": "object"}, "strict": false},
				map[string]any{"type": "namespace", "name": "ns", "tools": []any{map[string]any{"type": "function", "name": "spawn"}}}, map[string]any{"type": "web_search"}}
			call := map[string]any{"type": "function_call", "call_id": "c1", "name": "exec", "arguments": `{"cmd":"ls"}`}
			reasoning := map[string]any{"type": "reasoning", "summary": []any{map[string]any{"type": "summary_text", "text": "hm"}}}
			in := []any{map[string]any{"type": "message", "role": "developer", "content": "rules"}, map[string]any{"role": "user", "content": "go"}}
			s.call(map[string]any{"instructions": "Be brief.", "tools": tools, "input": in}, map[string]any{"status": "completed", "output": []any{reasoning, call}}, "ok")
			next := append(append([]any(nil), in...), reasoning, call, map[string]any{"type": "function_call_output", "call_id": "c1", "output": "a"})
			s.call(map[string]any{"instructions": "Be brief.", "tools": tools, "input": next}, map[string]any{"status": "completed", "output": []any{
				map[string]any{"type": "web_search_call", "id": "w1", "action": map[string]any{}}, map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": "One file."}}}}}, "ok")
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := do(t)
			r := s.read()
			var b, told strings.Builder
			if _, err := r.WriteChat(&b, s.dir, func(l Left) { fmt.Fprintln(&told, l.Call, l.Reason, l.Detail) }); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata/chat", name+".jsonl"), b.String())
			golden(t, filepath.Join("testdata/chat", name+".left.txt"), told.String())
		})
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%v: %s is\n%s\ngot\n%s", err, path, want, got)
	}
}

// TestChatOfNothing: a rollout without a turn has no line, and that is told.
func TestChatOfNothing(t *testing.T) {
	s := newSession(t, "chat")
	s.call(talk(user("hi")), nil, "upstream_error")
	s.lines = append(s.lines, `{"torn":`)
	var told []string
	wrote, err := s.read().WriteChat(&strings.Builder{}, s.dir, func(l Left) { told = append(told, l.Reason) })
	if wrote || err != nil || strings.Join(told, " ") != "failed damaged_line no_turn" {
		t.Errorf("%v, %v, %q", wrote, err, told)
	}
}
