package canon

// Codes of refusals and failures that decoders and encoders make; they are x-rolltap-error words.
const (
	CodeInvalid         = "invalid_request"
	CodeUnsupported     = "unsupported_parameter"
	CodeOverflow        = "context_length_exceeded"
	CodeUpstreamInvalid = "upstream_invalid"
)

// Problem is a refusal or failure before it has a dialect. As an error it says why a request cannot be translated, or what the other side
// said went wrong.
type Problem struct {
	Status  int    // HTTP status; 0: none is known
	Code    string // in OpenAI's words, which the x-rolltap-error words are among; "" null
	Type    string // the error type that the upstream named; "": by Status
	Message string // never holds what the client sent
	Param   string // path of the field at fault in the client's request, "tools[1].name"; "" null
	Request string // id of the record of the call, letters and digits, for dialects whose errors have it; "" none
}

func (p *Problem) Error() string {
	if p.Param != "" {
		return p.Param + ": " + p.Message
	}
	return p.Message
}

// Invalid is the 400 for a request that its own dialect would not accept.
func Invalid(param, message string) *Problem {
	return &Problem{Status: 400, Code: CodeInvalid, Message: message, Param: param}
}

// Unsupported is the 400 for what the other dialect cannot say.
func Unsupported(param, message string) *Problem {
	return &Problem{Status: 400, Code: CodeUnsupported, Message: message, Param: param}
}

// Unreadable is the 502 for an answer, or an event of one, that is not of the dialect that it should be of. The message never quotes it.
func Unreadable(message string) *Problem {
	return &Problem{Status: 502, Code: CodeUpstreamInvalid, Message: message}
}
