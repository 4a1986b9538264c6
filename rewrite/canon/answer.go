package canon

// Unknown is a count that nobody told, or that was no integer of 0 or more.
const Unknown int64 = -1

// Usage counts tokens in the same sense for every dialect: Prompt includes cached and cache-written tokens, Completion includes reasoning
// tokens.
type Usage struct{ Prompt, Completion, Cached, CacheWrite, Reasoning int64 }

// NoUsage is the usage of an answer that told none.
func NoUsage() Usage { return Usage{Unknown, Unknown, Unknown, Unknown, Unknown} }

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
