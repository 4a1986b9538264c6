package gemini

import (
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/fold"
)

// openCall is a call of the model that may be answered.
type openCall struct {
	id, name canon.Text
	made     bool // the client gave it no id
	answered bool
}

// system reads systemInstruction, a content of texts or, as SDKs take it, a text.
func (in *callReader) system(raw []byte) {
	const path = "systemInstruction"
	if raw == nil {
		return
	}
	m := canon.Message{Role: canon.System, Path: path}
	if jsonx.KindOf(raw) == jsonx.KindString {
		m.Parts = []canon.Part{{Type: canon.TextPart, Text: in.text(raw, path), Path: path}}
		in.r.Messages = append(in.r.Messages, m)
		return
	}
	if in.of(jsonx.KindObject, raw, path) == nil {
		return
	}
	_, parts := in.members(raw, &m)
	i := 0
	for it := jsonx.Array(parts); it.Next() && in.bad == nil; i++ {
		p := in.part(it.Value(), canon.At(path+".parts", i))
		if p.Type != canon.TextPart {
			in.fail(p.Path, "must be a text")
		}
		m.Parts = append(m.Parts, p.Part)
	}
	if len(m.Parts) > 0 || m.Extra != nil {
		in.r.Messages = append(in.r.Messages, m)
	}
}

// members reads a content: its role and its parts, a list. What nobody knows goes to m.
func (in *callReader) members(raw []byte, m *canon.Message) (role string, parts []byte) {
	for it := jsonx.Object(raw); it.Next(); {
		value := it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch string(camel(it.Key())) {
		case "role":
			role = in.word(value, m.Path+".role")
		case "parts":
			parts = in.of(jsonx.KindArray, value, m.Path+".parts")
		default:
			m.Extra = append(m.Extra, canon.Member{Name: fold.Name(it.Key()), Value: value, Path: m.Path})
		}
	}
	return role, parts
}

func (in *callReader) contents(raw []byte) {
	if raw == nil {
		in.fail("contents", "is missing")
		return
	}
	in.of(jsonx.KindArray, raw, "contents")
	i := 0
	for it := jsonx.Array(raw); it.Next() && in.bad == nil; i++ {
		m := canon.Message{Path: canon.At("contents", i)}
		if in.of(jsonx.KindObject, it.Value(), m.Path) == nil {
			return
		}
		role, parts := in.members(it.Value(), &m)
		switch role {
		case "model":
			in.model(parts, m, i)
		case "user", "", "function":
			in.user(parts, m)
		default:
			in.fail(m.Path+".role", "must be user or model")
		}
	}
	if i == 0 {
		in.fail("contents", "is missing")
	}
}

// user reads a turn of the user. The results in it become messages of their own, in front of the rest.
func (in *callReader) user(parts []byte, m canon.Message) {
	m.Role = canon.User
	first := len(in.r.Messages)
	i := 0
	for it := jsonx.Array(parts); it.Next() && in.bad == nil; i++ {
		p := in.part(it.Value(), canon.At(m.Path+".parts", i))
		switch p.Type {
		case 0:
			continue
		case canon.ResultPart:
			in.answer(&p)
			in.r.Messages = append(in.r.Messages, canon.Message{Role: canon.ToolRole, Parts: []canon.Part{p.Part}, Path: m.Path})
			continue
		case canon.CallPart:
			in.fail(p.Path+".functionCall", "has no place in a content of this role")
		}
		m.Parts = append(m.Parts, p.Part)
	}
	if len(m.Parts) > 0 || len(in.r.Messages) == first {
		in.r.Messages = append(in.r.Messages, m)
	} else {
		in.r.Messages[len(in.r.Messages)-1].Extra = m.Extra
	}
	if len(m.Parts) > 0 {
		in.calls = in.calls[:0]
	}
}

// answer finds the call that a result is of: by its id, else the first of its name that has no answer. Google's own API gives ids to some calls
// only, and many clients send none back.
func (in *callReader) answer(p *part) {
	r := &p.Result
	var of *openCall
	for i := range in.calls {
		c := &in.calls[i]
		if c.answered {
			continue
		}
		if r.CallID != nil && string(fold.Name(c.id)) == string(fold.Name(r.CallID)) {
			of = c
			break
		}
		if (r.CallID == nil || c.made) && of == nil && string(fold.Name(c.name)) == string(fold.Name(p.name)) {
			of = c
		}
	}
	switch {
	case of != nil:
		r.CallID, of.answered = of.id, true
	case r.CallID == nil:
		in.fail(p.Path+".functionResponse", "answers no call in front of it")
	}
}

// model reads a turn of the model. Contents of the model behind each other are one turn: SDKs keep the chunks of a stream so. Texts that follow
// each other are one, too.
func (in *callReader) model(parts []byte, m canon.Message, content int) {
	m.Role = canon.Assistant
	if n := len(in.r.Messages); n > 0 && in.r.Messages[n-1].Role == canon.Assistant {
		last := &in.r.Messages[n-1]
		last.Extra = append(last.Extra, m.Extra...)
	} else {
		in.calls = in.calls[:0]
		in.r.Messages = append(in.r.Messages, m)
	}
	to := &in.r.Messages[len(in.r.Messages)-1]
	i := 0
	for it := jsonx.Array(parts); it.Next() && in.bad == nil; i++ {
		p := in.part(it.Value(), canon.At(m.Path+".parts", i))
		if p.Type == canon.ResultPart {
			in.fail(p.Path+".functionResponse", "has no place in a content of this role")
		}
		if p.Type == canon.CallPart {
			c := openCall{id: p.Call.ID, name: p.Call.Name}
			if c.id == nil {
				c.id, c.made = in.madeID(content, i), true
				p.Call.ID = c.id
			}
			in.calls = append(in.calls, c)
		}
		in.say(to, &p)
	}
}

// madeID is the id of a call that has none: the same each time that the conversation is sent.
func (in *callReader) madeID(content, part int) canon.Text {
	return in.make(func(dst []byte) []byte {
		dst = strconv.AppendInt(append(dst, "call_"...), int64(content), 10)
		return strconv.AppendInt(append(dst, '_'), int64(part), 10)
	})
}

// say adds a part to a turn of the model. A signature is that of the reasoning in front of the part, which may be all that is left of it.
func (in *callReader) say(m *canon.Message, p *part) {
	var last *canon.Part
	if n := len(m.Parts); n > 0 {
		last = &m.Parts[n-1]
	}
	if p.thought {
		p.Type = canon.ReasoningPart
		if last != nil && last.Type == canon.ReasoningPart && last.Signature == nil && p.Extra == nil {
			last.Text = in.joined(last.Text, p.Text)
		} else if len(p.Text) > 0 || p.signature != nil || p.Extra != nil {
			m.Parts = append(m.Parts, p.Part)
			last = &m.Parts[len(m.Parts)-1]
		} else {
			return
		}
		if p.signature != nil {
			last.Signature, last.SignedBy = p.signature, canon.Gemini
		}
		return
	}
	if p.signature != nil {
		if last == nil || last.Type != canon.ReasoningPart || last.Signature != nil {
			m.Parts = append(m.Parts, canon.Part{Type: canon.ReasoningPart, Path: p.Path})
			last = &m.Parts[len(m.Parts)-1]
		}
		last.Signature, last.SignedBy = p.signature, canon.Gemini
	}
	switch {
	case p.Type == 0, p.Type == canon.TextPart && len(p.Text) == 0 && p.Extra == nil:
	case p.Type == canon.TextPart && last != nil && last.Type == canon.TextPart && p.Extra == nil:
		last.Text = in.joined(last.Text, p.Text)
	default:
		m.Parts = append(m.Parts, p.Part)
	}
}

// joined is a text that goes on with another. Where the first one is the last that was made it grows in place.
func (in *callReader) joined(a, b canon.Text) canon.Text {
	if n := len(in.made); len(a) > 0 && n >= len(a) && &in.made[n-len(a)] == &a[0] {
		in.made = append(in.made, b...)
		return in.made[n-len(a) : len(in.made) : len(in.made)]
	}
	return in.make(func(dst []byte) []byte { return append(append(dst, a...), b...) })
}
