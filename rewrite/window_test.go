package rewrite_test

import (
	"fmt"
	"strings"
	"testing"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

// An answer that was cut because the model holds no more is told apart from one that had its tokens, where the window is known.
func TestAFullWindowIsToldApart(t *testing.T) {
	for _, c := range []struct {
		name, finish, usage, want string
		window                    int64
	}{
		{"full", "length", `{"prompt_tokens":90,"completion_tokens":10}`, "model_context_window_exceeded", 100},
		{"full by the total", "length", `{"prompt_tokens":90,"completion_tokens":9,"total_tokens":100}`, "model_context_window_exceeded", 100},
		{"not full", "length", `{"prompt_tokens":90,"completion_tokens":9}`, "max_tokens", 100},
		{"full, and ended by itself", "stop", `{"prompt_tokens":90,"completion_tokens":10}`, "end_turn", 100},
		{"an unknown window", "length", `{"prompt_tokens":90,"completion_tokens":10}`, "max_tokens", 0},
		{"no usage", "length", `null`, "max_tokens", 100},
	} {
		whole := fmt.Sprintf(`{"id":"i","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"%s"}],"usage":%s}`, c.finish, c.usage)
		stream := frames(`{"id":"i","choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"id":"i","choices":[{"index":0,"delta":{},"finish_reason":"`+c.finish+`"}]}`,
			`{"id":"i","choices":[],"usage":`+c.usage+`}`, "[DONE]")
		for _, streamed := range []bool{false, true} {
			policy := rewrite.DefaultPolicy()
			tr := rewrite.NewTranslation(translator(t, canon.Messages), translator(t, canon.Chat), &policy, rewrite.Call{ID: "1", Window: func(string) int64 { return c.window }})
			if _, err := tr.Request(fmt.Appendf(nil, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"stream":%v}`, streamed)); err != nil {
				t.Fatal(err)
			}
			var got []byte
			var err error
			if streamed {
				got = tr.NewStream(0).Push(stream)
			} else {
				got, err = tr.Answer([]byte(whole))
			}
			if err != nil || !strings.Contains(string(got), `"stop_reason":"`+c.want+`"`) {
				t.Errorf("%s, stream %v: %v, no %s in %s", c.name, streamed, err, c.want, got)
			}
		}
	}
}
