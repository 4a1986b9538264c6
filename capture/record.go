package capture

import "time"

// RawPolicy says when the text of a body is kept beside, or instead of, the parsed body.
type RawPolicy string

const (
	// RawAuto keeps the text of a body that is no JSON object and the text of every event stream. The empty string means the same.
	RawAuto RawPolicy = "auto"
	// RawAlways keeps the text of every non-empty body, also of those that are kept parsed.
	RawAlways RawPolicy = "always"
	// RawNever keeps no text. A body that is no JSON object is then not in the record at all, only its length is.
	RawNever RawPolicy = "never"
)

// Record is one exchange as it will stand in the rollout's file. Members are documented where the file format is, in doc.go.
//
// Append takes ownership of the record and of its copies: the caller touches neither afterwards.
type Record struct {
	// Rollout names the file; it must satisfy ValidID. CallID is unique in the store, 32 lowercase hex digits.
	Rollout, CallID string
	// Dialect is the client's. ModelRef is the name inside model_ref, "" writes null.
	Dialect, ModelRef string

	// Started and Completed are wall clock; Latency and TTFT monotonic. A negative TTFT is null.
	Started, Completed time.Time
	Latency, TTFT      time.Duration
	StatusCode         int    // sent to the client; 0 is null
	ErrorCategory      string // "" is null

	// Request and Response are the bodies as the client sent and saw them, content coding removed; nil is none.
	Request, Response *Copy
	// Folded is the response object folded from a stream, used with Streamed only; nil is none.
	Folded *Copy
	// Streamed says that Response is the text of an event stream: response is Folded (or null), the text is kept raw.
	Streamed bool
	Raw      RawPolicy

	ClientSessionID   string // "" leaves the member out
	UpstreamAttempted bool
	ResponseSource    string // "upstream", "local", "" is null
	UpstreamStatus    int    // 0 is null
	LocalReason       string // "" is null

	Method, Path, Query string
	Stream              bool
	Outcome             string
	Finish              string // in Chat's words; "" is null
	Losses              []Loss
	Upstream            *Upstream // nil is null: nothing was sent
	Usage               *Usage    // nil, or nothing known, is null
	Client              Client

	// Tokens is what token capture has to say of the call, a JSON object; nil leaves the member out.
	Tokens []byte

	RequestBytes, ResponseBytes int64
	// Truncated names cut copies beside those that Request and Response know of themselves: "upstream.request" and such.
	Truncated []string
}

// Loss is something that a translation could not carry over.
type Loss struct{ Path, Reason string }

// Upstream is the other side of a translation. Request and Response are the bodies, JSON objects as a rule; each is left out when nil or empty and
// becomes text in request_raw or response_raw when it is none, as a cut copy is. Status 0 is null.
type Upstream struct {
	Dialect, Path string
	Status        int
	Model         string
	Request       *Copy
	Response      *Copy
}

// Usage counts tokens; a negative count is unknown and written as null. Prompt includes cached tokens.
type Usage struct{ Prompt, Completion, Cached, Reasoning int64 }

// Client is what the client said about itself; empty members are left out.
type Client struct{ Session, Agent, ParentAgent, UserAgent string }

// copies are the bodies that the record owns; nil is none.
func (r *Record) copies() [5]*Copy {
	all := [5]*Copy{r.Request, r.Response, r.Folded}
	if r.Upstream != nil {
		all[3], all[4] = r.Upstream.Request, r.Upstream.Response
	}
	return all
}

// release gives back what the record's copies hold.
func (r *Record) release() {
	for _, c := range r.copies() {
		if c != nil {
			c.Release()
		}
	}
}
