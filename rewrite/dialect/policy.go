package dialect

// Policy is what the `rewrite:` keys of the configuration say about translated requests and answers. Keys whose member is not here act
// outside the dialects. The zero Policy is not the default; DefaultPolicy is.
type Policy struct {
	ChatExtensions   bool   // send a Chat upstream members that vLLM knows and the official API does not
	MaxTokensName    string // max_tokens, max_completion_tokens
	DefaultMaxTokens int64  // for a Messages upstream when the client gave none
	ReasoningReplay  string // both, reasoning, reasoning_content, none
	ReasoningOutput  string // summary, content, both
	LateSystem       string // user, system, merge
	DeveloperRole    string // system, keep
	Prefill          string // continue, pass, error
	CustomTools      string // bridge, native, drop, error
	HostedTools      string // drop, pass, error
	HostedHistory    string // note, drop
	StrictTools      string // keep, drop
	Images           string // pass, drop, error
	ToolResultImages string // user_message, inline, placeholder
	Thinking         string // map, off
	IncompleteEvent  string // auto, incomplete, completed
}

// DefaultPolicy is the policy of a configuration without `rewrite:` keys.
func DefaultPolicy() Policy {
	return Policy{
		ChatExtensions: true, MaxTokensName: "max_tokens", DefaultMaxTokens: 8192, ReasoningReplay: "both", ReasoningOutput: "summary",
		LateSystem: "user", DeveloperRole: "system", Prefill: "continue", CustomTools: "bridge", HostedTools: "drop", HostedHistory: "note",
		StrictTools: "keep", Images: "pass", ToolResultImages: "user_message", Thinking: "map", IncompleteEvent: "auto",
	}
}
