package canon

// Text is the inside of a JSON string, valid and with its escapes as they came. nil is an absent text, an empty one that is not nil is
// the empty string.
type Text []byte

// Blank tells that a text is empty or white space of JSON, written as it is or escaped: behind the arguments of a call it says nothing.
func (t Text) Blank() bool {
	for i := 0; i < len(t); i++ {
		if t[i] == ' ' {
			continue
		}
		if t[i] != '\\' || i+1 == len(t) {
			return false
		}
		switch i++; t[i] {
		case 'n', 'r', 't':
		case 'u':
			if i+4 >= len(t) {
				return false
			}
			switch string(t[i+1 : i+5]) {
			case "0020", "0009", "000a", "000A", "000d", "000D":
			default:
				return false
			}
			i += 4
		default:
			return false
		}
	}
	return true
}

// Raw is one whole, valid JSON value as it came; nil is an absent one. A member that is null is read as absent unless it says otherwise.
type Raw []byte

// Member is a member of a JSON object that nobody here gives a meaning to.
type Member struct {
	Name  Text
	Value Raw
	Path  string // of what it was a member of, where that is not what has it here; ""
}

// In is the path of what a member was a member of, which is that of what has it unless the member says otherwise.
func (m *Member) In(holder string) string {
	if m.Path != "" {
		return m.Path
	}
	return holder
}

// Dialect is the word for a wire dialect in flags, records, metric labels and logs.
type Dialect string

// The dialects of the model endpoints.
const (
	Chat      Dialect = "chat"
	Messages  Dialect = "messages"
	Responses Dialect = "responses"
	Gemini    Dialect = "gemini" // of clients only
)
