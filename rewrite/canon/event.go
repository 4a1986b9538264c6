package canon

// Kind says what an Event is.
type Kind uint8

// The kinds, and which members of Event each uses.
const (
	Start   Kind = iota + 1 // ID, Model, Created; Usage as far as it is known
	Ping                    //
	Open                    // Part, Type; Call without Arguments; Text and SignedBy: the Signature of a RedactedPart; Raw of HostedPart and UnknownPart; ItemID
	Delta                   // Part, Text; Summary; Logprobs
	Seal                    // Part, Text: the signature of a ReasoningPart, the last one wins; SignedBy
	Cite                    // Part, Raw
	Close                   // Part
	Counted                 // Usage
	Ended                   // Stop
	Fail                    // Problem
)

// Event is one step of an answer. Its texts are borrowed until the decoder that made it is called again.
type Event struct {
	Kind    Kind
	Type    PartType
	Summary bool // the Delta is of Part.Summary, not of Part.Text
	Part    int

	Text     Text
	SignedBy Dialect
	Raw      Raw
	Logprobs Raw // of a text Delta: array of entries in Chat's shape

	ID      Text
	Model   Text
	Created Raw
	ItemID  Text
	Call    Call
	Usage   Usage
	Stop    Stop
	Problem *Problem
}

func (k Kind) String() string {
	switch k {
	case Start:
		return "start"
	case Ping:
		return "ping"
	case Open:
		return "open"
	case Delta:
		return "delta"
	case Seal:
		return "seal"
	case Cite:
		return "cite"
	case Close:
		return "close"
	case Counted:
		return "counted"
	case Ended:
		return "ended"
	case Fail:
		return "fail"
	}
	return "no kind"
}
