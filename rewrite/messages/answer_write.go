package messages

import (
	"bytes"
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// AppendAnswer writes a message (wire.md 3.1.2), its members in the order in which a folded stream of ours has them:
//
//	{"id","type","role","model","content":[…],"stop_reason","stop_sequence","usage":{…}}
//
// An answer that failed has no form here: it is the error that its Problem says.
func (messages) AppendAnswer(dst []byte, a *canon.Answer, asked *canon.Request, o dialect.Options) ([]byte, error) {
	if a.Failed != nil {
		return dst, a.Failed
	}
	dst = appendHead(dst, o.ID, asked, a.Model)
	first, called := len(dst), false
	for i := range a.Parts {
		p := &a.Parts[i]
		before := len(dst)
		if before > first {
			dst = append(dst, ',')
		}
		whole := len(dst)
		if dst = appendPart(dst, p, i, o.Losses); len(dst) == whole {
			dst = dst[:before]
			continue
		}
		called = called || p.Type == canon.CallPart
	}
	if len(dst) == first {
		dst = append(dst, emptyText...)
	}
	dst = append(dst, ']', ',')
	dst = appendStop(dst, &a.Stop, called, asked)
	dst = append(dst, `,"usage":`...)
	dst = appendUsage(dst, &a.Usage)
	return append(dst, '}'), nil
}

// emptyText is the content of an answer that says nothing: some clients need a block.
const emptyText = `{"type":"text","text":""}`

// appendHead writes a message up to the [ of its content. The model is the one that was asked for, whatever the upstream calls it.
func appendHead(dst []byte, id string, asked *canon.Request, served canon.Text) []byte {
	model := served
	if asked != nil && len(asked.Model) > 0 {
		model = asked.Model
	}
	dst = append(dst, `{"id":"msg_`...)
	dst = append(dst, id...)
	dst = append(dst, `","type":"message","role":"assistant","model":"`...)
	dst = append(dst, model...)
	return append(dst, `","content":[`...)
}

// appendPart writes the block that part n is, or nothing when it is lost.
func appendPart(dst []byte, p *canon.Part, n int, losses *canon.Losses) []byte {
	switch p.Type {
	case canon.TextPart, canon.RefusalPart:
		dst = append(dst, `{"type":"text","text":"`...)
		dst = append(dst, p.Text...)
		dst = append(dst, '"')
		return append(appendCites(dst, p.Cites, n, losses), '}')
	case canon.ReasoningPart:
		said := p.Text
		switch {
		case len(said) == 0:
			said = p.Summary
		case len(p.Summary) > 0:
			losses.Add(blockPath(n, "summary"), canon.NoEquivalent)
		}
		dst = append(dst, `{"type":"thinking","thinking":"`...)
		dst = append(dst, said...)
		dst = append(dst, `","signature":"`...)
		if readable(p.SignedBy) {
			dst = append(dst, p.Signature...)
		} else if len(p.Signature) > 0 {
			losses.Add(blockPath(n, "signature"), canon.Foreign)
		}
		return append(dst, `"}`...)
	case canon.RedactedPart:
		if readable(p.SignedBy) {
			return appendRedacted(dst, p.Signature)
		}
	case canon.CallPart:
		dst = appendToolUse(dst, &p.Call, n, losses)
		dst = appendInput(dst, &p.Call, n, losses)
		return append(dst, '}')
	case canon.HostedPart, canon.UnknownPart:
		if ownBlock(p.Raw) {
			return jsonx.AppendCompact(dst, p.Raw)
		}
	}
	losePart(p.Type, p.Raw, n, losses)
	return dst
}

// appendToolUse writes a tool_use block up to where the value of its input goes.
func appendToolUse(dst []byte, c *canon.Call, n int, losses *canon.Losses) []byte {
	if len(c.Namespace) > 0 {
		losses.Add(blockPath(n, "namespace"), canon.NoEquivalent)
	}
	dst = append(dst, `{"type":"tool_use","id":"`...)
	dst = appendCallID(dst, c.ID)
	dst = append(dst, `","name":"`...)
	dst = append(dst, c.Name...)
	return append(dst, `","input":`...)
}

// appendInput writes arguments as the model wrote them. What is no JSON object has no place in a block; in a stream its fragments reach the
// client all the same (dialects.md 6, vector 37). The text of a custom call is the one member of an object, as where custom tools are bridged.
func appendInput(dst []byte, c *canon.Call, n int, losses *canon.Losses) []byte {
	if c.Custom {
		dst = append(dst, `{"input":"`...)
		dst = append(dst, c.Arguments...)
		return append(dst, `"}`...)
	}
	from := len(dst)
	dst = jsonx.AppendUnquoted(dst, c.Arguments)
	input := bytes.Trim(dst[from:], " \t\r\n")
	switch {
	case len(input) == 0:
	case input[0] == '{' && jsonx.Valid(input):
		return append(dst[:from], input...) // moves it to the front
	default:
		losses.Add(blockPath(n, "input"), canon.NoEquivalent)
	}
	return append(dst[:from], '{', '}')
}

func appendRedacted(dst []byte, data canon.Text) []byte {
	dst = append(dst, `{"type":"redacted_thinking","data":"`...)
	dst = append(dst, data...)
	return append(dst, `"}`...)
}

func appendCites(dst []byte, cites []canon.Raw, n int, losses *canon.Losses) []byte {
	some := false
	for _, cite := range cites {
		switch {
		case !ownCite(cite):
			losses.Add(blockPath(n, "annotations"), canon.NoEquivalent)
			continue
		case some:
			dst = append(dst, ',')
		default:
			dst = append(dst, `,"citations":[`...)
		}
		dst, some = jsonx.AppendCompact(dst, cite), true
	}
	if some {
		dst = append(dst, ']')
	}
	return dst
}

// appendStop writes the members stop_reason and stop_sequence (wire.md 5.2): a cut and a refusal win over a call, a call over an ordinary end.
func appendStop(dst []byte, s *canon.Stop, called bool, asked *canon.Request) []byte {
	word := ""
	switch s.Reason {
	case canon.StopLength:
		word = "max_tokens"
	case canon.StopContext:
		word = "model_context_window_exceeded"
	case canon.StopFilter:
		word = "refusal"
	case canon.StopPause:
		word = "pause_turn"
	case canon.StopEnd, canon.StopSequence:
		switch {
		case called:
			word = "tool_use"
		case s.Reason == canon.StopSequence && askedToStop(asked, s.Sequence):
			dst = append(dst, `"stop_reason":"stop_sequence","stop_sequence":`...)
			return appendText(dst, s.Sequence)
		default:
			word = "end_turn"
		}
	}
	if word == "" {
		return append(dst, `"stop_reason":null,"stop_sequence":null`...)
	}
	dst = append(dst, `"stop_reason":"`...)
	dst = append(dst, word...)
	return append(dst, `","stop_sequence":null`...)
}

// askedToStop tells whether a stop sequence is the client's: engines have their own, and those are an ordinary end.
func askedToStop(asked *canon.Request, sequence canon.Text) bool {
	if asked == nil {
		return true
	}
	if sequence == nil {
		return len(asked.Stop) > 0
	}
	met := jsonx.AppendUnquoted(nil, sequence)
	for _, s := range asked.Stop {
		if bytes.Equal(jsonx.AppendUnquoted(nil, s), met) {
			return true
		}
	}
	return false
}

// appendUsage: input_tokens leaves out what the cache gave or took, and a count that is not known is 0 (wire.md 5.4, dialects.md 1.11).
func appendUsage(dst []byte, u *canon.Usage) []byte {
	cached, written := max(0, u.Cached), max(0, u.CacheWrite)
	fresh := max(0, max(0, u.Prompt-cached)-written)
	dst = append(dst, `{"input_tokens":`...)
	dst = strconv.AppendInt(dst, fresh, 10)
	dst = append(dst, `,"cache_creation_input_tokens":`...)
	dst = strconv.AppendInt(dst, written, 10)
	dst = append(dst, `,"cache_read_input_tokens":`...)
	dst = strconv.AppendInt(dst, cached, 10)
	dst = append(dst, `,"output_tokens":`...)
	dst = strconv.AppendInt(dst, max(0, u.Completion), 10)
	if u.Reasoning >= 0 {
		dst = append(dst, `,"output_tokens_details":{"thinking_tokens":`...)
		dst = strconv.AppendInt(dst, u.Reasoning, 10)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// appendText writes a string, or null for an absent one.
func appendText(dst []byte, t canon.Text) []byte {
	if t == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	dst = append(dst, t...)
	return append(dst, '"')
}
