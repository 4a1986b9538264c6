package dialect

import "rolltap/rewrite/canon"

// Options is what one translation is done with.
type Options struct {
	Policy *Policy // never nil
	Losses *canon.Losses
	// ID stands for the exchange in the ids that are made here: resp_<ID>, msg_<ID>, chatcmpl-<ID>. Letters and digits.
	ID string
	// Created is when the exchange began, in Unix seconds.
	Created int64
	// Codex: the client is one, and ends its turn at response.incomplete.
	Codex bool
	// Target is what the target of the client's request says, where its dialect says there what others say in the body.
	Target Target
}

// Translator is what a dialect does for translations; Dialect has it. Bodies that are read are valid JSON objects whose members have
// different names. Nothing is changed in what is passed in, and results borrow from it.
//
// An error is a *canon.Problem, and then there is no partial result. What is not said in the other dialect is an error or a loss.
type Translator interface {
	// ReadCall decodes a request; its problems are of the client and name the field.
	ReadCall(body []byte, o Options) (*canon.Request, error)
	// AppendCall encodes a request for an upstream of this dialect.
	AppendCall(dst []byte, r *canon.Request, o Options) ([]byte, error)

	// ReadAnswer decodes a unary answer that is no error. An error says that it is no answer of this dialect.
	ReadAnswer(body []byte, o Options) (*canon.Answer, error)
	// AppendAnswer encodes an answer for the client that asked for it; of what it asked there is no more than model, wishes, stop sequences and
	// what a Repeater names. It tells as lost what the dialect has no place for, but no Extra: that is told where the answer is read, as a decoder
	// tells it.
	AppendAnswer(dst []byte, a *canon.Answer, asked *canon.Request, o Options) ([]byte, error)

	// ReadError decodes the body of an answer with a status of 400 or more, or of one that IsError: any bytes, JSON or not. The problem's
	// status is the given one, or where that is no error status the one that the body stands for, else 502. Its message is what the
	// upstream said, never empty.
	ReadError(status int, body []byte) *canon.Problem
	// IsError tells whether a unary body with a good status is an error in disguise.
	IsError(body []byte) bool

	NewDecoder(o Options) Decoder
	NewEncoder(asked *canon.Request, o Options) Encoder
}

// Repeater is a dialect whose answers repeat members of the request, which it names.
type Repeater interface{ Repeats() []string }

// Decoder reads a stream of its dialect. One a stream, one goroutine.
type Decoder interface {
	// Frame decodes one event and appends what it says to dst; the events borrow from name and data and from the decoder, and are valid
	// until its next call. All calls together give a stream of canon's grammar. An error says that the frame cannot be understood; the
	// stream cannot go on behind it. An error frame is no error: it is a Fail event.
	Frame(dst []canon.Event, name, data []byte) ([]canon.Event, error)
	// Finish tells that the upstream's body has ended cleanly. nil: the dialect's own end was seen, or a failure. io.ErrUnexpectedEOF: it
	// was not.
	Finish() error
}

// Encoder writes a stream of its dialect. One a stream, one goroutine.
type Encoder interface {
	// Append appends the frames that say e. The events satisfy canon's grammar. Each event is written at once, but what only the end
	// knows. An Ended event makes the dialect's terminal event, a Fail event the failure event.
	Append(dst []byte, e *canon.Event) []byte
	// AppendKeepAlive appends what keeps the client waiting; it opens a stream that has not begun, and then Start does not open it again.
	AppendKeepAlive(dst []byte) []byte
	// Overlap tells whether several parts may be open; else a canon.Sequencer stands in front.
	Overlap() bool
}

// Keeper is an Encoder that keeps what it was told, since the end of its stream says all of it once more.
type Keeper interface{ Keeps() }

// CallHolder is an Encoder of a dialect in which a call has no pieces: it writes a call when its part closes, and all else at once.
type CallHolder interface{ HoldsCalls() }
