package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
)

// Every SDK in front of every upstream, whose servers answer while they are asked: text, thoughts, calls, a limit and failures, streamed and whole,
// which say the same.
func TestLive(t *testing.T) {
	weather := tool{"get_weather", "the weather", map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []any{"city"}}}
	for _, upstream := range []canon.Dialect{canon.Chat, canon.Messages, canon.Responses} {
		root := demo(t, upstream)
		for _, c := range sdks() {
			t.Run(fmt.Sprintf("%s to %s", c.dialect(), upstream), func(t *testing.T) {
				asks := func(text string, limit int64, tools ...tool) (whole said) {
					a := ask{model: "rolltap-demo", maxTokens: limit, tools: tools, turns: []turn{{role: "user", text: text}}}
					whole, failed := c.unary(patient(t), t, server{root: root}, a)
					if failed != nil {
						t.Fatalf("%s: %+v", text, *failed)
					}
					streamed, failed := c.stream(patient(t), t, server{root: root}, a)
					if failed != nil {
						t.Fatalf("%s, streamed: %+v", text, *failed)
					}
					whole.Logprobs, streamed.Logprobs = nil, nil
					equal(t, text, alike(whole), alike(streamed))
					if whole.Usage.Prompt == 0 || whole.Usage.Completion == 0 {
						t.Errorf("%s: usage %+v", text, whole.Usage)
					}
					return alike(whole)
				}
				if got := asks("echo: one two three", 64); len(got.Parts) != 1 || got.Parts[0].Text != "one two three" || got.Stop != c.stopWord(canon.StopEnd, false) {
					t.Errorf("a text: %+v", got)
				}
				if got := asks("20 words", 3); got.Stop != c.stopWord(canon.StopLength, false) {
					t.Errorf("a limit: %+v", got)
				}
				got := asks("Think: why is the sky blue?", 512)
				if len(got.Parts) != 2 || got.Parts[0].Kind != "reasoning" || got.Parts[0].Text+got.Parts[0].Summary == "" || !strings.Contains(got.Parts[1].Text, "blue") {
					t.Errorf("thoughts: %+v", got)
				}
				got = asks("Think: use the weather tool twice in Paris", 512, weather)
				calls := 0
				for _, p := range got.Parts {
					if p.Kind == "call" && p.Name == "get_weather" && strings.HasPrefix(p.Arguments, `{"city":"`) {
						calls++
					}
				}
				if calls != 2 || got.Stop != c.stopWord(canon.StopEnd, true) {
					t.Errorf("calls: %+v", got)
				}
				for _, status := range []int{400, 401, 404, 429, 500, 503} {
					for _, stream := range []bool{true, false} {
						a := ask{model: "rolltap-demo", maxTokens: 64, turns: []turn{{role: "user", text: fmt.Sprintf("[demo-fault: status=%d]", status)}}}
						failed := asked(t, c, server{root: root}, a, stream)
						if failed.Status != status || !strings.Contains(failed.Message, fmt.Sprint(status)) || c.dialect() != upstream && failed.Type != errorType(c.dialect(), status) {
							t.Errorf("status %d: %+v", status, *failed)
						}
					}
				}
			})
		}
	}
}

// alike leaves out what differs from one answer to the next: ids, and blank text beside a call, which servers like vLLM send in streams only.
func alike(s said) said {
	s = s.tidy().valued()
	s.Parts = slices.DeleteFunc(s.Parts, func(p part) bool { return p.Kind == "text" && strings.TrimSpace(p.Text) == "" })
	for i := range s.Parts {
		s.Parts[i].ID = ""
	}
	return s
}
