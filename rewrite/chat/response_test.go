package chat

import (
	"testing"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

func TestReadResponse(t *testing.T) {
	unknown := canon.NoUsage()
	for _, c := range []struct {
		name, body string
		want       dialect.Summary
	}{
		{"an answer", `{"model":"m","choices":[{"finish_reason":"tool_calls"},{"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,` +
			`"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":1}}}`,
			dialect.Summary{Model: "m", Finish: "tool_calls", Usage: canon.Usage{Prompt: 5, Completion: 2, Cached: 3, CacheWrite: -1, Reasoning: 1}}},
		{"choices in another order", `{"choices":[{"index":1,"finish_reason":"length"},{"index":0,"finish_reason":"stop"}]}`, dialect.Summary{Finish: "stop", Usage: unknown}},
		{"a choice without an index is the first", `{"choices":[{"index":2,"finish_reason":"length"},{"finish_reason":"stop"}]}`, dialect.Summary{Finish: "stop", Usage: unknown}},
		{"no first choice", `{"choices":[{"index":2,"finish_reason":"length"},{"index":1,"finish_reason":"stop"}]}`, dialect.Summary{Finish: "stop", Usage: unknown}},
		{"counts that are none", `{"usage":{"prompt_tokens":true,"completion_tokens":2.0,"prompt_tokens_details":null}}`, dialect.Summary{Usage: unknown}},
		{"cache counts of Anthropic are not added", `{"usage":{"prompt_tokens":5,"cache_read_input_tokens":3,"cache_creation_input_tokens":1}}`,
			dialect.Summary{Usage: canon.Usage{Prompt: 5, Completion: -1, Cached: 3, CacheWrite: -1, Reasoning: -1}}},
		{"reasoning as SGLang counts it", `{"usage":{"prompt_tokens":5,"completion_tokens":4,"reasoning_tokens":3}}`,
			dialect.Summary{Usage: canon.Usage{Prompt: 5, Completion: 4, Cached: -1, CacheWrite: -1, Reasoning: 3}}},
		{"an error", `{"error":{"message":"m","type":"NotFoundError","param":"model","code":404}}`, dialect.Summary{Usage: unknown, HasError: true, ErrorStatus: 404}},
		{"the flat error of older vLLM", `{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}`,
			dialect.Summary{Usage: unknown, HasError: true, ErrorStatus: 400}},
		{"an error that is a string", `{"error":"Unauthorized"}`, dialect.Summary{Usage: unknown, HasError: true}},
		{"an error of null is none", `{"error":null}`, dialect.Summary{Usage: unknown}},
		{"an empty object", `{}`, dialect.Summary{Usage: unknown}},
		{"members of the wrong type", `{"model":1,"choices":{},"usage":[]}`, dialect.Summary{Usage: unknown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := New().ReadResponse([]byte(c.body)); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestReadRequest(t *testing.T) {
	for _, c := range []struct {
		body, model string
		stream      bool
	}{
		{`{"model":"m\u0061","stream":true}`, "ma", true},
		{`{"stream":1}`, "", false},
		{`{"stream":"true","model":null}`, "", false},
		{`{}`, "", false},
	} {
		if model, stream := New().ReadRequest([]byte(c.body)); model != c.model || stream != c.stream {
			t.Errorf("%s: got %q %v", c.body, model, stream)
		}
	}
}

func TestAppendError(t *testing.T) {
	for _, c := range []struct {
		p    canon.Problem
		want string
	}{
		{canon.Problem{Status: 400, Code: "invalid_rollout_id", Message: `no "<b>" &` + "\u2028\xff\x1b"},
			`{"error":{"message":"no \"<b>\" &` + "\u2028\ufffd" + `\u001b","type":"invalid_request_error","param":null,"code":"invalid_rollout_id"}}`},
		{canon.Problem{Status: 400, Code: "unsupported_parameter", Message: "m", Param: "n"}, `{"error":{"message":"m","type":"invalid_request_error","param":"n","code":"unsupported_parameter"}}`},
		{canon.Problem{Status: 401}, `{"error":{"message":"","type":"authentication_error","param":null,"code":null}}`},
		{canon.Problem{Status: 403}, `{"error":{"message":"","type":"permission_error","param":null,"code":null}}`},
		{canon.Problem{Status: 404}, `{"error":{"message":"","type":"not_found_error","param":null,"code":null}}`},
		{canon.Problem{Status: 413}, `{"error":{"message":"","type":"invalid_request_error","param":null,"code":null}}`},
		{canon.Problem{Status: 429}, `{"error":{"message":"","type":"rate_limit_error","param":null,"code":null}}`},
		{canon.Problem{Status: 502}, `{"error":{"message":"","type":"server_error","param":null,"code":null}}`},
	} {
		if got := string(New().AppendError([]byte("kept"), c.p)); got != "kept"+c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
