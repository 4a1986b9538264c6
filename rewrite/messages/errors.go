package messages

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// AppendError: the envelope has no place for code and param (wire.md 3.1.4). An event of a stream names no request (dialects.md 2.4.2).
func (messages) AppendError(dst []byte, p canon.Problem) []byte {
	message := p.Message
	if p.Code == canon.CodeOverflow {
		message = overflowText(message)
	}
	dst = append(dst, `{"type":"error","error":{"type":`...)
	dst = jsonx.AppendString(dst, errorType(&p))
	dst = append(dst, `,"message":`...)
	dst = append(jsonx.AppendString(dst, message), '}')
	if p.Request != "" {
		dst = append(append(append(dst, `,"request_id":"req_`...), p.Request...), '"')
	}
	return append(dst, '}')
}

// errorType is the type that the upstream named where it is one of this dialect and tells more than the status does: OpenAI calls many things
// an invalid_request_error that have a name of their own here.
func errorType(p *canon.Problem) string {
	if p.Code == canon.CodeOverflow {
		return "invalid_request_error"
	}
	switch p.Type {
	case "authentication_error", "billing_error", "permission_error", "not_found_error", "conflict_error", "request_too_large", "rate_limit_error",
		"timeout_error", "overloaded_error":
		return p.Type
	}
	switch p.Status {
	case 401:
		return "authentication_error"
	case 402:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 409:
		return "conflict_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 503, 529:
		return "overloaded_error"
	case 504:
		return "timeout_error"
	}
	if p.Status >= 400 && p.Status < 500 {
		return "invalid_request_error"
	}
	if p.Status == 0 && p.Type == "invalid_request_error" {
		return p.Type
	}
	return "api_error"
}

func (messages) ReadError(status int, body []byte) *canon.Problem {
	return dialect.ReadError(status, body)
}

// IsError: an answer has no error member, and its type is message.
func (messages) IsError(body []byte) bool {
	var top [3][]byte
	jsonx.GetAll(body, []string{"error", "type", "object"}, top[:])
	for _, word := range top[1:] {
		if kind, _ := jsonx.Interior(word); string(kind) == "error" {
			return true
		}
	}
	return !jsonx.IsNull(top[0])
}
