package canon

// Text is the inside of a JSON string, valid and with its escapes as they came. nil is an absent text, an empty one that is not nil is
// the empty string.
type Text []byte

// Raw is one whole, valid JSON value as it came; nil is an absent one. A member that is null is read as absent unless it says otherwise.
type Raw []byte

// Member is a member of a JSON object that nobody here gives a meaning to.
type Member struct {
	Name  Text
	Value Raw
}

// Dialect is the word for a wire dialect in flags, records, metric labels and logs.
type Dialect string

// The dialects of the model endpoints.
const (
	Chat      Dialect = "chat"
	Messages  Dialect = "messages"
	Responses Dialect = "responses"
)
