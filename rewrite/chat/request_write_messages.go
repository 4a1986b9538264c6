package chat

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// leading writes the system and developer messages that the conversation begins with as one, and returns what is behind them.
func (w *callWriter) leading(ms []canon.Message) []canon.Message {
	n, role := 0, "developer"
	if w.o.Policy.DeveloperRole != "keep" {
		role = "system"
	}
	for ; n < len(ms) && (ms[n].Role == canon.System || ms[n].Role == canon.Developer); n++ {
		if ms[n].Role == canon.System {
			role = "system"
		}
	}
	mark := len(w.dst)
	w.element()
	w.write(`{"role":"` + role + `","content":"`)
	start := len(w.dst)
	for i := range ms[:n] {
		w.join(&ms[i], start)
	}
	if len(w.dst) == start {
		w.dst = w.dst[:mark]
	} else {
		w.write(`"}`)
	}
	return ms[n:]
}

// join appends the texts of a system message to those that are there since start. Chat has no other parts in one.
func (w *callWriter) join(m *canon.Message, start int) {
	between := `\n\n`
	for i := range m.Parts {
		p := &m.Parts[i]
		w.marks(p)
		switch p.Type {
		case canon.TextPart, canon.RefusalPart:
		default:
			w.loseKind(p)
			continue
		}
		if len(p.Text) == 0 {
			continue
		}
		if len(w.dst) > start {
			w.write(between)
		}
		w.dst = append(w.dst, p.Text...)
		if between = ""; w.r.From == canon.Messages || w.r.From == canon.Gemini {
			between = `\n`
		}
	}
	w.extra(m.Extra, m.Path)
}

// conversation writes the turns. Between two of the assistant the results come first, then what the results could not hold, then the rest.
func (w *callWriter) conversation(ms []canon.Message) {
	for len(ms) > 0 {
		n := 0
		for n < len(ms) && ms[n].Role != canon.Assistant {
			n++
		}
		for i := range ms[:n] {
			if ms[i].Role == canon.ToolRole {
				w.results(&ms[i])
			}
		}
		w.movedMedia()
		for i := range ms[:n] {
			if ms[i].Role != canon.ToolRole {
				w.turn(&ms[i])
			}
		}
		if n < len(ms) {
			w.assistant(&ms[n])
			n++
		}
		ms = ms[n:]
	}
}

// turn writes a message of the user, or a late one of the system; none where all that it held is lost.
func (w *callWriter) turn(m *canon.Message) {
	mark := len(w.dst)
	w.element()
	if m.Role == canon.User {
		w.pieces = w.pieces[:0]
		w.flatten(m.Parts, inMessage)
		w.write(`{"role":"user"`)
		w.textMember("name", m.Name)
		w.member("content")
		w.content()
		w.extra(m.Extra, m.Path)
		if w.write("}"); len(w.pieces) == 0 && len(m.Parts) > 0 {
			w.dst = w.dst[:mark]
		}
		return
	}
	role := "system"
	if m.Role == canon.Developer && w.o.Policy.DeveloperRole == "keep" {
		role = "developer"
	}
	w.write(`{"role":"` + role + `","content":"`)
	start := len(w.dst)
	w.join(m, start)
	if len(w.dst) == start {
		w.dst = w.dst[:mark]
		return
	}
	w.write(`"}`)
}

// results writes a message for each result.
func (w *callWriter) results(m *canon.Message) {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Type != canon.ResultPart {
			w.loseKind(p)
			continue
		}
		w.element()
		w.write(`{"role":"tool","tool_call_id":`)
		w.text(p.Result.CallID)
		w.member("content")
		w.pieces = w.pieces[:0]
		w.flatten(p.Result.Parts, inResult)
		if p.Result.Failed {
			w.markFailed()
		}
		w.content()
		w.write("}")
		w.marks(p)
	}
	w.extra(m.Extra, m.Path)
}

// movedMedia writes the user message with what the results just written could not hold.
func (w *callWriter) movedMedia() {
	if len(w.moved) == 0 {
		return
	}
	w.element()
	w.write(`{"role":"user","content":[`)
	for i, p := range w.moved {
		w.element()
		w.write(`{"type":"text","text":"` + movedName(p, i) + `"}`)
		w.element()
		w.media(p)
	}
	w.write("]}")
	w.moved = w.moved[:0]
}

// assistant writes all that the model said in a turn: the texts one behind the other, and the calls. Order between the kinds is not
// Chat's to say. A turn of which nothing is left is none.
func (w *callWriter) assistant(m *canon.Message) {
	var text, refusal, calls bool
	left := len(m.Parts) == 0
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Type {
		case canon.TextPart:
			text, left = text || len(p.Text) > 0, true
		case canon.ReasoningPart:
			left = true
		case canon.RefusalPart:
			refusal, left = true, true
		case canon.CallPart:
			calls, left = true, true
		}
	}
	mark := len(w.dst)
	w.element()
	w.write(`{"role":"assistant"`)
	w.textMember("name", m.Name)
	w.member("content")
	switch {
	case text:
		w.concat(m, canon.TextPart)
	case refusal: // templates know nothing of refusals, and the model shall read its own
		w.concat(m, canon.RefusalPart)
	case calls:
		w.write("null")
	default:
		w.write(`""`)
	}
	w.reasoning(m)
	if text && refusal {
		w.member("refusal")
		w.concat(m, canon.RefusalPart)
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Type {
		case canon.TextPart, canon.RefusalPart, canon.ReasoningPart:
		case canon.CallPart:
		default:
			w.loseKind(p)
		}
		w.marks(p)
	}
	if calls {
		w.calls(m)
	}
	w.extra(m.Extra, m.Path)
	if w.write("}"); !left {
		w.dst = w.dst[:mark]
	}
}

// concat writes the texts of one kind as one string.
func (w *callWriter) concat(m *canon.Message, kind canon.PartType) {
	w.write(`"`)
	for i := range m.Parts {
		if m.Parts[i].Type == kind {
			w.dst = append(w.dst, m.Parts[i].Text...)
		}
	}
	w.write(`"`)
}

// reasoning writes what the model thought under the names that the policy says, several thoughts on lines of their own (dialects.md 4.4).
func (w *callWriter) reasoning(m *canon.Message) {
	mark := len(w.dst)
	w.write(`"`)
	start := len(w.dst)
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Type != canon.ReasoningPart {
			continue
		}
		t := p.Text
		if len(t) == 0 {
			t = p.Summary
		} else if len(p.Summary) > 0 && !bytes.Equal(p.Summary, t) { // a client may have it under both names
			w.lose(p.Path, "summary", canon.NoEquivalent)
		}
		if len(t) == 0 {
			continue
		}
		if w.o.Policy.ReasoningReplay == "none" {
			w.lose(p.Path, "reasoning", canon.ByPolicy)
			continue
		}
		if len(w.dst) > start {
			w.write(`\n`)
		}
		w.dst = append(w.dst, t...)
	}
	if len(w.dst) == start {
		w.dst = w.dst[:mark]
		return
	}
	w.write(`"`)
	w.scratch = append(w.scratch[:0], w.dst[mark:]...)
	w.dst = w.dst[:mark]
	if policy := w.o.Policy.ReasoningReplay; policy == "both" || policy == "reasoning" {
		w.rawMember("reasoning", w.scratch)
	}
	if policy := w.o.Policy.ReasoningReplay; policy == "both" || policy == "reasoning_content" {
		w.rawMember("reasoning_content", w.scratch)
	}
}

func (w *callWriter) calls(m *canon.Message) {
	w.member("tool_calls")
	w.write("[")
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Type {
		case canon.CallPart:
			w.element()
			w.call(p)
		case canon.HostedPart:
			if w.same {
				w.element()
				w.dst = append(w.dst, p.Raw...)
			}
		}
	}
	w.write("]")
}

func (w *callWriter) call(p *canon.Part) {
	c := &p.Call
	w.write("{")
	w.textMember("id", c.ID)
	if c.Custom {
		w.write(`,"type":"custom","custom":{"name":`)
		w.text(c.Name)
		w.member("input")
		w.text(c.Arguments)
	} else {
		w.write(`,"type":"function","function":{"name":`)
		w.text(c.Name)
		w.member("arguments")
		w.arguments(p)
	}
	w.write("}")
	if c.Namespace != nil {
		w.lose(p.Path, "namespace", canon.NoEquivalent)
	}
	if w.same {
		w.extra(p.Extra, p.Path)
	}
	w.write("}")
}

// arguments writes what engines can parse: they render earlier calls from the parsed object, and refuse a conversation that holds
// anything else.
func (w *callWriter) arguments(p *canon.Part) {
	t := p.Call.Arguments
	if w.same {
		w.text(t)
		return
	}
	w.scratch = jsonx.AppendUnquoted(w.scratch[:0], t)
	switch {
	case len(bytes.Trim(w.scratch, " \t\r\n")) == 0:
		w.write(`"{}"`)
	case jsonx.ValidObject(w.scratch):
		w.text(t)
	default:
		// The text is the inside of a string already, so that it needs escaping once to be inside of one that is inside of another.
		w.write(`"{\"_raw\": \"`)
		w.dst = jsonx.AppendEscaped(w.dst, t)
		w.write(`\"}"`)
		w.lose(p.Path, w.r.From.Called("arguments"), canon.ByPolicy)
	}
}
