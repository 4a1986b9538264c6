package messages

import (
	"os"
	"path/filepath"
	"strings"
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

func TestReadError(t *testing.T) {
	long := strings.Repeat("é", 4096)
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   canon.Problem
	}{
		{"Anthropic's envelope", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}`, canon.Problem{Status: 529, Code: "overloaded", Type: "overloaded_error", Message: "Overloaded"}},
		{"the given status wins", 500, `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`, canon.Problem{Status: 500, Type: "overloaded_error", Message: "m"}},
		{"OpenAI's, with a code", 401, `{"error":{"message":"m","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, canon.Problem{Status: 401, Code: "invalid_api_key", Type: "invalid_request_error", Message: "m"}},
		{"an older engine's flat one", 404, `{"object":"error","message":"m","type":"NotFoundError","param":"model","code":404}`, canon.Problem{Status: 404, Code: "model_not_found", Type: "NotFoundError", Param: "model", Message: "m"}},
		{"a status in a string is no code", 400, `{"error":{"message":"m","code":"400"}}`, canon.Problem{Status: 400, Message: "m"}},
		{"FastAPI's text", 404, `{"detail":"Not Found"}`, canon.Problem{Status: 404, Code: "model_not_found", Message: "Not Found"}},
		{"FastAPI's list", 422, `{"detail":[{"loc":["body"],"msg":"a"},{"msg":"b"},{}]}`, canon.Problem{Status: 422, Message: "a; b"}},
		{"other JSON", 400, `{"status":"bad"}`, canon.Problem{Status: 400, Message: `{"status":"bad"}`}},
		{"an error without words", 400, `{"error":{"type":"x"}}`, canon.Problem{Status: 400, Type: "x", Message: `{"type":"x"}`}},
		{"text", 502, " upstream connect error \n", canon.Problem{Status: 502, Message: "upstream connect error"}},
		{"text that is no UTF-8", 500, "a\xffb", canon.Problem{Status: 500, Message: "a\uFFFDb"}},
		{"a page", 503, "<html><head><TITLE> 503 Service Unavailable </TITLE></head><body>…</body></html>", canon.Problem{Status: 503, Code: "overloaded", Message: "503 Service Unavailable"}},
		{"a page without a title", 500, "<p>x</p>", canon.Problem{Status: 500, Message: "the upstream answered with a page of HTML"}},
		{"nothing", 429, "", canon.Problem{Status: 429, Code: "rate_limit_exceeded", Message: "the upstream answered with status 429 and said nothing more"}},
		{"nothing with a good status", 200, "", canon.Problem{Status: 502, Message: "the upstream answered with status 502 and said nothing more"}},
		{"addresses are taken out", 500, `{"error":{"message":"failed: http://10.0.0.1:8000/v1/messages, see (https://e.dev/x)."}}`, canon.Problem{Status: 500, Message: "failed: [url], see ([url])."}},
		{"a long text is cut", 500, long, canon.Problem{Status: 500, Message: long[:4096] + "…"}},
		{"a bad character at the cut", 500, "a" + long, canon.Problem{Status: 500, Message: "a" + long[:4094] + "…"}},
		{"overflow by its code", 400, `{"error":{"message":"m","code":"context_length_exceeded"}}`, canon.Problem{Status: 400, Code: canon.CodeOverflow, Message: "m"}},
		{"overflow in Anthropic's words", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 5 tokens > 4 maximum"}}`,
			canon.Problem{Status: 400, Code: canon.CodeOverflow, Type: "invalid_request_error", Message: "prompt is too long: 5 tokens > 4 maximum"}},
		{"overflow with both lengths", 400, "input length and `max_tokens` exceed context limit: 5 + 6 > 10", canon.Problem{Status: 400, Code: canon.CodeOverflow, Message: "input length and `max_tokens` exceed context limit: 5 + 6 > 10"}},
		{"overflow by its parameter and a count", 400, `{"error":{"message":"You passed 9 input tokens.","param":"input_tokens"}}`, canon.Problem{Status: 400, Code: canon.CodeOverflow, Param: "input_tokens", Message: "You passed 9 input tokens."}},
		{"a 400 that mentions max_tokens is none", 400, `{"error":{"message":"max_tokens must be positive","code":400,"param":"max_tokens"}}`, canon.Problem{Status: 400, Param: "max_tokens", Message: "max_tokens must be positive"}},
		{"nor is a 500 that mentions the context", 500, "maximum context length", canon.Problem{Status: 500, Message: "maximum context length"}},
		{"an error that is a number", 500, `{"error":7}`, canon.Problem{Status: 500, Message: "7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := New().(dialect.Translator).ReadError(c.status, []byte(c.body)); *got != c.want {
				t.Errorf("got  %+v\nwant %+v", *got, c.want)
			}
		})
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
