package chat

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

// ReadAnswer reads a chat.completion: its first choice, in the order reasoning, content, refusal, calls, as the decoder tells a stream. One
// difference: the logprobs are those of all tokens, for nothing in a whole answer tells which of them are of the text.
func (chat) ReadAnswer(body []byte, o dialect.Options) (*canon.Answer, error) {
	var top [6][]byte
	jsonx.GetAll(body, []string{"id", "model", "created", "choices", "usage", "prompt_token_ids"}, top[:])
	a := &canon.Answer{ID: readText(top[0]), Model: readText(top[1])}
	if _, ok := jsonx.Int(top[2]); ok {
		a.Created = top[2]
	}
	for it := jsonx.Object(body); it.Next(); {
		if name := fold.Name(it.Key()); !isHarmlessTop(name) {
			loseMember(o.Losses, "", name, it.Value())
		}
	}
	first, err := firstChoice(top[3], o.Losses)
	if err != nil {
		return nil, err
	}
	var c [6][]byte
	jsonx.GetAll(first, []string{"message", "finish_reason", "stop_reason", "matched_stop", "logprobs", "token_ids"}, c[:])
	for it := jsonx.Object(first); it.Next(); {
		if name := fold.Name(it.Key()); !isHarmlessInChoice(name) {
			loseMember(o.Losses, "choices[0].", name, it.Value())
		}
	}
	finish, ok := jsonx.Interior(c[1])
	if !ok || len(finish) == 0 {
		return nil, canon.Unreadable("the upstream's answer has no finish reason")
	}
	a.Stop, a.Failed = readStop(finish, c[2], c[3], o.Losses)
	if a.Parts, err = readMessage(c[0], a, o); err != nil {
		return nil, err
	}
	a.Logprobs = textLogprobs(c[4])
	a.Usage = countedUsage(readUsage(top[4]), countIDs(top[5]), countIDs(c[5]))
	dialect.LoseRest(top[4], "usage", countPlace, o.Losses)
	return a, nil
}

func firstChoice(choices []byte, losses *canon.Losses) (first []byte, err error) {
	for it := jsonx.Array(choices); it.Next(); {
		if index := jsonx.Get(it.Value(), "index"); first == nil && !jsonx.Truthy(index) {
			first = it.Value()
		} else {
			losses.Add("choices[1]", canon.NoEquivalent)
		}
	}
	if jsonx.KindOf(first) != jsonx.KindObject {
		return nil, canon.Unreadable("the upstream's answer has no first choice")
	}
	return first, nil
}

// readMessage reads the message of a choice, of whose answer the end is known, into parts.
func readMessage(raw []byte, a *canon.Answer, o dialect.Options) (parts []canon.Part, err error) {
	const at = "choices[0].message."
	s, err := readSaid(raw, func(name, value []byte) { loseMember(o.Losses, at, name, value) })
	if err != nil {
		return nil, err
	}
	tell := func(kind canon.PartType, text canon.Text) {
		if len(text) > 0 {
			parts = append(parts, canon.Part{Type: kind, Text: text})
		}
	}
	for _, text := range []struct {
		kind canon.PartType
		raw  []byte
	}{{canon.ReasoningPart, s.reasoning}, {canon.TextPart, s.content}, {canon.RefusalPart, s.refusal}} {
		switch jsonx.KindOf(text.raw) {
		case jsonx.KindInvalid:
		case jsonx.KindString:
			tell(text.kind, readText(text.raw))
		case jsonx.KindArray:
			if text.kind == canon.TextPart {
				eachPart(text.raw, tell, func(name, value []byte) { loseMember(o.Losses, at+"content.", name, value) })
				continue
			}
			fallthrough
		default:
			return nil, canon.Unreadable("the upstream sent a text that is no string")
		}
	}
	cite(parts, s.annotations, o.Losses)
	for it := jsonx.Array(s.calls); it.Next(); {
		call, err := readToolCall(it.Value(), o.Losses)
		if err != nil {
			return nil, err
		}
		if parts, err = addCall(parts, call, a, o); err != nil {
			return nil, err
		}
	}
	if jsonx.KindOf(s.function) == jsonx.KindObject {
		return addCall(parts, readNamed(s.function, "arguments", "choices[0].message.function_call.", o.Losses), a, o)
	}
	return parts, nil
}

// cite puts annotations to the last text.
func cite(parts []canon.Part, annotations []byte, losses *canon.Losses) {
	if fold.Blank(annotations) {
		return
	}
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i].Type != canon.TextPart {
			continue
		}
		for it := jsonx.Array(annotations); it.Next(); {
			parts[i].Cites = append(parts[i].Cites, it.Value())
		}
		return
	}
	losses.Add("choices[0].message.annotations", canon.NoEquivalent)
}

// readToolCall reads one element of tool_calls: {"id","type","function":{"name","arguments"}} or {"id","type","custom":{"name","input"}}.
func readToolCall(raw []byte, losses *canon.Losses) (canon.Call, error) {
	if jsonx.KindOf(raw) != jsonx.KindObject {
		return canon.Call{}, canon.Unreadable("the upstream sent a tool call that is no object")
	}
	var m [3][]byte
	jsonx.GetAll(raw, []string{"id", "function", "custom"}, m[:])
	var c canon.Call
	if jsonx.KindOf(m[2]) == jsonx.KindObject {
		c = readNamed(m[2], "input", "choices[0].message.tool_calls.custom.", losses)
		c.Custom = true
	} else {
		c = readNamed(m[1], "arguments", "choices[0].message.tool_calls.function.", losses)
	}
	c.ID = readText(m[0])
	for it := jsonx.Object(raw); it.Next(); {
		if name := fold.Name(it.Key()); !isCallMember(name) {
			loseMember(losses, "choices[0].message.tool_calls.", name, it.Value())
		}
	}
	return c, nil
}

// readNamed reads {"name", text}, which stands at the path.
func readNamed(raw []byte, text, at string, losses *canon.Losses) canon.Call {
	for it := jsonx.Object(raw); it.Next(); {
		if name := fold.Name(it.Key()); string(name) != "name" && string(name) != text {
			loseMember(losses, at, name, it.Value())
		}
	}
	return canon.Call{Name: readText(jsonx.Get(raw, "name")), Arguments: argumentsOf(jsonx.Get(raw, text))}
}

// addCall adds a call. One without an id gets one. One without a name cannot be called: it is lost where the answer is cut anyway, or where
// it says nothing at all.
func addCall(parts []canon.Part, c canon.Call, a *canon.Answer, o dialect.Options) ([]canon.Part, error) {
	if len(c.Name) == 0 {
		if a.Failed == nil && !cut(a.Stop) && (len(c.ID) > 0 || !c.Arguments.Blank()) {
			return nil, dialect.Nameless()
		}
		o.Losses.Add("choices[0].message.tool_calls.name", canon.NotKnown)
		return parts, nil
	}
	if len(c.ID) == 0 {
		c.ID = dialect.AppendCallID(nil, o.ID, len(parts))
	}
	return append(parts, canon.Part{Type: canon.CallPart, Call: c}), nil
}

// argumentsOf is the text of a call's arguments. Some send the JSON itself in the place of its text.
func argumentsOf(raw []byte) canon.Text {
	switch jsonx.KindOf(raw) {
	case jsonx.KindString:
		return readText(raw)
	case jsonx.KindInvalid, jsonx.KindNull:
		return nil
	}
	return jsonx.AppendEscaped(nil, raw)
}

func loseMember(losses *canon.Losses, at string, name, value []byte) {
	if !fold.Blank(value) && string(value) != "false" {
		losses.Add(at+dialect.LossName(name), lostWhy(name))
	}
}
