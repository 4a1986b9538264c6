package messages

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// AppendError: the envelope has no place for code and param (wire.md 3.1.4).
func (messages) AppendError(dst []byte, p canon.Problem) []byte {
	dst = append(dst, `{"type":"error","error":{"type":`...)
	dst = jsonx.AppendString(dst, errorType(p.Status))
	dst = append(dst, `,"message":`...)
	dst = jsonx.AppendString(dst, p.Message)
	return append(dst, '}', '}')
}

func errorType(status int) string {
	switch status {
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
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}
