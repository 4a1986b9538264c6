package messages

import (
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

func TestReadResponse(t *testing.T) {
	unknown := canon.NoUsage()
	for _, c := range []struct {
		name, body string
		want       dialect.Summary
	}{
		{"an answer, its prompt with what the cache took and gave", `{"model":"m","stop_reason":"end_turn","usage":{"input_tokens":10,"cache_read_input_tokens":5,` +
			`"cache_creation_input_tokens":2,"output_tokens":7,"output_tokens_details":{"thinking_tokens":3}}}`,
			dialect.Summary{Model: "m", Finish: "stop", Usage: canon.Usage{Prompt: 17, Completion: 7, Cached: 5, CacheWrite: 2, Reasoning: 3}}},
		{"a prompt that is not known is not made of its cache", `{"usage":{"input_tokens":null,"cache_read_input_tokens":5}}`,
			dialect.Summary{Usage: canon.Usage{Prompt: -1, Completion: -1, Cached: 5, CacheWrite: -1, Reasoning: -1}}},
		{"a sum beyond all counts", `{"usage":{"input_tokens":9223372036854775807,"cache_read_input_tokens":1}}`,
			dialect.Summary{Usage: canon.Usage{Prompt: -1, Completion: -1, Cached: 1, CacheWrite: -1, Reasoning: -1}}},
		{"a sum that comes back into the range", `{"usage":{"input_tokens":3,"cache_read_input_tokens":9223372036854775807,"cache_creation_input_tokens":9223372036854775807}}`,
			dialect.Summary{Usage: canon.Usage{Prompt: -1, Completion: -1, Cached: 9223372036854775807, CacheWrite: 9223372036854775807, Reasoning: -1}}},
		{"an error", `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`, dialect.Summary{Usage: unknown, HasError: true, ErrorStatus: 529}},
		{"an error in OpenAI's shape, as vLLM sends", `{"error":{"message":"m","type":"Bad Request","param":null,"code":400}}`, dialect.Summary{Usage: unknown, HasError: true, ErrorStatus: 400}},
		{"an empty object", `{}`, dialect.Summary{Usage: unknown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := New().ReadResponse([]byte(c.body)); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestStopReasonsInChatsWords(t *testing.T) {
	for stop, want := range map[string]string{"end_turn": "stop", "stop_sequence": "stop", "pause_turn": "stop", "max_tokens": "length", "model_context_window_exceeded": "length",
		"tool_use": "tool_calls", "refusal": "content_filter", "compaction": "compaction"} {
		if got := New().ReadResponse([]byte(`{"stop_reason":"` + stop + `"}`)).Finish; got != want {
			t.Errorf("%s: got %q, want %q", stop, got, want)
		}
	}
	if got := New().ReadResponse([]byte(`{"stop_reason":null}`)).Finish; got != "" {
		t.Errorf("null: got %q", got)
	}
}

func TestUsageIsSplitOverTwoEventsAndItsPromptShrinks(t *testing.T) {
	// vLLM with cache details: the start counts the whole prompt, the end only what the cache did not give (vllm.md 4).
	f := New().NewFolder()
	f.Event(nil, []byte(`{"type":"message_start","message":{"usage":{"input_tokens":320,"output_tokens":0}}}`))
	if got := f.Summary().Usage; got != (canon.Usage{Prompt: 320, Completion: 0, Cached: -1, CacheWrite: -1, Reasoning: -1}) {
		t.Errorf("after the start: %+v", got)
	}
	f.Event(nil, []byte(`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"input_tokens":64,"cache_read_input_tokens":256,"output_tokens":4}}`))
	if got := f.Summary(); got.Usage != (canon.Usage{Prompt: 320, Completion: 4, Cached: 256, CacheWrite: -1, Reasoning: -1}) || got.Finish != "tool_calls" {
		t.Errorf("at the end: %+v", got)
	}
}

func TestReadRequest(t *testing.T) {
	if model, stream := New().ReadRequest([]byte(`{"model":"m","stream":true}`)); model != "m" || !stream {
		t.Errorf("got %q %v", model, stream)
	}
	if model, stream := New().ReadRequest([]byte(`{"stream":"yes"}`)); model != "" || stream {
		t.Errorf("got %q %v", model, stream)
	}
}

func TestAppendError(t *testing.T) {
	for status, want := range map[int]string{400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
		409: "conflict_error", 413: "request_too_large", 415: "invalid_request_error", 426: "invalid_request_error", 429: "rate_limit_error", 500: "api_error", 501: "api_error",
		502: "api_error", 503: "overloaded_error", 504: "timeout_error", 507: "api_error", 529: "overloaded_error"} {
		got := New().AppendError(nil, canon.Problem{Status: status, Code: "c", Message: "m\n<b>"})
		if string(got) != `{"type":"error","error":{"type":"`+want+`","message":"m\n<b>"}}` || !jsonx.Valid(got) {
			t.Errorf("%d: got %s", status, got)
		}
	}
}
