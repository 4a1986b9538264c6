package responses

import (
	"fmt"
	"strings"
	"testing"
)

func TestReadError(t *testing.T) {
	const overflow = `This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025 input tokens. (parameter=input_tokens, value=1025)`
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   string // status code type param: message
	}{
		{"OpenAI", 404, `{"error":{"message":"m","type":"invalid_request_error","param":"model","code":"model_not_found"}}`, "404 model_not_found invalid_request_error model: m"},
		{"vLLM", 404, `{"error":{"message":"no model","type":"NotFoundError","param":"model","code":404}}`, "404 model_not_found NotFoundError model: no model"},
		{"vLLM, flat", 400, `{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}`, "400  BadRequestError : m"},
		{"a string", 401, `{"error":"Unauthorized"}`, "401   : Unauthorized"},
		{"a detail", 404, `{"detail":"Not Found"}`, "404   : Not Found"},
		{"a list of details", 422, `{"detail":[{"loc":["body","input",0],"msg":"Field required","input":"secret"}]}`, "422   : body.input.0: Field required"},
		{"Anthropic", 529, `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`, "529 overloaded overloaded_error : m"},
		{"a JSON string", 500, `"it broke"`, "500   : it broke"},
		{"text", 500, "upstream connect error\n", "500   : upstream connect error"},
		{"a page", 502, "<html><head><title> 502 Bad Gateway </title></head><body>x</body></html>", "502   : 502 Bad Gateway"},
		{"a page without a title", 502, "<p>", "502   : the upstream answered with status 502 and gave no reason"},
		{"nothing", 503, "", "503 overloaded  : the upstream answered with status 503 and gave no reason"},
		{"no words", 400, `{}`, "400   : the upstream answered with status 400 and gave no reason"},
		{"bytes", 500, "\xff\xfe", "500   : \uFFFD"},
		{"a rate limit", 429, `{"error":{"message":"m","code":null}}`, "429 rate_limit_exceeded  : m"},
		{"a quota", 429, `{"error":{"message":"m","code":"insufficient_quota"}}`, "429 insufficient_quota  : m"},
		{"a good status, told by the body", 200, `{"error":{"message":"m","type":"NotFoundError","code":404}}`, "404  NotFoundError : m"},
		{"a good status, not told", 200, `{"error":{"message":"m"}}`, "502   : m"},
		{"overflow by code", 400, `{"error":{"message":"m","code":"context_length_exceeded"}}`, "400 context_length_exceeded  : m"},
		{"overflow by text", 400, `{"error":{"message":"` + overflow + `","type":"BadRequestError","param":"input_tokens","code":400}}`, "400 context_length_exceeded BadRequestError input_tokens: " + overflow},
		{"overflow by field and count", 400, `{"error":{"message":"you asked for 5000 tokens","param":"max_tokens"}}`, "400 context_length_exceeded  max_tokens: you asked for 5000 tokens"},
		{"overflow, 413", 413, `{"error":{"message":"Prompt is too long"}}`, "413 context_length_exceeded  : Prompt is too long"},
		{"a limit that is none", 400, `{"error":{"message":"max_tokens must be positive","param":"max_tokens","code":400}}`, "400   max_tokens: max_tokens must be positive"},
		{"overflow is not of the server", 500, `{"error":{"message":"maximum context length"}}`, "500   : maximum context length"},
		{"too large", 413, `{"error":{"message":"m"}}`, "413 request_too_large  : m"},
		{"an address", 500, `{"error":{"message":"500, message='x', url='http://10.0.0.1:8000/v1/responses'"}}`, "500   : 500, message='x', url='(address)'"},
		{"a failed response", 500, `{"object":"response","status":"failed","error":{"code":"server_error","message":"m"}}`, "500 server_error  : m"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := responses{}.ReadError(c.status, []byte(c.body))
			if got := fmt.Sprintf("%d %s %s %s: %s", p.Status, p.Code, p.Type, p.Param, p.Message); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if p := (responses{}).ReadError(500, []byte(strings.Repeat("x", 1<<20))); len(p.Message) > maxMessage {
		t.Errorf("a message of %d bytes", len(p.Message))
	}
}

func TestIsError(t *testing.T) {
	for body, want := range map[string]bool{
		`{"error":{"message":"m"}}`:                                    true,
		`{"error":"Unauthorized"}`:                                     true,
		`{"object":"error","message":"m"}`:                             true,
		`{"type":"error","error":{}}`:                                  true,
		`{"detail":"Not Found"}`:                                       true,
		`{"object":"response","status":"failed","error":{"code":"x"}}`: false,
		`{"object":"response","status":"completed","error":null}`:      false,
		`{"output":[],"error":null}`:                                   false,
		`{}`:                                                           false,
	} {
		if got := (responses{}).IsError([]byte(body)); got != want {
			t.Errorf("%s: got %v", body, got)
		}
	}
}
