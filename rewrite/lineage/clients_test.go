package lineage

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// clients are requests of real clients.
func clients(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/clients/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no requests of clients: %v", err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".json")] = b
	}
	return all
}

// TestClients takes first and second calls of real clients. The answer to the first is what the second has of it.
func TestClients(t *testing.T) {
	all := clients(t)
	for _, tt := range []struct {
		first, second string
		resolution    string
		why           string
	}{
		{"claude-code-1", "claude-code-2", Resolved, "the same system message is a list first and a text then; cache_control moves on"},
		{"codex-1", "codex-2", Resolved, "instructions and tools stay"},
		{"openclaw-1", "openclaw-2", Unresolved, "its last message is not where it was: the context is another one"},
	} {
		first, second := read(t, string(all[tt.first])), read(t, string(all[tt.second]))
		if got := Resolve(first, nil); got.Resolution != Root {
			t.Errorf("%s: %+v", tt.first, got)
		}
		stamp, err := first.Stamp(answerIn(t, all[tt.second]))
		if err != nil {
			t.Errorf("%s: %v", tt.first, err)
		}
		asked := false
		got := Resolve(second, func(f string) ([]Candidate, error) {
			if asked = true; f != stamp.Fingerprint {
				t.Errorf("%s: the fingerprint is not that of the answer", tt.second)
			}
			return []Candidate{{"a", stamp, 3, "d"}}, nil
		})
		if !asked || got.Resolution != tt.resolution {
			t.Errorf("%s: %+v, want %s: %s", tt.second, got, tt.resolution, tt.why)
		}
	}
}

// answerIn makes an answer of the model's turns in body, with reasoning where the dialect has any.
func answerIn(t *testing.T, body []byte) []byte {
	t.Helper()
	var request struct{ Messages, Input []map[string]any }
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	var answer any
	for _, m := range request.Messages {
		if m["role"] != "assistant" {
			continue
		}
		if content, ok := m["content"].([]any); ok {
			thinking := map[string]any{"type": "thinking", "thinking": "hm", "signature": "s"}
			answer = map[string]any{"type": "message", "role": "assistant", "content": append([]any{thinking}, content...)}
		} else {
			m["reasoning"] = "hm"
			answer = map[string]any{"choices": []any{map[string]any{"message": m}}}
		}
	}
	if len(request.Input) > 0 {
		output := []any{map[string]any{"type": "reasoning", "summary": []any{}}}
		for _, m := range request.Input {
			if m["role"] == "assistant" || m["type"] == "function_call" {
				output = append(output, m)
			}
		}
		answer = map[string]any{"output": output}
	}
	b, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
