package messages

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

// ReadAnswer reads a message. vLLM leaves out members that are null (vllm.md 4); one without a stop reason was aborted.
func (messages) ReadAnswer(body []byte, o dialect.Options) (*canon.Answer, error) {
	a := &canon.Answer{Usage: canon.NoUsage()}
	var kind, content []byte
	var end ending
	for it := jsonx.Object(body); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		ok := true
		switch string(name) {
		case "type":
			kind, ok = jsonx.Interior(value)
		case "content":
			content, ok = value, jsonx.KindOf(value) == jsonx.KindArray
		case "id":
			a.ID, ok = textOf(value)
		case "model":
			a.Model, ok = textOf(value)
		case "role":
		case "usage":
			a.Usage = readUsage(value)
			dialect.LoseRest(value, "usage", countPlace, o.Losses)
		default:
			var known bool
			if known, ok = end.member(name, value, o.Losses); !known {
				a.Extra = append(a.Extra, canon.Member{Name: name, Value: value})
			}
		}
		if !ok {
			return nil, canon.Unreadable("the answer has a " + dialect.LossName(name) + " of the wrong type")
		}
	}
	if content == nil || kind != nil && string(kind) != "message" {
		return nil, canon.Unreadable("the answer is no message")
	}
	for it := jsonx.Array(content); it.Next(); {
		p, err := readPart(it.Value())
		if err != nil {
			return nil, err
		}
		if p.Type == canon.CallPart && p.Call.Arguments == nil {
			p.Call.Arguments = canon.Text("{}")
		}
		if p.Type == canon.CallPart && len(p.Call.ID) == 0 {
			p.Call.ID = dialect.AppendCallID(nil, o.ID, len(a.Parts))
		}
		a.Parts = append(a.Parts, p)
	}
	if a.Failed = end.failed(); a.Failed == nil {
		a.Stop = end.stop(o.Losses)
	}
	return a, nil
}

// ending is how a message says that it ended.
type ending struct{ reason, sequence canon.Text }

// member reads one of the members that tell the end, which are the same in a message and in the delta of a message_delta. Those that have
// no place in other dialects are lost.
func (e *ending) member(name, value []byte, losses *canon.Losses) (known, ok bool) {
	switch string(name) {
	case "stop_reason":
		e.reason, ok = textOf(value)
	case "stop_sequence":
		e.sequence, ok = textOf(value)
	case "stop_details", "container", "context_management":
		losses.Add(string(name), canon.NoEquivalent)
		ok = true
	default:
		return false, true
	}
	return true, ok
}

// failed is why the answer is none: without a stop reason the engine has aborted it (vllm.md 4), and engines that map their own words may pass
// on those of a failure.
func (e *ending) failed() *canon.Problem {
	switch {
	case e.reason == nil || string(e.reason) == "abort":
		return dialect.Aborted()
	case string(e.reason) == "error":
		return dialect.Broke()
	}
	return nil
}

// stop reads the stop reason (dialects.md 1.10). A word that nobody knows is an end like others.
func (e *ending) stop(losses *canon.Losses) canon.Stop {
	s := canon.Stop{Reason: canon.StopEnd, Native: e.reason}
	switch string(e.reason) {
	case "end_turn", "tool_use":
	case "stop_sequence":
		s.Reason, s.Sequence = canon.StopSequence, e.sequence
	case "max_tokens":
		s.Reason = canon.StopLength
	case "model_context_window_exceeded":
		s.Reason = canon.StopContext
	case "refusal":
		s.Reason = canon.StopFilter
	case "pause_turn":
		s.Reason = canon.StopPause
	default:
		losses.Add("stop_reason", canon.NotKnown)
	}
	return s
}

// readPart reads a content block, whole or as a stream opens it.
func readPart(raw []byte) (canon.Part, error) {
	p := canon.Part{Raw: raw}
	kind, ok := jsonx.Interior(jsonx.Get(raw, "type"))
	if !ok {
		return p, canon.Unreadable("the answer has a content block without a type")
	}
	switch string(kind) {
	case "text":
		p.Type = canon.TextPart
	case "thinking":
		p.Type = canon.ReasoningPart
	case "redacted_thinking":
		p.Type, p.SignedBy = canon.RedactedPart, canon.Messages
	case "tool_use":
		p.Type = canon.CallPart
	default:
		p.Type = canon.UnknownPart
		if hostedBlock(kind) {
			p.Type = canon.HostedPart
		}
		return p, nil
	}
	for it := jsonx.Object(raw); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		if string(name) == "type" || jsonx.IsNull(value) {
			continue
		}
		if !readMember(&p, name, value) {
			return p, canon.Unreadable("the answer has a " + string(kind) + " block whose " + dialect.LossName(name) + " is of the wrong type")
		}
	}
	if p.Type == canon.CallPart && len(p.Call.Name) == 0 {
		return p, canon.Unreadable("the answer has a tool_use block without a name")
	}
	return p, nil
}

// readMember reads a member, not null, of a block of a kind that is known; false when it is of the wrong type.
func readMember(p *canon.Part, name, value []byte) (ok bool) {
	switch p.Type {
	case canon.TextPart:
		switch string(name) {
		case "text":
			p.Text, ok = textOf(value)
			return ok
		case "citations":
			for it := jsonx.Array(value); it.Next(); {
				p.Cites = append(p.Cites, it.Value())
			}
			return jsonx.KindOf(value) == jsonx.KindArray
		}
	case canon.ReasoningPart:
		switch string(name) {
		case "thinking":
			p.Text, ok = textOf(value)
			return ok
		case "signature":
			if p.Signature, ok = textOf(value); len(p.Signature) > 0 {
				p.SignedBy = canon.Messages
			}
			return ok
		}
	case canon.RedactedPart:
		if string(name) == "data" {
			p.Signature, ok = textOf(value)
			return ok
		}
	case canon.CallPart:
		switch string(name) {
		case "id":
			p.Call.ID, ok = textOf(value)
			return ok
		case "name":
			p.Call.Name, ok = textOf(value)
			return ok
		case "input":
			if !jsonx.Truthy(value) {
				return true // as a stream opens it, or without arguments
			}
			p.Call.Arguments = jsonx.AppendEscaped(nil, value)
			return jsonx.KindOf(value) == jsonx.KindObject
		case "caller":
			if string(typeOf(value)) == "direct" {
				return true
			}
		}
	}
	p.Extra = append(p.Extra, canon.Member{Name: name, Value: value})
	return true
}

func textOf(raw []byte) (canon.Text, bool) {
	t, ok := jsonx.Interior(raw)
	return t, ok
}
