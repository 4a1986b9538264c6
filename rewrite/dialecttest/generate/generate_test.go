package generate

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rolltap/rewrite/canon"
)

// What the package comment promises is drawn in fact, and all of it is JSON.
func TestDrawsHaveVariety(t *testing.T) {
	odd := []string{`\ud800`, "\u2028", `\u2028`, `\u0000`, "1e-1", "x_newer", "12345678901234567890123"}
	for d, words := range map[canon.Dialect][]string{
		canon.Messages: {"redacted_thinking", `"signature":"Eq`, `"is_error":true`, "cache_control", `"search_result"`, `"document"`, `"image"`, `"disable_parallel_tool_use"`, "budget_tokens",
			"user_id", "top_k", `"system":[`, `"role":"system"`, "web_search_20250305", "tool_result", "json_schema"},
		canon.Responses: {"encrypted_content", "reasoning_text", "custom_tool_call_output", `"namespace"`, "input_image", "input_file", "allowed_tools", "web_search_call", `"refusal"`,
			"json_object", "developer", `"top_logprobs"`, `"role":"assistant","content":"`},
		canon.Chat: {`"custom"`, "image_url", `"file_data"`, "allowed_tools", `"reasoning"`, `"reasoning_content"`, "refusal", `"content":null`, "logit_bias", "json_schema", "include_usage"},
		canon.Gemini: {"functionResponse", `"error"`, "thoughtSignature", "inlineData", "allowedFunctionNames", "thinkingBudget", "responseJsonSchema", "googleSearch",
			"systemInstruction"},
	} {
		draw := rapid.Custom(func(rt *rapid.T) string { return string(Call(rt, d)) })
		all := gathered(t, draw, 300)
		for _, word := range append(words, odd...) {
			if !strings.Contains(all, word) {
				t.Errorf("%s: no request has %s", d, word)
			}
		}
	}
}

func TestAnswersAreJSONAndSoAreTheirEvents(t *testing.T) {
	for d, words := range map[canon.Dialect][]string{
		canon.Messages:  {"redacted_thinking", `"stop_sequence":"END"`, "max_tokens", "refusal", "tool_use"},
		canon.Responses: {"encrypted_content", "max_output_tokens", "content_filter", "function_call"},
		canon.Chat:      {`"reasoning"`, `"tool_calls"`, `"length"`, "content_filter"},
	} {
		unary := gathered(t, rapid.Custom(func(rt *rapid.T) string { return string(Said(rt, d).Unary) }), 200)
		for _, word := range words {
			if !strings.Contains(unary, word) {
				t.Errorf("%s: no answer has %s", d, word)
			}
		}
		for i := range 200 {
			stream := rapid.Custom(func(rt *rapid.T) string { return string(Said(rt, d).Stream) }).Example(i)
			for line := range strings.Lines(stream) {
				if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok && data != "[DONE]" && !json.Valid([]byte(data)) {
					t.Fatalf("%s: %q", d, data)
				}
			}
		}
	}
}

// gathered are n draws, without white space between the tokens.
func gathered(t *testing.T, draw *rapid.Generator[string], n int) string {
	t.Helper()
	var all strings.Builder
	for i := range n {
		body := draw.Example(i)
		if !json.Valid([]byte(body)) {
			t.Fatalf("no JSON: %s", body)
		}
		all.WriteString(strings.NewReplacer(": ", ":", ":\n\t", ":", ", ", ",", ",\n\t", ",").Replace(body))
	}
	return all.String()
}
