package dialect

import (
	"encoding/json"
	"testing"

	"rolltap/rewrite/canon"
)

func TestErrorStatus(t *testing.T) {
	for _, c := range []struct {
		name, object string
		want         int
	}{
		{"a numeric code", `{"code":400,"type":"server_error"}`, 400},
		{"a numeric code in a string", `{"code":"503"}`, 503},
		{"a number that is no error status tells nothing", `{"code":200,"type":"server_error"}`, 0},
		{"a fraction is no status", `{"code":400.0,"type":"api_error"}`, 500},
		{"a word as code", `{"code":"model_not_found","type":"invalid_request_error"}`, 404},
		{"an unknown word as code leaves it to the type", `{"code":"x","type":"rate_limit_error"}`, 429},
		{"vLLM's own types", `{"code":null,"type":"NotFoundError"}`, 404},
		{"vLLM's validation errors", `{"type":"Bad Request"}`, 400},
		{"vLLM's internal errors on Messages", `{"type":"internal_error"}`, 500},
		{"an engine that died", `{"type":"InternalServerError"}`, 500},
		{"Anthropic's overload", `{"type":"overloaded_error"}`, 529},
		{"Anthropic's size", `{"type":"request_too_large"}`, 413},
		{"a time-out", `{"type":"timeout_error"}`, 504},
		{"a failed response", `{"code":"rate_limit_exceeded","message":"m"}`, 429},
		{"nothing known", `{"type":"x","code":true}`, 0},
		{"a string", `"Unauthorized"`, 0},
		{"an empty object", `{}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := StatusOf([]byte(c.object)); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestCount(t *testing.T) {
	for raw, want := range map[string]int64{"0": 0, "12": 12, "-1": canon.Unknown, "1.0": canon.Unknown, "1e3": canon.Unknown, "true": canon.Unknown, `"7"`: canon.Unknown, "null": canon.Unknown,
		"9223372036854775807": 9223372036854775807, "9223372036854775808": canon.Unknown} {
		if got := Count([]byte(raw)); got != want {
			t.Errorf("%s: got %d, want %d", raw, got, want)
		}
	}
	if got := Count(nil); got != canon.Unknown {
		t.Errorf("absent: got %d", got)
	}
}

// Clients of OpenAI's dialects find an overflow by its code or by its words.
func TestOpenAIMessage(t *testing.T) {
	for _, c := range []struct{ code, message, want string }{
		{canon.CodeOverflow, "prompt is too long: 1001 tokens > 1000 maximum", "the model's maximum context length is exceeded: prompt is too long: 1001 tokens > 1000 maximum"},
		{canon.CodeOverflow, "This model's maximum context length is 1024 tokens.", "This model's maximum context length is 1024 tokens."},
		{canon.CodeOverflow, "Input length (5000) exceeds model's Maximum Context Length (4096).", "Input length (5000) exceeds model's Maximum Context Length (4096)."},
		{"", "prompt is too long", "prompt is too long"},
	} {
		p := canon.Problem{Status: 400, Code: c.code, Message: c.message}
		if got := OpenAIMessage(&p); got != c.want {
			t.Errorf("%q: %q, want %q", c.message, got, c.want)
		}
		var wire struct{ Error struct{ Message string } }
		if err := json.Unmarshal(AppendOpenAIError(nil, p), &wire); err != nil || wire.Error.Message != c.want {
			t.Errorf("%q on the wire: %q, %v", c.message, wire.Error.Message, err)
		}
	}
}
