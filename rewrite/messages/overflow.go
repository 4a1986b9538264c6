package messages

import "strings"

// overflowText is the message of an overflow that clients of this dialect know (wire.md 3.1.4): with both numbers where the upstream told
// them, else in front of the upstream's text.
func overflowText(message string) string {
	const front = "prompt is too long"
	text := strings.ToLower(message)
	if strings.HasPrefix(text, front) {
		return message
	}
	n, some := tokens(text)
	limit, bounded := contextLength(text)
	if some && bounded {
		return front + ": " + n + " tokens > " + limit + " maximum"
	}
	return front + ": " + message
}

// tokens is how long a prompt is said to be, in the texts of vLLM and other engines (wire.md 1.7).
func tokens(text string) (string, bool) {
	for _, around := range [][2]string{
		{"your prompt contains at least ", " input tokens"}, {"your prompt contains ", " input tokens"}, {"you passed ", " input tokens"},
		{"resulted in ", " tokens"}, {"(parameter=input_tokens, value=", ")"}, {"input length (", ")"}, {"prompt length ", " "},
		{"you requested ", " tokens"}, {"prompt is too long: ", " tokens"},
	} {
		if n, ok := number(text, around[0], around[1]); ok {
			return n, true
		}
	}
	return "", false
}

// contextLength is how long a prompt may be.
func contextLength(text string) (string, bool) {
	for _, around := range [][2]string{
		{"maximum context length is ", " tokens"}, {"context length is only ", " tokens"}, {"maximum context length (", ")"},
		{"max_model_len ", ""}, {"max_model_len=", ""}, {"max_model_len (", ")"},
	} {
		if n, ok := number(text, around[0], around[1]); ok {
			return n, true
		}
	}
	return "", false
}

// number is the first number in text that stands between two phrases.
func number(text, before, behind string) (string, bool) {
	for {
		_, rest, ok := strings.Cut(text, before)
		if !ok {
			return "", false
		}
		n := 0
		for n < len(rest) && '0' <= rest[n] && rest[n] <= '9' {
			n++
		}
		if n > 0 && strings.HasPrefix(rest[n:], behind) {
			return rest[:n], true
		}
		text = rest
	}
}
