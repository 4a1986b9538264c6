package dialect

import (
	"strconv"
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// ErrorStatus is the HTTP status that an error stands for which came without one, inside a stream: by its code when that is a number, else
// by the words of the dialects of upstreams and of vLLM in code and type. 0 when nothing is recognised. Both arguments are raw JSON values or nil.
func ErrorStatus(code, typ []byte) int {
	if n, ok := jsonx.Int(code); ok {
		return errorRange(n)
	}
	for _, raw := range [][]byte{code, typ} {
		word, ok := jsonx.Text(raw)
		if !ok {
			continue
		}
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			return errorRange(n)
		}
		if status := wordStatus(word); status != 0 {
			return status
		}
	}
	return 0
}

// StatusOf is ErrorStatus of an error object {"code", "type", …}; anything else tells no status.
func StatusOf(errorObject []byte) int {
	return ErrorStatus(jsonx.Get(errorObject, "code"), jsonx.Get(errorObject, "type"))
}

func errorRange(n int64) int {
	if n < 400 || n > 599 {
		return 0
	}
	return int(n)
}

// Error types and codes: wire.md 1.6 and 1.7 (vLLM, both front ends), 3.1.4 (Anthropic), 3.2.3 and 3.2.6 (OpenAI).
func wordStatus(word string) int {
	switch word {
	case "invalid_request_error", "BadRequestError", "Bad Request", "invalid_request", "invalid_prompt", "context_length_exceeded",
		"json_parse_error", "unsupported_parameter":
		return 400
	case "authentication_error", "AuthenticationError", "Unauthorized", "invalid_api_key":
		return 401
	case "billing_error":
		return 402
	case "permission_error", "PermissionDeniedError":
		return 403
	case "not_found_error", "NotFoundError", "model_not_found":
		return 404
	case "conflict_error", "ConflictError":
		return 409
	case "request_too_large":
		return 413
	case "UnprocessableEntityError":
		return 422
	case "rate_limit_error", "RateLimitError", "rate_limit_exceeded", "insufficient_quota":
		return 429
	case "api_error", "server_error", "InternalServerError", "internal_error", "internal_server_error":
		return 500
	case "NotImplementedError":
		return 501
	case "ServiceUnavailableError", "overloaded":
		return 503
	case "timeout_error", "timeout":
		return 504
	case "overloaded_error":
		return 529
	}
	return 0
}

// AppendOpenAIError is the envelope that Chat and Responses share; its four members are always there (wire.md 3.2.6).
func AppendOpenAIError(dst []byte, p canon.Problem) []byte {
	dst = append(dst, `{"error":{"message":`...)
	dst = jsonx.AppendString(dst, OpenAIMessage(&p))
	dst = append(dst, `,"type":`...)
	dst = jsonx.AppendString(dst, openAIType(p.Status))
	dst = append(dst, `,"param":`...)
	dst = appendWord(dst, p.Param)
	dst = append(dst, `,"code":`...)
	dst = appendWord(dst, p.Code)
	return append(dst, '}', '}')
}

// OpenAIMessage is the message of a problem for clients of OpenAI's dialects. Agents that know no code find an overflow by these words
// (wire.md 1.7 and 2.1), which other dialects do not use.
func OpenAIMessage(p *canon.Problem) string {
	const words = "context length"
	if p.Code != canon.CodeOverflow || strings.Contains(strings.ToLower(p.Message), words) {
		return p.Message
	}
	return "the model's maximum " + words + " is exceeded: " + p.Message
}

func openAIType(status int) string {
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

func appendWord(dst []byte, word string) []byte {
	if word == "" {
		return append(dst, "null"...)
	}
	return jsonx.AppendString(dst, word)
}
