package gemini

import (
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// AppendError: the envelope of Google's APIs has the status as a number and as a word.
func (gemini) AppendError(dst []byte, p canon.Problem) []byte {
	status := p.Status
	if status < 400 || status > 599 {
		status = 500
	}
	dst = strconv.AppendInt(append(dst, `{"error":{"code":`...), int64(status), 10)
	dst = jsonx.AppendString(append(dst, `,"message":`...), p.Message)
	dst = append(append(dst, `,"status":"`...), statusWord(status)...)
	return append(dst, `"}}`...)
}

// statusWord is the word of Google's RPC codes for an HTTP status.
func statusWord(status int) string {
	switch status {
	case 401:
		return "UNAUTHENTICATED"
	case 403:
		return "PERMISSION_DENIED"
	case 404:
		return "NOT_FOUND"
	case 409:
		return "ABORTED"
	case 429:
		return "RESOURCE_EXHAUSTED"
	case 499:
		return "CANCELLED"
	case 501:
		return "UNIMPLEMENTED"
	case 502, 503, 529:
		return "UNAVAILABLE"
	case 504:
		return "DEADLINE_EXCEEDED"
	}
	if status < 500 {
		return "INVALID_ARGUMENT"
	}
	return "INTERNAL"
}

func (gemini) ReadError(status int, body []byte) *canon.Problem {
	return dialect.ReadError(status, body)
}

func (gemini) IsError(body []byte) bool { return !jsonx.IsNull(jsonx.Get(body, "error")) }
