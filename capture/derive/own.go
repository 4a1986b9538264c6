package derive

import (
	"rolltap/internal/jsonx"
)

// own reads rolltap's member, and tells of other programs' records what it would say.
func (c *Call) own(raw []byte) {
	o := &c.Own
	o.Usage = Usage{-1, -1, -1, -1}
	if jsonx.KindOf(raw) != jsonx.KindObject {
		c.guess()
		return
	}
	o.Known = true
	var got [10][]byte
	jsonx.GetAll(raw, []string{"outcome", "finish_reason", "stream", "losses", "truncated", "usage", "client", "path", "upstream"}, got[:9])
	o.Outcome, o.Finish, o.Path = word(got[0]), word(got[1]), word(got[7])
	o.Stream = jsonx.Truthy(got[2])
	o.Losses, o.Truncated = filled(got[3]), filled(got[4])
	var n [4][]byte
	jsonx.GetAll(got[5], []string{"prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"}, n[:])
	o.Usage = Usage{count(n[0]), count(n[1]), count(n[2]), count(n[3])}
	clear(n[:])
	jsonx.GetAll(got[6], []string{"session", "agent", "parent_agent", "user_agent"}, n[:])
	o.Session, o.Agent, o.Parent, o.UserAgent = word(n[0]), word(n[1]), word(n[2]), word(n[3])
	clear(n[:])
	jsonx.GetAll(got[8], []string{"dialect", "model"}, n[:2])
	o.Upstream, o.AskedFor = word(n[0]), word(n[1])
}

// filled is a list that has something in it, else nil.
func filled(raw []byte) []byte {
	if jsonx.KindOf(raw) != jsonx.KindArray || !jsonx.Truthy(raw) {
		return nil
	}
	return raw
}

// guess fills Own for a record that another program wrote in the same format.
func (c *Call) guess() {
	o := &c.Own
	switch word(c.Category) {
	case "", "incomplete", "capture_parse_error":
		o.Outcome = "ok"
	case "cancelled":
		o.Outcome = "client_gone"
	case "stream_truncated", "connection":
		o.Outcome = "upstream_cut"
	case "timeout":
		o.Outcome = "upstream_timeout"
	default:
		o.Outcome = "upstream_error"
	}
	o.Stream = jsonx.Truthy(jsonx.Get(c.Request, "stream"))
	o.Finish = chatFinish(word(c.Finish))
	if o.Finish == "" && word(c.ResponseStatus) == "completed" {
		o.Finish = "stop"
		if c.ToolCalls() > 0 {
			o.Finish = "tool_calls"
		}
	}
	o.Usage = Usage{c.Tokens.In, c.Tokens.Out, c.Tokens.Cached, c.Tokens.Reasoning}
	o.Session = word(c.SessionID)
	switch word(c.Dialect) {
	case "chat":
		o.Path = "/v1/chat/completions"
	case "messages", "responses":
		o.Path = "/v1/" + word(c.Dialect)
	}
}

// chatFinish is a finish reason of any dialect in Chat's words; what has none there keeps its own.
func chatFinish(reason string) string {
	switch reason {
	case "end_turn", "stop_sequence", "pause_turn":
		return "stop"
	case "max_tokens", "max_output_tokens", "model_context_window_exceeded":
		return "length"
	case "STOP":
		return "stop"
	case "MAX_TOKENS":
		return "length"
	case "SAFETY":
		return "content_filter"
	case "tool_use":
		return "tool_calls"
	case "refusal":
		return "content_filter"
	}
	return reason
}

// Used is what the call consumed as far as anybody knows: rolltap counts what it asked the upstream for, also where the client did
// not want to be told.
func (c *Call) Used() Usage {
	known := func(ours, told int64) int64 {
		if ours >= 0 {
			return ours
		}
		return told
	}
	u, t := c.Own.Usage, c.Tokens
	return Usage{known(u.Prompt, t.In), known(u.Completion, t.Out), known(u.Cached, t.Cached), known(u.Reasoning, t.Reasoning)}
}

// Failed reports whether the exchange did not go well.
func (c *Call) Failed() bool { return c.Own.Outcome != "ok" }

// FirstToken is the time to the first content of a stream in milliseconds; not ok for anything else: an answer that came at once, and
// an error, have a first byte and no first token.
func (c *Call) FirstToken() (ms float64, ok bool) {
	if !c.Own.Stream || c.TTFT == nil {
		return 0, false
	}
	if status, known := jsonx.Int(c.Status); !known || status >= 400 {
		return 0, false
	}
	f, ok := number(c.TTFT)
	if f == nil || !ok || *f < 0 {
		return 0, false
	}
	return *f, true
}

// SubAgent reports whether the call says that an agent made it which another one had started.
func (c *Call) SubAgent() bool {
	return c.Own.Parent != "" || c.Own.Agent != "" && c.Own.Agent != c.Own.Session || c.Own.Side == SideSubAgent
}
