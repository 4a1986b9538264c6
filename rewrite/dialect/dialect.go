package dialect

import "rolltap/rewrite/canon"

// Verdict is what an event says about the end of its stream.
type Verdict uint8

const (
	None       Verdict = iota // the stream goes on
	Complete                  // the dialect's ordinary end, whatever the finish reason is
	Incomplete                // an end that calls itself incomplete (Responses)
	Failed                    // an error frame
)

func (v Verdict) String() string {
	switch v {
	case None:
		return "none"
	case Complete:
		return "complete"
	case Incomplete:
		return "incomplete"
	case Failed:
		return "failed"
	}
	return "invalid"
}

// Signal is what one event of a stream means to somebody who only watches. The zero Signal is an event that means nothing to him: a ping,
// an opening event, usage.
type Signal struct {
	Verdict Verdict
	Content bool // a content, refusal, tool or reasoning delta that is not empty
	Invalid bool // there is data, and it is neither a JSON object nor [DONE]
}

// Folder folds a stream of its dialect, event by event, into the unary answer that says the same. It works on raw JSON: number spelling,
// escapes, lone surrogates and unknown members survive. What it keeps is of the order of what it was given, whatever the indices in it say.
//
// One Folder a stream, used by one goroutine at a time. AppendResponse and Summary may be called at any time and any number of times.
type Folder interface {
	// Event folds one event and says what Judge says of it. Name and data are borrowed for the call.
	Event(name, data []byte) Signal
	// AppendResponse appends what was said so far as one compact JSON object, or nothing when nothing was said.
	AppendResponse(dst []byte) []byte
	// Summary tells the same in a few words.
	Summary() Summary
	// Size is about how much memory what is kept takes, in bytes, and at least as long as the answer. It looks at every part of it.
	Size() int
}

// Dialect is one wire dialect. Implementations are stateless and safe for concurrent use; no argument is kept beyond the call, and no
// input makes them panic.
type Dialect interface {
	Translator

	Name() canon.Dialect
	// Path is the canonical path of the dialect's model endpoint, "/v1/messages".
	Path() string
	// Judge says what an event means, without state: by its event name, or by the JSON in it when the name says nothing. Name alone is
	// enough for a verdict, so that an event whose data is broken or was too large to keep still ends its stream.
	Judge(name, data []byte) Signal
	NewFolder() Folder
	// ReadRequest reads what a watcher wants to know of a request; body is a valid JSON object.
	ReadRequest(body []byte) (model string, stream bool)
	// ReadResponse reads a unary answer, errors included; body is a valid JSON object.
	ReadResponse(body []byte) Summary
	// AppendError appends the body of an error in the dialect's envelope. The same Problem gives the same bytes.
	AppendError(dst []byte, p canon.Problem) []byte
}

// Counter is a Dialect that has an endpoint for the length of a prompt. Bodies are valid JSON objects.
type Counter interface {
	// CountedCall is the call whose prompt a request to that endpoint asks about, a part of body.
	CountedCall(body []byte) []byte
	// AppendCount appends the answer.
	AppendCount(dst []byte, tokens int64) []byte
}

// SealMark begins every seal that package rewrite makes: by it a dialect tells one from a signature of its own.
const SealMark = "rolltap1"
