package dialect

import (
	"cmp"

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

// With is what s says of the beginning of an answer and later of the rest, which counts more.
func (s Summary) With(later Summary) Summary {
	last := func(a, b int64) int64 {
		if b == canon.Unknown {
			return a
		}
		return b
	}
	return Summary{
		Model: cmp.Or(later.Model, s.Model), Finish: cmp.Or(later.Finish, s.Finish),
		Usage: canon.Usage{
			Prompt: last(s.Usage.Prompt, later.Usage.Prompt), Completion: last(s.Usage.Completion, later.Usage.Completion),
			Cached: last(s.Usage.Cached, later.Usage.Cached), CacheWrite: last(s.Usage.CacheWrite, later.Usage.CacheWrite),
			Reasoning: last(s.Usage.Reasoning, later.Usage.Reasoning),
		},
		HasError: s.HasError || later.HasError, ErrorStatus: cmp.Or(later.ErrorStatus, s.ErrorStatus),
	}
}
