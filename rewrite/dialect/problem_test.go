package dialect

import (
	"strings"
	"testing"
	"unicode/utf8"

	"rolltap/rewrite/canon"
)

// failures are bodies of failures, and what is read from them.
func failures() []failure {
	const tooLong = `This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025 input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=1025)`
	overflow := func(p canon.Problem) canon.Problem {
		p.Code = canon.CodeOverflow
		return p
	}
	return []failure{
		{"OpenAI", 404, `{"error":{"message":"m","type":"invalid_request_error","param":"model","code":"model_not_found"}}`,
			canon.Problem{Status: 404, Code: "model_not_found", Type: "invalid_request_error", Param: "model", Message: "m"}},
		{"vLLM", 404, `{"error":{"message":"The model does not exist.","type":"NotFoundError","param":"model","code":404}}`,
			canon.Problem{Status: 404, Code: "model_not_found", Type: "NotFoundError", Message: "The model does not exist.", Param: "model"}},
		{"flat", 400, `{"object":"error","message":"m","type":"BadRequestError","param":"p","code":400}`, canon.Problem{Status: 400, Type: "BadRequestError", Message: "m", Param: "p"}},
		{"an event of Responses", 0, `{"type":"error","code":"server_error","message":"m","param":null}`, canon.Problem{Status: 500, Code: "server_error", Message: "m"}},
		{"Anthropic", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}`,
			canon.Problem{Status: 529, Code: "overloaded", Type: "overloaded_error", Message: "Overloaded"}},
		{"a failed response", 500, `{"object":"response","status":"failed","error":{"code":"server_error","message":"m"}}`, canon.Problem{Status: 500, Code: "server_error", Message: "m"}},
		{"an event with a failed response", 0, `{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"m"}}}`,
			canon.Problem{Status: 429, Code: "rate_limit_exceeded", Message: "m"}},
		{"a text", 401, `{"error":"Unauthorized"}`, canon.Problem{Status: 401, Message: "Unauthorized"}},
		{"a JSON string", 500, `"it broke"`, canon.Problem{Status: 500, Message: "it broke"}},
		{"FastAPI's text", 404, `{"detail":"Not Found"}`, canon.Problem{Status: 404, Message: "Not Found"}},
		{"FastAPI's list", 422, `{"detail":[{"loc":["body","messages",0],"msg":"field required","input":"secret"},{"msg":"too bad"},7,{}]}`,
			canon.Problem{Status: 422, Message: "body.messages.0: field required; too bad"}},

		{"the given status wins", 500, `{"error":{"type":"overloaded_error","message":"m"}}`, canon.Problem{Status: 500, Type: "overloaded_error", Message: "m"}},
		{"a good status, told by the body", 200, `{"error":{"message":"m","type":"t","code":503}}`, canon.Problem{Status: 503, Code: "overloaded", Type: "t", Message: "m"}},
		{"a good status, told by the word", 200, `{"error":"Unauthorized"}`, canon.Problem{Status: 401, Message: "Unauthorized"}},
		{"a good status, not told", 200, `{"error":"m"}`, canon.Problem{Status: 502, Message: "m"}},
		{"a status in a string is no code", 400, `{"error":{"message":"m","code":"400"}}`, canon.Problem{Status: 400, Message: "m"}},
		{"a rate limit gets its code", 429, `{"error":{"message":"m","code":null}}`, canon.Problem{Status: 429, Code: "rate_limit_exceeded", Message: "m"}},
		{"a quota keeps its own", 429, `{"error":{"message":"m","code":"insufficient_quota"}}`, canon.Problem{Status: 429, Code: "insufficient_quota", Message: "m"}},

		{"nothing", 403, "", canon.Problem{Status: 403, Message: "the upstream answered with status 403 and gave no reason"}},
		{"nothing with a good status", 200, "", canon.Problem{Status: 502, Message: "the upstream failed and gave no reason"}},
		{"plain text", 500, " no workers\n", canon.Problem{Status: 500, Message: "no workers"}},
		{"text that is no UTF-8", 500, "a\xffb", canon.Problem{Status: 500, Message: "a\uFFFDb"}},
		{"bytes", 500, "\x00\x01a", canon.Problem{Status: 500, Message: "the upstream answered with status 500 and gave no reason"}},
		{"bytes that are no characters", 500, "\xff\xfe", canon.Problem{Status: 500, Message: "the upstream answered with status 500 and gave no reason"}},
		{"a page", 502, "<html><head><TITLE> 502 Bad Gateway </TITLE></head><body>x</body></html>", canon.Problem{Status: 502, Message: "502 Bad Gateway"}},
		{"a page without a title", 502, "<p>x</p>", canon.Problem{Status: 502, Message: "x"}},
		{"a page's title with attributes", 502, "<html><title lang=en>Bad &amp; Gone</title>x", canon.Problem{Status: 502, Message: "Bad & Gone"}},
		{"a page's text", 502, "<!DOCTYPE html><html><head><title></title><style>a{b:c}</style><script>x('<p>')</script></head>\n<body><!-- y -->no <b>workers</b>\nare left</body></html>",
			canon.Problem{Status: 502, Message: "no workers are left"}},
		{"a page that says nothing", 502, "<html><body></body></html>", canon.Problem{Status: 502, Message: "the upstream answered with status 502 and gave no reason"}},
		{"a page that is cut", 502, "<html><body>no workers<scr", canon.Problem{Status: 502, Message: "no workers"}},

		{"a detail that is an object", 503, `{"detail":{"message":"m","code":"c","type":"t"}}`, canon.Problem{Status: 503, Code: "c", Type: "t", Message: "m"}},
		{"a detail with an error", 422, `{"detail":{"error":{"message":"m","param":"p"}}}`, canon.Problem{Status: 422, Param: "p", Message: "m"}},
		{"a detail with words", 422, `{"detail":{"error":"m","input":"secret"}}`, canon.Problem{Status: 422, Message: "m"}},
		{"a list of errors", 422, `{"success":false,"errors":[{"code":7,"message":"a"},{"message":"b"}]}`, canon.Problem{Status: 422, Message: "a; b"}},
		{"a list of errors inside of an error", 422, `{"error":{"type":"t","errors":[{"message":"a"}]}}`, canon.Problem{Status: 422, Type: "t", Message: "a"}},
		{"a list of texts", 422, `{"errors":["a","b",7]}`, canon.Problem{Status: 422, Message: "a; b"}},
		{"FastAPI's list of texts", 422, `{"detail":["a","b"]}`, canon.Problem{Status: 422, Message: "a; b"}},
		{"nothing but a list", 500, `["a","b"]`, canon.Problem{Status: 500, Message: "a; b"}},
		{"a msg", 500, `{"error":{"msg":"m","type":"t"}}`, canon.Problem{Status: 500, Type: "t", Message: "m"}},
		{"an error that is only one", 500, `{"error":true,"message":"m"}`, canon.Problem{Status: 500, Message: "m"}},
		{"an error of OAuth", 401, `{"error":{"error":"invalid_token","error_description":"expired"}}`, canon.Problem{Status: 401, Message: "invalid_token"}},
		{"a problem document", 500, `{"type":"about:blank","title":"Gone","status":500}`, canon.Problem{Status: 500, Type: "about:blank", Message: "Gone"}},

		{"a stream", 503, "data: {\"error\":{\"message\":\"m\",\"code\":503}}\n\ndata: [DONE]\n\n", canon.Problem{Status: 503, Code: "overloaded", Message: "m"}},
		{"a stream with a name", 400, ": hi\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"m\"}}", canon.Problem{Status: 400, Type: "invalid_request_error", Message: "m"}},
		{"a stream that began well", 500, "data: {\"choices\":[]}\n\ndata: {\"error\":{\"message\":\"m\"}}\n\n", canon.Problem{Status: 500, Message: "m"}},
		{"a stream with an error field", 500, "error: {\"code\":500,\"message\":\"m\",\"type\":\"server_error\"}\n\n", canon.Problem{Status: 500, Type: "server_error", Message: "m"}},
		{"a stream of words", 500, "event: error\ndata: no workers\n\n", canon.Problem{Status: 500, Message: "no workers"}},
		{"a stream that says nothing", 500, "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", canon.Problem{Status: 500, Message: "the upstream answered with status 500 and gave no reason"}},
		{"words that look like a field", 500, "error: no workers\n", canon.Problem{Status: 500, Message: "error: no workers"}},
		{"broken JSON is not quoted", 500, `{"error":`, canon.Problem{Status: 500, Message: "the upstream answered with status 500 and gave no reason"}},
		{"JSON that nobody knows is not quoted", 500, `{"a":"b"}`, canon.Problem{Status: 500, Message: "the upstream answered with status 500 and gave no reason"}},
		{"a message that is no text is not quoted", 500, `{"error":{"type":"x","message":{"a":1}}}`, canon.Problem{Status: 500, Type: "x", Message: "the upstream answered with status 500 and gave no reason"}},
		{"addresses are taken out", 500, `{"error":{"message":"cannot reach http://10.0.0.1:8000/v1/x, url='HTTPS://a.b', see (ftp://c d"}}`,
			canon.Problem{Status: 500, Message: "cannot reach [url], url='[url]', see (ftp://c d"}},

		{"too long for vLLM", 400, `{"error":{"message":"` + tooLong + `","type":"BadRequestError","param":"input_tokens","code":400}}`,
			overflow(canon.Problem{Status: 400, Type: "BadRequestError", Message: tooLong, Param: "input_tokens"})},
		{"too long by the code", 400, `{"error":{"message":"m","code":"context_length_exceeded"}}`, overflow(canon.Problem{Status: 400, Message: "m"})},
		{"too long for llama.cpp", 400, `{"error":{"code":400,"message":"m","type":"exceed_context_size_error","n_ctx":5}}`,
			overflow(canon.Problem{Status: 400, Type: "exceed_context_size_error", Message: "m"})},
		{"too long for Anthropic", 413, `{"error":{"message":"Prompt is too long"}}`, overflow(canon.Problem{Status: 413, Message: "Prompt is too long"})},
		{"too long with what is to come", 400, "input length and `max_tokens` exceed context limit: 5 + 6 > 10",
			overflow(canon.Problem{Status: 400, Message: "input length and `max_tokens` exceed context limit: 5 + 6 > 10"})},
		{"more tokens than there is room for", 400, `{"error":{"message":"max_completion_tokens=100000 cannot be greater than max_model_len=1024."}}`,
			overflow(canon.Problem{Status: 400, Message: "max_completion_tokens=100000 cannot be greater than max_model_len=1024."})},
		{"too long by field and count", 400, `{"error":{"message":"You passed 2,048 input tokens.","param":"input_tokens"}}`,
			overflow(canon.Problem{Status: 400, Message: "You passed 2,048 input tokens.", Param: "input_tokens"})},
		{"too long by field and vLLM's value", 400, `{"error":{"message":"no (parameter=input_tokens, value=5)","param":"max_output_tokens"}}`,
			overflow(canon.Problem{Status: 400, Message: "no (parameter=input_tokens, value=5)", Param: "max_output_tokens"})},
		{"too long inside a stream", 0, `{"error":{"message":"prompt is too long"}}`, overflow(canon.Problem{Status: 400, Message: "prompt is too long"})},
		{"a limit that is none", 400, `{"error":{"message":"max_tokens must be positive","param":"max_tokens","code":400}}`, canon.Problem{Status: 400, Message: "max_tokens must be positive", Param: "max_tokens"}},
		{"a server's fault is no overflow", 500, `{"error":{"message":"maximum context length"}}`, canon.Problem{Status: 500, Message: "maximum context length"}},
	}
}

type failure struct {
	name   string
	status int
	body   string
	want   canon.Problem
}

func TestReadError(t *testing.T) {
	for _, c := range failures() {
		t.Run(c.name, func(t *testing.T) {
			if got := ReadError(c.status, []byte(c.body)); *got != c.want {
				t.Errorf("got  %+v\nwant %+v", *got, c.want)
			}
		})
	}
}

func TestReadProblemLeavesTheStatusOpen(t *testing.T) {
	if p := ReadProblem(0, []byte(`{"message":"m"}`)); p.Status != 0 || p.Message != "m" {
		t.Errorf("got %+v", *p)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("é", 100000)
	for name, body := range map[string]string{"a text": "x" + long, "a member": `{"error":"x` + long + `"}`, "a list": `{"detail":[` + strings.Repeat(`{"msg":"é"},`, 10000) + `{}]}`} {
		if got := ReadError(500, []byte(body)).Message; len(got) > maxMessage+len("…") || !strings.HasSuffix(got, "…") || strings.Contains(got, "\uFFFD") {
			t.Errorf("%s: %d bytes, %q", name, len(got), got[len(got)-8:])
		}
	}
}

// FuzzReadError: any bytes are a failure that can be told, and who tells it again tells the same.
func FuzzReadError(f *testing.F) {
	for _, c := range failures() {
		f.Add(c.status, []byte(c.body))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		p := ReadError(status, body)
		if p.Message == "" || len(p.Message) > maxMessage+len("…") || !utf8.ValidString(p.Message) || p.Status < 400 || p.Status > 599 {
			t.Fatalf("%d %q: got %+v", status, body, *p)
		}
		told := OpenAIMessage(p) // an overflow in the words of that dialect
		again := ReadError(p.Status, AppendOpenAIError(nil, *p))
		if len(told) > maxMessage {
			told = again.Message
		}
		if again.Message != told || again.Status != p.Status || again.Code != p.Code {
			t.Errorf("%d %q: got %+v, and then %+v", status, body, *p, *again)
		}
	})
}
