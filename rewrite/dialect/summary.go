package dialect

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// Count reads one token count: an integer literal of 0 or more, else canon.Unknown. Booleans, strings and fractions are no counts.
func Count(raw []byte) int64 {
	if n, ok := jsonx.Int(raw); ok && n >= 0 {
		return n
	}
	return canon.Unknown
}

// Summary is an answer in a few words.
type Summary struct {
	Model       string // as the upstream names it
	Finish      string // in Chat's words: stop, length, tool_calls, content_filter and what engines add; "" none
	Usage       canon.Usage
	HasError    bool // an error frame or an error body
	ErrorStatus int  // HTTP status that the error's code or type stands for, 0 unknown
}
