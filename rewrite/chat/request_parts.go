package chat

import (
	"bytes"
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// sayings are the members of a message that Chat keeps flat beside each other.
type sayings struct {
	content, calls, functionCall, reasoning, reasoningContent, refusal, callID, annotations, cache []byte
}

func (in *callReader) messages(v []byte) {
	if jsonx.KindOf(v) != jsonx.KindArray {
		in.fail("messages", "must be a list of messages")
		return
	}
	i := 0
	for it := jsonx.Array(v); it.Next() && in.problem == nil; i++ {
		in.message(it.Value(), i)
	}
}

func (in *callReader) message(v []byte, index int) {
	m := canon.Message{Path: canon.At("messages", index)}
	if jsonx.KindOf(v) != jsonx.KindObject {
		in.fail(m.Path, "must be an object")
		return
	}
	var role []byte
	var said sayings
	for it := jsonx.Object(v); it.Next(); {
		v := it.Value()
		if jsonx.IsNull(v) {
			continue
		}
		switch string(jsonx.Unquoted(it.Key())) {
		case "role":
			role = v
		case "name":
			m.Name = in.text(v, m.Path+".name")
		case "content":
			said.content = v
		case "tool_calls":
			said.calls = v
		case "function_call":
			said.functionCall = v
		case "reasoning":
			said.reasoning = v
		case "reasoning_content":
			said.reasoningContent = v
		case "refusal":
			said.refusal = v
		case "tool_call_id":
			said.callID = v
		case "annotations":
			said.annotations = v
		case "cache_control":
			said.cache = v
		default:
			m.Extra = append(m.Extra, canon.Member{Name: it.Key(), Value: v})
		}
	}
	switch string(in.word(role, m.Path+".role")) {
	case "system":
		m.Role = canon.System
	case "developer":
		m.Role = canon.Developer
	case "user":
		m.Role = canon.User
	case "assistant":
		m.Role = canon.Assistant
		in.assistant(&m, &said, index)
	case "tool":
		m.Role = canon.ToolRole
		id := in.text(said.callID, m.Path+".tool_call_id")
		said.callID = nil
		in.result(&m, &said, id)
	case "function":
		m.Role, m.Name = canon.ToolRole, nil
		if in.legacy == nil {
			in.legacy = legacyID(index)
		}
		in.result(&m, &said, in.legacy)
	default:
		in.fail(m.Path+".role", "must be system, developer, user, assistant, tool or function")
	}
	if m.Role != canon.Assistant && m.Role != canon.ToolRole {
		m.Parts, m.Plain = in.content(said.content, m.Path)
	}
	in.rest(&m, &said)
	in.req.Messages = append(in.req.Messages, m)
}

// rest finds a place for what is left: marks of a plain text are its own, anything else is out of place in this role.
func (in *callReader) rest(m *canon.Message, said *sayings) {
	if m.Plain && len(m.Parts) > 0 {
		for i := range m.Parts {
			if p := &m.Parts[i]; p.Type == canon.TextPart {
				p.Cache, said.cache = said.cache, nil
				p.Cites, said.annotations = cites(said.annotations), nil
				break
			}
		}
	}
	stray := func(name string, v []byte) {
		if v != nil {
			m.Extra = append(m.Extra, canon.Member{Name: canon.Text(name), Value: v})
		}
	}
	if jsonx.Truthy(said.annotations) {
		stray("annotations", said.annotations)
	}
	stray("cache_control", said.cache)
	stray("tool_call_id", said.callID)
	if m.Role != canon.Assistant {
		stray("tool_calls", said.calls)
		stray("function_call", said.functionCall)
		stray("reasoning", said.reasoning)
		stray("reasoning_content", said.reasoningContent)
		stray("refusal", said.refusal)
	}
}

// assistant reads what the model said, in the order in which it does: reasoning, text, refusal, calls. reasoning and reasoning_content are
// synonyms (dialects.md 1.13); where they differ both are kept. An empty text is Plain without a part.
func (in *callReader) assistant(m *canon.Message, said *sayings, index int) {
	m.Parts = make([]canon.Part, 0, 2) // reasoning or text, and a call
	var reasoning []byte
	for _, v := range [][]byte{said.reasoning, said.reasoningContent} {
		if v == nil || reasoning != nil && bytes.Equal(v, reasoning) {
			continue
		}
		if t := in.text(v, m.Path+".reasoning"); len(t) > 0 {
			reasoning = v
			m.Parts = append(m.Parts, canon.Part{Type: canon.ReasoningPart, Text: t, Path: m.Path + ".reasoning"})
		}
	}
	parts, plain := in.content(said.content, m.Path)
	if m.Plain = plain; !plain || len(parts[0].Text) > 0 {
		m.Parts = append(m.Parts, parts...)
	}
	if said.refusal != nil {
		if t := in.text(said.refusal, m.Path+".refusal"); len(t) > 0 {
			m.Parts = append(m.Parts, canon.Part{Type: canon.RefusalPart, Text: t, Path: m.Path + ".refusal"})
		}
	}
	if said.calls != nil {
		if jsonx.KindOf(said.calls) != jsonx.KindArray {
			in.fail(m.Path+".tool_calls", "must be a list of calls")
		}
		i := 0
		for it := jsonx.Array(said.calls); it.Next(); i++ {
			m.Parts = append(m.Parts, in.call(it.Value(), canon.At(m.Path+".tool_calls", i)))
		}
	}
	if v := said.functionCall; v != nil {
		in.legacy = legacyID(index)
		p := canon.Part{Type: canon.CallPart, Raw: v, Path: m.Path + ".function_call"}
		p.Call.ID = in.legacy
		in.callee(&p.Call, v, "arguments", p.Path)
		m.Parts = append(m.Parts, p)
	}
}

// legacyID is the id of the call, or of the result without one, in the message at index.
func legacyID(index int) canon.Text {
	return strconv.AppendInt([]byte("call_function_"), int64(index), 10)
}

// call reads an element of tool_calls. A type that nobody knows is of a tool that the provider runs.
func (in *callReader) call(v []byte, path string) canon.Part {
	p := canon.Part{Type: canon.CallPart, Raw: v, Path: path}
	if jsonx.KindOf(v) != jsonx.KindObject {
		in.fail(path, "must be an object")
		return p
	}
	var kind, id, function, custom []byte
	for it := jsonx.Object(v); it.Next(); {
		v := it.Value()
		if jsonx.IsNull(v) {
			continue
		}
		switch string(jsonx.Unquoted(it.Key())) {
		case "type":
			kind = in.word(v, path+".type")
		case "id":
			id = v
		case "function":
			function = v
		case "custom":
			custom = v
		default:
			p.Extra = append(p.Extra, canon.Member{Name: it.Key(), Value: v})
		}
	}
	switch {
	case string(kind) == "custom":
		p.Call.Custom = true
		p.Call.ID = in.text(id, path+".id")
		in.custom = append(in.custom, p.Call.ID)
		in.callee(&p.Call, custom, "input", path+".custom")
	case string(kind) == "function", kind == nil && function != nil:
		p.Call.ID = in.text(id, path+".id")
		in.callee(&p.Call, function, "arguments", path+".function")
	case kind == nil:
		in.fail(path+".function", "must be an object")
	default:
		return canon.Part{Type: canon.HostedPart, Raw: v, Path: path}
	}
	return p
}

// callee reads name and arguments. Arguments that came as an object are its text.
func (in *callReader) callee(c *canon.Call, v []byte, arguments, path string) {
	if jsonx.KindOf(v) != jsonx.KindObject {
		in.fail(path, "must be an object")
		return
	}
	var name []byte
	for it := jsonx.Object(v); it.Next(); {
		v := it.Value()
		if jsonx.IsNull(v) {
			continue
		}
		switch word := string(jsonx.Unquoted(it.Key())); word {
		case "name":
			name = v
		case arguments:
			if jsonx.KindOf(v) == jsonx.KindObject {
				c.Arguments = jsonx.AppendEscaped(nil, v)
			} else {
				c.Arguments = in.text(v, path+"."+arguments)
			}
		default:
			in.o.Losses.Add(path+"."+word, canon.NotKnown)
		}
	}
	c.Name = in.text(name, path+".name")
}

func (in *callReader) result(m *canon.Message, said *sayings, id canon.Text) {
	p := canon.Part{Type: canon.ResultPart, Path: m.Path, Cache: said.cache}
	said.cache = nil
	p.Result.CallID = id
	p.Result.Parts, p.Result.Plain = in.content(said.content, m.Path)
	for _, custom := range in.custom {
		if bytes.Equal(custom, id) {
			p.Result.Custom = true
		}
	}
	m.Parts = []canon.Part{p}
}

// content reads a string, or a list of parts.
func (in *callReader) content(v []byte, path string) (parts []canon.Part, plain bool) {
	path += ".content"
	switch jsonx.KindOf(v) {
	case jsonx.KindInvalid:
		return nil, false
	case jsonx.KindString:
		return []canon.Part{{Type: canon.TextPart, Text: in.text(v, path), Path: path}}, true
	case jsonx.KindArray:
	default:
		in.fail(path, "must be a string or a list of parts")
		return nil, false
	}
	i := 0
	for it := jsonx.Array(v); it.Next(); i++ {
		parts = append(parts, canon.Part{})
		in.part(&parts[i], it.Value(), canon.At(path, i))
	}
	return parts, false
}
