package canon

// Request is a model call. It borrows from Body.
type Request struct {
	From Dialect // whose bytes it was read from
	Body Raw     // the whole request as it came

	Model    Text
	Stream   bool
	Messages []Message // system and developer messages among them, in order; instructions and system members come first
	Tools    []Tool
	Choice   Choice
	Stop     []Text
	Format   Format
	Thinking Thinking
	Show     Show

	// Params are sampling parameters and hints that differ between dialects in name only; nil where the client set none.
	Params [NumParams]Raw

	Extra []Member // top-level members that nobody knows
}

// Role is whose message it is.
type Role uint8

// The roles.
const (
	System Role = iota + 1
	Developer
	User
	Assistant
	ToolRole // its parts are one ResultPart
)

// Message is one turn. All that the model said between two turns of others is one Message, whatever items the dialect makes of it. The
// results in a user turn of Messages are ToolRole messages in front of the rest of that turn.
type Message struct {
	Role  Role
	Name  Text
	Parts []Part
	// Plain: the content came as a plain string, which is the one TextPart.
	Plain bool
	Extra []Member
	Path  string // where it is in the client's request: "messages[3]", "input[2]", "system", "instructions"
}

// Prefill is a last message of the assistant, which the model is to go on with; nil when there is none. One that calls or says nothing cannot
// be gone on with.
func (r *Request) Prefill() *Message {
	n := len(r.Messages)
	if n == 0 || r.Messages[n-1].Role != Assistant {
		return nil
	}
	m := &r.Messages[n-1]
	spoken := false
	for i := range m.Parts {
		switch m.Parts[i].Type {
		case TextPart, RefusalPart:
			spoken = spoken || len(m.Parts[i].Text) > 0
		case CallPart:
			return nil
		}
	}
	if !spoken {
		return nil
	}
	return m
}

// ToolKind is who runs a tool, and how the model calls it.
type ToolKind uint8

// The kinds of tools.
const (
	FunctionTool ToolKind = iota + 1
	CustomTool            // called with free text
	HostedTool            // run by the provider; Type names it
)

// Tool is a tool that the model may call. A namespace is taken apart: each of its tools stands alone, with Namespace set.
type Tool struct {
	Kind        ToolKind
	Type        Text // wire type of a HostedTool: "web_search_20250305"
	Name        Text
	Namespace   Text
	Description Text // nil: absent or null
	Parameters  Raw  // JSON schema; nil: absent or null
	Strict      Raw  // true or false; nil: absent or null
	Grammar     Raw  // format of a CustomTool
	Raw         Raw  // the whole tool as it came
	Cache       Raw
	Extra       []Member // members that only hint: defer_loading, input_examples …
	Path        string   // "tools[1]"
}

// ChoiceMode is how free the model is to call tools.
type ChoiceMode uint8

// The modes; the zero one is that the client said nothing.
const (
	ChoiceAuto ChoiceMode = iota + 1
	ChoiceNone
	ChoiceRequired
	ChoiceNamed // the tool that Name names
)

// Choice is tool_choice and parallel_tool_calls.
type Choice struct {
	Mode      ChoiceMode
	Name      Text
	Namespace Text
	Custom    bool      // Name is a custom tool
	Hosted    Text      // Name is empty: the hosted tool of this type
	Allowed   []ToolRef // not nil: the model may call only these
	Raw       Raw       // a choice that nobody knows: Mode is ChoiceAuto
	Parallel  Raw       // true or false; nil: the client said nothing
}

// ToolRef names a tool in allowed_tools.
type ToolRef struct {
	Type, Name, Namespace Text
}

// Format is the shape that the answer's text must have.
type Format struct {
	Kind        FormatKind
	Name        Text
	Description Text
	Schema      Raw
	Strict      Raw
	Path        string
}

// FormatKind says which; the zero one is plain text.
type FormatKind uint8

// The formats.
const (
	FormatJSON   FormatKind = iota + 1 // any JSON object
	FormatSchema                       // JSON of Schema
	FormatOther                        // of a type that only its own dialect has; the member is in Extra
)

// Thinking is what the client wants of reasoning.
type Thinking struct {
	Mode    ThinkingMode
	Effort  Text // none, minimal, low, medium, high, xhigh, max: an open list
	Budget  Raw  // tokens
	Summary Text // Responses: auto, concise, detailed
	Display Text // Messages: summarized, omitted
	Path    string
}

// ThinkingMode is Messages' switch; the zero one is that the client said nothing.
type ThinkingMode uint8

// The modes.
const (
	ThinkingOn ThinkingMode = iota + 1
	ThinkingAdaptive
	ThinkingOff
)

// Show is what the client wants to see in the answer besides what was said.
type Show struct {
	Usage     bool // Chat: stream_options.include_usage
	Logprobs  bool
	Encrypted bool // Responses: include reasoning.encrypted_content
	Unthought bool // Gemini: no reasoning, unless thinkingConfig.includeThoughts is true
	Legacy    bool // Chat: calls as function_call, one an answer, since the tools were functions
}
