package responses

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// message reads {"role":…,"content":"text" or [parts]}, the role "tool" and the tool_calls of Chat included, which data sets bring
// (dialects.md 1.3.2).
func (r *callReader) message(m *members, path string) error {
	role, err := m.needed(path, "role")
	if err != nil {
		return err
	}
	switch string(jsonx.Unquoted(role)) {
	case "user":
		return r.turn(m, canon.User, path)
	case "system":
		return r.turn(m, canon.System, path)
	case "developer":
		return r.turn(m, canon.Developer, path)
	case "assistant":
		return r.said(m, path)
	case "tool":
		return r.chatResult(m, path)
	}
	return canon.Invalid(path+".role", "must be user, system, developer or assistant")
}

func (r *callReader) turn(m *members, role canon.Role, path string) error {
	id, err := m.text(path, "id")
	if err != nil {
		return err
	}
	content := m.take("content")
	if content == nil {
		return canon.Invalid(path+".content", "is missing")
	}
	turn := canon.Message{Role: role, Path: path}
	if turn.Parts, turn.Plain, err = r.content(nil, content, path+".content", id); err != nil {
		return err
	}
	if turn.Name, err = m.text(path, "name"); err != nil {
		return err
	}
	turn.Extra = m.rest()
	r.req.Messages = append(r.req.Messages, turn)
	return nil
}

// said reads a message of the model. Members that nobody knows go to its first part, as the message may become one with its neighbours.
func (r *callReader) said(m *members, path string) error {
	turn := r.assistant(path)
	first := len(turn.Parts)
	id, err := m.text(path, "id")
	if err != nil {
		return err
	}
	for _, name := range []string{"reasoning_content", "reasoning"} {
		text, err := m.text(path, name)
		if err != nil {
			return err
		}
		if text != nil && len(turn.Parts) == first {
			p := r.add(nil, inside(path, name))
			p.Type, p.Text = canon.ReasoningPart, text
		}
	}
	if content := m.take("content"); content != nil {
		if turn.Parts, _, err = r.content(turn.Parts, content, path+".content", id); err != nil {
			return err
		}
	}
	refusal, err := m.text(path, "refusal")
	if err != nil {
		return err
	}
	if refusal != nil {
		p := r.add(nil, path+".refusal")
		p.Type, p.Text, p.ItemID = canon.RefusalPart, refusal, id
	}
	if err := r.chatCalls(m, path); err != nil {
		return err
	}
	rest := m.rest()
	if first < len(turn.Parts) {
		p := &turn.Parts[first]
		for i := range rest {
			rest[i].Path = path
		}
		p.Extra = append(p.Extra, rest...)
		return nil
	}
	for _, e := range rest {
		r.losses.Add(inside(path, string(jsonx.Unquoted(e.Name))), canon.NotKnown)
	}
	return nil
}

// chatCalls reads [{"id":…,"type":"function","function":{"name":…,"arguments":…}}], and "custom" with "input" in the same way.
func (r *callReader) chatCalls(top *members, path string) error {
	list, err := top.takeOf(jsonx.KindArray, path, "tool_calls")
	if err != nil {
		return err
	}
	for i, it := 0, jsonx.Array(list); it.Next(); i++ {
		p := r.add(nil, canon.At(path+".tool_calls", i))
		p.Type = canon.CallPart
		outer := r.levels.part.read(it.Value())
		if p.Call.ID, err = outer.needed(p.Path, "id"); err != nil {
			return err
		}
		outer.take("type") // told by the member that is there
		holder, text := "function", "arguments"
		if p.Call.Custom = outer.has("custom"); p.Call.Custom {
			holder, text = "custom", "input"
		}
		raw, err := outer.takeOf(jsonx.KindObject, p.Path, holder)
		if err != nil {
			return err
		}
		m := r.levels.inner.read(raw)
		if p.Call.Name, err = m.needed(inside(p.Path, holder), "name"); err != nil {
			return err
		}
		if p.Call.Arguments, err = m.text(inside(p.Path, holder), text); err != nil {
			return err
		}
		if p.Call.Arguments == nil {
			p.Call.Arguments = canon.Text{}
		}
		outer.take("index") // of a stream that was put together
		p.Extra = outer.rest()
		for _, e := range m.rest() {
			e.Path = inside(p.Path, holder)
			p.Extra = append(p.Extra, e)
		}
	}
	return nil
}

// chatResult reads {"role":"tool","tool_call_id":…,"content":…}.
func (r *callReader) chatResult(m *members, path string) (err error) {
	p := r.answer(nil, path)
	if p.Result.CallID, err = m.needed(path, "tool_call_id"); err != nil {
		return err
	}
	return r.answered(p, m, path, "content")
}
