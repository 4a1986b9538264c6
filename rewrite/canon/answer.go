package canon

import "math"

// Unknown is a count that nobody told, or that was no integer of 0 or more.
const Unknown int64 = -1

// Usage counts tokens in the same sense for every dialect: Prompt includes cached and cache-written tokens, Completion includes reasoning
// tokens.
type Usage struct {
	Prompt, Completion, Cached, CacheWrite, Reasoning int64
	Total                                             int64 // as the upstream told it, where it is not the sum; 0 none
}

// NoUsage is the usage of an answer that told none.
func NoUsage() Usage { return Usage{Unknown, Unknown, Unknown, Unknown, Unknown, 0} }

// WithTotal is the usage with the total that the upstream told beside its counts. A total alone is no usage.
func (u Usage) WithTotal(told int64) Usage {
	if u != NoUsage() && told > 0 && told != u.InAll() {
		u.Total = told
	}
	return u
}

// InAll is the total as it was told, even when it differs from the sum (dialects.md 1.11), else the sum of prompt and completion, which
// stays in the range of counts.
func (u Usage) InAll() int64 {
	if u.Total > 0 {
		return u.Total
	}
	prompt, completion := max(u.Prompt, 0), max(u.Completion, 0)
	return prompt + min(completion, math.MaxInt64-prompt)
}

// StopReason is why the model stopped. That a call was made is not among them: the parts tell.
type StopReason uint8

// The reasons; the zero one is that the answer has not ended.
const (
	StopEnd      StopReason = iota + 1 // by itself, calls or not
	StopSequence                       // a stop sequence; Stop.Sequence when it is known
	StopLength                         // max tokens, or the server cut it
	StopContext                        // the context window is full
	StopFilter                         // content filter, refusal
	StopPause                          // Messages: pause_turn
)

// Stop is how an answer ended.
type Stop struct {
	Reason   StopReason
	Sequence Text // the stop sequence that was met, nil unknown
	Native   Text // the finish reason in the words of its dialect
}

// Answer is what a model said.
type Answer struct {
	ID      Text
	Model   Text
	Created Raw // Unix seconds
	Parts   []Part
	Usage   Usage
	Stop    Stop
	// Logprobs are the entries of every text part, in order, in Chat's shape; nil none.
	Logprobs Raw
	Extra    []Member
	Failed   *Problem // the error that ended it; Stop is then zero
}

// Called reports whether a tool was called.
func (a *Answer) Called() bool {
	for i := range a.Parts {
		if a.Parts[i].Type == CallPart {
			return true
		}
	}
	return false
}
