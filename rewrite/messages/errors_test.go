package messages

import (
	"os"
	"path/filepath"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

const tooLong = "This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025 input tokens, which exceeds this limit even without any output tokens. " +
	"Please reduce the length of the input prompt. (parameter=input_tokens, value=1025)"

func TestReadErrorOfRecordedBodies(t *testing.T) {
	for name, want := range map[string]canon.Problem{
		"error-json-messages":               {Status: 400, Type: "Bad Request", Param: "body.39", Message: "1 validation error:\n  {'type': 'json_invalid', 'loc': 'body.39', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': 'Expecting value'}}"},
		"error-missing-messages":            {Status: 400, Type: "Bad Request", Param: "body.max_tokens", Message: "1 validation error:\n  {'type': 'missing', 'loc': 'body.max_tokens', 'msg': 'Field required', 'input': '<dict of 2 items>'}"},
		"error-model-messages":              {Status: 404, Code: "model_not_found", Type: "NotFoundError", Message: "The model `nope` does not exist. Valid aliases: rolltap-test."},
		"extra-error-unauthorized-messages": {Status: 401, Message: "Unauthorized"},
		"messages-error-context":            {Status: 400, Code: canon.CodeOverflow, Type: "BadRequestError", Message: tooLong},
		"messages-error-max-tokens": {Status: 400, Code: canon.CodeOverflow, Type: "BadRequestError",
			Message: "max_completion_tokens=100000 cannot be greater than max_model_len=1024. Please request fewer output tokens. (parameter=max_completion_tokens, value=100000)"},
	} {
		body, err := os.ReadFile(filepath.Join("testdata", "errors", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		tr := New().(dialect.Translator)
		for _, status := range []int{want.Status, 200} { // in disguise too: the body tells the status
			if got := tr.ReadError(status, body); *got != want {
				t.Errorf("%s: got %+v\nwant %+v", name, *got, want)
			}
		}
		if !tr.IsError(body) {
			t.Errorf("%s is an error", name)
		}
	}
}

func TestIsError(t *testing.T) {
	for body, want := range map[string]bool{`{"type":"error","error":{}}`: true, `{"error":"x"}`: true, `{"object":"error","message":"m"}`: true, `{"type":"message","content":[],"error":null}`: false, `{}`: false} {
		if got := New().(dialect.Translator).IsError([]byte(body)); got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}

func TestAppendErrorOfAnUpstreamsError(t *testing.T) {
	overflow := func(message string) canon.Problem {
		return canon.Problem{Status: 400, Code: canon.CodeOverflow, Message: message}
	}
	for _, c := range []struct {
		name          string
		p             canon.Problem
		kind, message string
	}{
		{"a type of this dialect", canon.Problem{Status: 500, Type: "rate_limit_error", Message: "m"}, "rate_limit_error", "m"},
		{"a type of vLLM's goes by status", canon.Problem{Status: 404, Type: "NotFoundError", Message: "m"}, "not_found_error", "m"},
		{"OpenAI's word for many things goes by status", canon.Problem{Status: 404, Type: "invalid_request_error", Message: "m"}, "not_found_error", "m"},
		{"the same without a status", canon.Problem{Type: "invalid_request_error", Message: "m"}, "invalid_request_error", "m"},
		{"nothing known", canon.Problem{Message: "m"}, "api_error", "m"},
		{"too large", canon.Problem{Status: 413, Message: "m"}, "request_too_large", "m"},
		{"vLLM 0.32", overflow(tooLong), "invalid_request_error", "prompt is too long: 1025 tokens > 1024 maximum"},
		{"another version's renderer", overflow("You passed 5000 input tokens and requested 10 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 4086 tokens."),
			"invalid_request_error", "prompt is too long: 5000 tokens > 4096 maximum"},
		{"the sampling helper", overflow("Input length (5000) exceeds model's maximum context length (4096)."), "invalid_request_error", "prompt is too long: 5000 tokens > 4096 maximum"},
		{"the engine", overflow("The engine prompt length 5000 exceeds the max_model_len 4096. Please reduce prompt."), "invalid_request_error", "prompt is too long: 5000 tokens > 4096 maximum"},
		{"older chat", overflow("This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens."), "invalid_request_error", "prompt is too long: 5000 tokens > 4096 maximum"},
		{"characters are no tokens", overflow("This model's maximum context length is 4096 tokens. However, your prompt contains 50000 characters (more than 40960 characters, which is the upper bound for 4096 input tokens)."),
			"invalid_request_error", "prompt is too long: This model's maximum context length is 4096 tokens. However, your prompt contains 50000 characters (more than 40960 characters, which is the upper bound for 4096 input tokens)."},
		{"Anthropic's own words stay", overflow("prompt is too long: 5 tokens > 4 maximum, and more"), "invalid_request_error", "prompt is too long: 5 tokens > 4 maximum, and more"},
		{"a 413 that is an overflow", canon.Problem{Status: 413, Code: canon.CodeOverflow, Message: "context window"}, "invalid_request_error", "prompt is too long: context window"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := New().AppendError(nil, c.p)
			e := jsonx.Get(got, "error")
			kind, _ := jsonx.Text(jsonx.Get(e, "type"))
			message, _ := jsonx.Text(jsonx.Get(e, "message"))
			if kind != c.kind || message != c.message || !jsonx.Valid(got) {
				t.Errorf("got %s", got)
			}
		})
	}
}
