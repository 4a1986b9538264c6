package responses

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
		{"an answer", `{"model":"m","status":"completed","error":null,"output":[{"type":"message"}],"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":3},` +
			`"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1}}}`,
			dialect.Summary{Model: "m", Finish: "stop", Usage: canon.Usage{Prompt: 5, Completion: 2, Cached: 3, CacheWrite: -1, Reasoning: 1}}},
		{"a call", `{"status":"completed","output":[{"type":"reasoning"},{"type":"function_call"}]}`, dialect.Summary{Finish: "tool_calls", Usage: unknown}},
		{"a custom call", `{"status":"completed","output":[{"type":"custom_tool_call"}]}`, dialect.Summary{Finish: "tool_calls", Usage: unknown}},
		{"a hosted call waits for nobody", `{"status":"completed","output":[{"type":"web_search_call"}]}`, dialect.Summary{Finish: "stop", Usage: unknown}},
		{"cut by length, a call in it", `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"function_call"}]}`,
			dialect.Summary{Finish: "length", Usage: unknown}},
		{"cut by a filter", `{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}`, dialect.Summary{Finish: "content_filter", Usage: unknown}},
		{"in progress it has no finish", `{"status":"in_progress"}`, dialect.Summary{Usage: unknown}},
		{"failed", `{"status":"failed","error":{"code":"server_error","message":"m"}}`, dialect.Summary{Usage: unknown, HasError: true, ErrorStatus: 500}},
		{"an error body", `{"error":{"message":"m","type":"invalid_request_error","param":null,"code":null}}`, dialect.Summary{Usage: unknown, HasError: true, ErrorStatus: 400}},
		{"an empty object", `{}`, dialect.Summary{Usage: unknown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := New().ReadResponse([]byte(c.body)); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestStatusOfAFailureInsideTheStream(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       int
	}{
		{"the members at the top", `{"type":"error","code":"rate_limit_exceeded","message":"m","param":null}`, 429},
		{"the members nested", `{"type":"error","error":{"type":"invalid_request_error","code":null}}`, 400},
		{"a failed response", `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error"}}}`, 500},
		{"nothing known", `{"type":"error"}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := New().NewFolder()
			f.Event(nil, []byte(c.data))
			if s := f.Summary(); !s.HasError || s.ErrorStatus != c.want {
				t.Errorf("got %+v, want %d", s, c.want)
			}
		})
	}
}

func TestReadRequest(t *testing.T) {
	if model, stream := New().ReadRequest([]byte(`{"model":"m","stream":true}`)); model != "m" || !stream {
		t.Errorf("got %q %v", model, stream)
	}
	if model, stream := New().ReadRequest([]byte(`{"stream":null}`)); model != "" || stream {
		t.Errorf("got %q %v", model, stream)
	}
}

func TestAppendError(t *testing.T) {
	got := string(New().AppendError(nil, canon.Problem{Status: 501, Code: "not_supported", Message: "m"}))
	if want := `{"error":{"message":"m","type":"server_error","param":null,"code":"not_supported"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
