package chat

import (
	"strings"
	"testing"

	"rolltap/rewrite/canon"
)

func TestReadError(t *testing.T) {
	const tooLong = `This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025 input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=1025)`
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   canon.Problem
	}{
		{"vLLM", 404, `{"error":{"message":"The model does not exist.","type":"NotFoundError","param":"model","code":404}}`,
			canon.Problem{Status: 404, Type: "NotFoundError", Message: "The model does not exist.", Param: "model"}},
		{"vLLM's Rust front end", 404, `{"error":{"message":"m","type":"invalid_request_error","param":null,"code":"model_not_found"}}`,
			canon.Problem{Status: 404, Code: "model_not_found", Type: "invalid_request_error", Message: "m"}},
		{"flat", 400, `{"object":"error","message":"m","type":"BadRequestError","param":"p","code":400}`, canon.Problem{Status: 400, Type: "BadRequestError", Message: "m", Param: "p"}},
		{"a text", 401, `{"error":"Unauthorized"}`, canon.Problem{Status: 401, Message: "Unauthorized"}},
		{"a detail", 404, `{"detail":"Not Found"}`, canon.Problem{Status: 404, Message: "Not Found"}},
		{"details", 422, `{"detail":[{"loc":["body","messages",0],"msg":"field required","input":"secret"},{"msg":"too bad"},7]}`, canon.Problem{Status: 422, Message: "body.messages.0: field required; too bad"}},
		{"an empty body", 404, "", canon.Problem{Status: 404, Message: "the upstream answered 404"}},
		{"a page", 502, "<html><body>Bad Gateway</body></html>", canon.Problem{Status: 502, Message: "the upstream answered 502"}},
		{"plain text", 503, " no workers\n", canon.Problem{Status: 503, Message: "the upstream answered 503: no workers"}},
		{"bytes", 500, "\x00\x01", canon.Problem{Status: 500, Message: "the upstream answered 500"}},
		{"broken JSON", 500, `{"error":`, canon.Problem{Status: 500, Message: "the upstream answered 500"}},
		{"JSON that says nothing", 500, `{"a":"b"}`, canon.Problem{Status: 500, Message: "the upstream answered 500"}},
		{"a message that is no text", 500, `{"error":{"message":{"a":1}}}`, canon.Problem{Status: 500, Message: "the upstream answered 500"}},
		{"an error in disguise", 200, `{"error":{"message":"m","type":"t","code":503}}`, canon.Problem{Status: 503, Type: "t", Message: "m"}},
		{"an error in disguise without a status", 200, `{"error":"m"}`, canon.Problem{Status: 502, Message: "m"}},
		{"an address", 500, `{"error":{"message":"cannot reach http://10.0.0.1:8000/v1/x, (HTTPS://a.b) see ftp://c d"}}`, canon.Problem{Status: 500, Message: "cannot reach [url], ([url]) see ftp://c d"}},
		{"too long", 400, `{"error":{"message":"` + tooLong + `","type":"BadRequestError","param":"input_tokens","code":400}}`,
			canon.Problem{Status: 400, Code: canon.CodeOverflow, Type: "BadRequestError", Message: tooLong, Param: "input_tokens"}},
		{"too long for OpenAI", 400, `{"error":{"message":"m","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			canon.Problem{Status: 400, Code: canon.CodeOverflow, Type: "invalid_request_error", Message: "m", Param: "messages"}},
		{"too long for llama.cpp", 400, `{"error":{"code":400,"message":"m","type":"exceed_context_size_error","n_ctx":5}}`,
			canon.Problem{Status: 400, Code: canon.CodeOverflow, Type: "exceed_context_size_error", Message: "m"}},
		{"more tokens than there is room for", 400, `{"error":{"message":"max_completion_tokens=100000 cannot be greater than max_model_len=1024.","code":400}}`,
			canon.Problem{Status: 400, Code: canon.CodeOverflow, Message: "max_completion_tokens=100000 cannot be greater than max_model_len=1024."}},
		{"the sampling helper", 400, `{"error":{"message":"Input length (5) exceeds model's limit","code":400}}`, canon.Problem{Status: 400, Code: canon.CodeOverflow, Message: "Input length (5) exceeds model's limit"}},
		{"by param and count", 400, `{"error":{"message":"You passed 2048 input tokens.","param":"input_tokens"}}`, canon.Problem{Status: 400, Code: canon.CodeOverflow, Message: "You passed 2048 input tokens.", Param: "input_tokens"}},
		{"max_tokens alone is no overflow", 400, `{"error":{"message":"max_tokens must be positive","param":"max_tokens","code":400}}`, canon.Problem{Status: 400, Message: "max_tokens must be positive", Param: "max_tokens"}},
		{"a server's fault is no overflow", 500, `{"error":{"message":"maximum context length"}}`, canon.Problem{Status: 500, Message: "maximum context length"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := (chat{}).ReadError(c.status, []byte(c.body)); *got != c.want {
				t.Errorf("got  %+v\nwant %+v", *got, c.want)
			}
		})
	}
	long := (chat{}).ReadError(500, []byte(strings.Repeat("é", 5000)))
	if len(long.Message) > 300 || !strings.HasSuffix(long.Message, "é…") {
		t.Errorf("a long text: %q", long.Message)
	}
	long = (chat{}).ReadError(500, []byte(`{"error":"x`+strings.Repeat("é", 50000)+`"}`))
	if len(long.Message) > maxMessage+10 || !strings.HasSuffix(long.Message, "é…") {
		t.Errorf("a long message: %d bytes", len(long.Message))
	}
}

func TestIsError(t *testing.T) {
	for body, want := range map[string]bool{
		`{"error":{"message":"m"}}`: true, `{"error":"m"}`: true, `{"object":"error","message":"m"}`: true, `{"detail":"m"}`: true,
		`{"error":null,"choices":[]}`: false, `{"choices":[],"detail":"m"}`: false, `{"id":"c","object":"chat.completion","choices":[]}`: false, `{}`: false,
	} {
		if got := (chat{}).IsError([]byte(body)); got != want {
			t.Errorf("%s: got %v", body, got)
		}
	}
}
