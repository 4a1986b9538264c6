package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"rolltap/rewrite/canon"
)

// Every recorded refusal, to SDKs that ask for a stream and for JSON.
func TestErrors(t *testing.T) {
	refusals := exchanges(t, func(x *exchange) bool { return x.status >= 400 })
	if len(refusals) < 40 {
		t.Fatalf("only %d refusals", len(refusals))
	}
	checkErrors(t, refusals)
}

// Statuses that clients act on, as vLLM and what stands in front of it say them.
func TestErrorStatuses(t *testing.T) {
	var all []exchange
	for _, dialect := range []canon.Dialect{canon.Chat, canon.Messages, canon.Responses} {
		for _, status := range []int{400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 529} {
			for name, body := range map[string]string{
				"openai":    fmt.Sprintf(`{"error":{"message":"no such luck","type":"SomeError","param":null,"code":%d}}`, status),
				"anthropic": `{"type":"error","error":{"type":"api_error","message":"no such luck"}}`,
				"text":      "no such luck",
				"page":      "<html><head><title>no such luck</title></head></html>",
				"nothing":   "",
			} {
				all = append(all, exchange{
					name: fmt.Sprintf("status-%s-%d-%s", dialect, status, name), dialect: dialect, status: status, response: []byte(body), kind: "application/json",
				})
			}
		}
	}
	checkErrors(t, all)
}

func checkErrors(t *testing.T, refusals []exchange) {
	for upstream, all := range byDialect(refusals) {
		s := serve(t, upstream, all)
		for _, c := range sdks() {
			for i := range all {
				x := &all[i]
				if c.dialect() == upstream {
					continue
				}
				for _, stream := range []bool{true, false} {
					t.Run(x.name+" to "+string(c.dialect())+mode(stream), func(t *testing.T) {
						t.Parallel()
						at := s.rollout(x.name + "-" + string(c.dialect()) + mode(stream))
						got := asked(t, c, at, askOf(t, &exchange{name: x.name}), stream)
						body := at.wire.Bytes()
						ours := translator(t, c.dialect()).ReadError(x.status, body)
						said := translator(t, upstream).ReadError(x.status, x.response)
						checkStatus(t, ours, got, said)
						if want := errorType(c.dialect(), x.status); got.Type != want {
							t.Errorf("status %d is of type %q, want %q: %s", x.status, got.Type, want, body)
						}
						if got.Code != ours.Code && c.dialect() != canon.Messages && c.dialect() != canon.Gemini {
							t.Errorf("the SDK sees code %q, we see %q: %s", got.Code, ours.Code, body)
						}
						if said.Code == canon.CodeOverflow {
							checkOverflow(t, c.dialect(), got)
						}
					})
				}
			}
		}
	}
}

// asked is a call that fails.
func asked(t *testing.T, c sdk, at server, a ask, stream bool) *failure {
	t.Helper()
	var failed *failure
	if stream {
		_, failed = c.stream(patient(t), t, at, a)
	} else {
		_, failed = c.unary(patient(t), t, at, a)
	}
	if failed == nil {
		t.Fatalf("the SDK sees no failure: %s", at.wire)
	}
	return failed
}

// errorType is the type that the dialect has for a status (wire.md 5.3), and Gemini's word.
func errorType(d canon.Dialect, status int) string {
	if d == canon.Gemini {
		switch status {
		case 401:
			return "UNAUTHENTICATED"
		case 403:
			return "PERMISSION_DENIED"
		case 404:
			return "NOT_FOUND"
		case 429:
			return "RESOURCE_EXHAUSTED"
		case 502, 503, 529:
			return "UNAVAILABLE"
		case 504:
			return "DEADLINE_EXCEEDED"
		case 500:
			return "INTERNAL"
		}
		return "INVALID_ARGUMENT"
	}
	if d == canon.Messages {
		switch status {
		case 401:
			return "authentication_error"
		case 403:
			return "permission_error"
		case 404:
			return "not_found_error"
		case 504:
			return "timeout_error"
		case 413:
			return "request_too_large"
		case 429:
			return "rate_limit_error"
		case 503, 529:
			return "overloaded_error"
		}
		if status >= 500 {
			return "api_error"
		}
		return "invalid_request_error"
	}
	switch status {
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 429:
		return "rate_limit_error"
	}
	if status >= 500 {
		return "server_error"
	}
	return "invalid_request_error"
}

// checkOverflow: agents compact their history when they read these words.
func checkOverflow(t *testing.T, d canon.Dialect, got *failure) {
	t.Helper()
	switch {
	case d == canon.Messages && !strings.Contains(got.Message, "prompt is too long"):
		t.Errorf("a full context is not told in the words of Messages: %+v", *got)
	case d == canon.Gemini: // has no code, and its clients look at no words
	case d != canon.Messages && got.Code != canon.CodeOverflow:
		t.Errorf("a full context is not told by its code: %+v", *got)
	}
}

// What the sidecar refuses itself is an error of the SDK like any other, and names the field.
func TestRefusals(t *testing.T) {
	s := serve(t, canon.Chat, nil)
	at := s.rollout("refused")
	service := responsesSDK{}.service(at)
	p := responsesSDK{}.params(ask{model: "m", maxTokens: 10, turns: []turn{{role: "user", text: "hi"}}})
	p.PreviousResponseID = openai.String("resp_1")
	_, err := service.New(patient(t), p)
	if err == nil {
		t.Fatal("an earlier response cannot be known")
	}
	got := openaiFailure(t, err)
	if got.Status != http.StatusBadRequest || got.Code != canon.CodeUnsupported || got.Param != "previous_response_id" || got.Type != "invalid_request_error" {
		t.Errorf("%+v", *got)
	}
	p.PreviousResponseID = param.Opt[string]{}
	p.Background = openai.Bool(true)
	_, err = service.New(patient(t), p)
	if err == nil {
		t.Fatal("nothing runs in the background")
	}
	if got := openaiFailure(t, err); got.Status != http.StatusBadRequest || got.Param != "background" || got.Code != canon.CodeUnsupported {
		t.Errorf("%+v", *got)
	}
	p.Background = param.Opt[bool]{}
	p.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction("", nil, false)}
	_, err = service.New(patient(t), p)
	if err == nil {
		t.Fatal("a tool without a name is none")
	}
	if got := openaiFailure(t, err); got.Status != http.StatusBadRequest || got.Param != "tools[0].name" || got.Code != canon.CodeInvalid {
		t.Errorf("%+v", *got)
	}
	failed := asked(t, messagesSDK{}, s.rollout("refused"), ask{model: "m", maxTokens: -1, turns: []turn{{role: "user", text: "hi"}}}, true)
	if failed.Status != http.StatusBadRequest || failed.Type != "invalid_request_error" || !strings.Contains(failed.Message, "max_tokens") {
		t.Errorf("%+v", *failed)
	}
}
