package chat

import "rolltap/rewrite/canon"

// message writes a message that came from Chat.
func (w *callWriter) message(m *canon.Message) {
	w.element()
	w.write(`{"role":"`)
	w.write(roleWord(m.Role))
	w.write(`"`)
	w.textMember("name", m.Name)
	parts, plain := m.Parts, m.Plain
	var result *canon.Part
	if m.Role == canon.ToolRole && len(parts) == 1 && parts[0].Type == canon.ResultPart {
		result = &parts[0]
		parts, plain = result.Result.Parts, result.Result.Plain
		w.textMember("tool_call_id", result.Result.CallID)
	}
	w.member("content")
	calls, said := w.sameContent(parts, plain)
	if m.Role == canon.Assistant {
		w.reasoning(m)
		for i := range parts {
			if p := &parts[i]; p.Type == canon.RefusalPart && p.Raw == nil {
				w.textMember("refusal", p.Text)
			}
		}
		if calls {
			w.calls(m)
		}
	}
	if plain && said != nil {
		w.sameMarks(said)
	}
	if result != nil {
		w.rawMember("cache_control", result.Cache)
	}
	w.extra(m.Extra, m.Path)
	w.write("}")
}

// sameContent writes what belongs into the content. It reports whether there are calls, and the text that a plain content is.
func (w *callWriter) sameContent(parts []canon.Part, plain bool) (calls bool, said *canon.Part) {
	n := 0
	for i := range parts {
		switch p := &parts[i]; {
		case p.Type == canon.CallPart, p.Type == canon.HostedPart:
			calls = true
		case inContent(p):
			if said == nil && p.Type == canon.TextPart {
				said = p
			}
			n++
		}
	}
	switch {
	case n == 0 && calls && !plain:
		w.write("null")
		return calls, said
	case n == 0:
		w.write(`""`)
		return calls, said
	case plain && n == 1 && said != nil:
		w.text(said.Text)
		return calls, said
	}
	w.write("[")
	for i := range parts {
		if p := &parts[i]; inContent(p) {
			w.element()
			w.samePart(p)
		}
	}
	w.write("]")
	return calls, nil
}

// inContent tells the parts of a content list from what Chat keeps beside it.
func inContent(p *canon.Part) bool {
	switch p.Type {
	case canon.TextPart, canon.ImagePart, canon.AudioPart, canon.VideoPart, canon.FilePart, canon.UnknownPart:
		return true
	case canon.RefusalPart:
		return p.Raw != nil
	}
	return false
}

func (w *callWriter) samePart(p *canon.Part) {
	switch p.Type {
	case canon.TextPart:
		w.write(`{"type":"text","text":`)
	case canon.RefusalPart:
		w.write(`{"type":"refusal","refusal":`)
	case canon.UnknownPart:
		w.dst = append(w.dst, p.Raw...)
		return
	default:
		w.media(p)
		return
	}
	w.text(p.Text)
	w.sameMarks(p)
	w.write("}")
}

// sameMarks writes what stands beside a text.
func (w *callWriter) sameMarks(p *canon.Part) {
	if p.Cites != nil {
		w.member("annotations")
		w.write("[")
		for _, c := range p.Cites {
			w.element()
			w.dst = append(w.dst, c...)
		}
		w.write("]")
	}
	w.rawMember("cache_control", p.Cache)
	w.extra(p.Extra, p.Path)
}

func roleWord(r canon.Role) string {
	switch r {
	case canon.System:
		return "system"
	case canon.Developer:
		return "developer"
	case canon.User:
		return "user"
	case canon.Assistant:
		return "assistant"
	}
	return "tool"
}
