package dialect

import "rolltap/internal/jsonx"

// Unknown is a count that nobody told, or that was no integer of 0 or more.
const Unknown int64 = -1

// Usage counts tokens in the same sense for every dialect: Prompt includes cached tokens, Completion includes reasoning tokens.
type Usage struct{ Prompt, Completion, Cached, Reasoning int64 }

// NoUsage is the usage of an answer that told none.
func NoUsage() Usage { return Usage{Unknown, Unknown, Unknown, Unknown} }

// Count reads one token count: an integer literal of 0 or more, else Unknown. Booleans, strings and fractions are no counts.
func Count(raw []byte) int64 {
	if n, ok := jsonx.Int(raw); ok && n >= 0 {
		return n
	}
	return Unknown
}

// Summary is an answer in a few words.
type Summary struct {
	Model       string // as the upstream names it
	Finish      string // in Chat's words: stop, length, tool_calls, content_filter and what engines add; "" none
	Usage       Usage
	HasError    bool // an error frame or an error body
	ErrorStatus int  // HTTP status that the error's code or type stands for, 0 unknown
}
