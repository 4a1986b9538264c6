package messages

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/fold"
)

// block reads one content block of a message of this role; a result's role is ToolRole.
func (in *callReader) block(raw []byte, path string, role canon.Role) canon.Part {
	p := canon.Part{Raw: raw, Path: path}
	if in.object(raw, path, "") == nil {
		return p
	}
	start := len(in.fields)
	var kind []byte
	for it := jsonx.Object(raw); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		switch {
		case string(name) == "type":
			kind = in.word(value, path, ".type")
		case !jsonx.IsNull(value):
			in.fields = append(in.fields, canon.Member{Name: name, Value: value})
		}
	}
	fields := in.fields[start:]
	p.Type = blockType(kind)
	switch p.Type {
	case 0:
		in.fail(path+".type", "is missing")
	case canon.TextPart:
		switch string(kind) {
		case "text":
			in.textBlock(&p, fields)
		case "search_result":
			in.searchResult(&p, fields)
		default: // a tool_reference: its JSON text (dialects.md 1.7.3)
			p.Text = in.make(func(dst []byte) []byte { return jsonx.AppendEscaped(dst, raw) })
		}
	case canon.ImagePart:
		in.media(&p, fields)
		in.imageType(&p)
	case canon.FilePart:
		in.media(&p, fields)
	case canon.ReasoningPart, canon.RedactedPart:
		in.reasoningBlock(&p, fields)
	case canon.CallPart:
		in.callBlock(&p, fields)
	case canon.ResultPart:
		in.resultBlock(&p, fields)
	}
	in.fields = in.fields[:start]
	in.place(&p, role)
	return p
}

// place refuses blocks whose role says something else than they do.
func (in *callReader) place(p *canon.Part, role canon.Role) {
	ok := true
	switch p.Type {
	case canon.CallPart, canon.ReasoningPart, canon.RedactedPart:
		ok = role == canon.Assistant
	case canon.ResultPart:
		ok = role == canon.User
	}
	if !ok {
		in.fail(p.Path+".type", "has no place in a message of this role")
	}
}

// beside takes a member that any block may have, or that nobody knows.
func (in *callReader) beside(p *canon.Part, f canon.Member) {
	if string(f.Name) == "cache_control" {
		p.Cache = in.object(f.Value, p.Path, ".cache_control")
		return
	}
	p.Extra = append(p.Extra, f)
}

func (in *callReader) textBlock(p *canon.Part, fields []canon.Member) {
	for _, f := range fields {
		switch string(f.Name) {
		case "text":
			p.Text = in.text(f.Value, p.Path, ".text")
		case "citations":
			if jsonx.KindOf(f.Value) != jsonx.KindArray {
				in.fail(p.Path+".citations", "must be a list")
			}
			for it := jsonx.Array(f.Value); it.Next(); {
				p.Cites = append(p.Cites, it.Value())
			}
		default:
			in.beside(p, f)
		}
	}
	if p.Text == nil {
		in.fail(p.Path+".text", "is missing")
	}
}

// searchResult makes a text of what was found: title, source and texts, a line each. The block itself is in Raw; what its texts have besides is
// Extra, under their path.
//
//	{"type": "search_result", "source", "title", "content": [{"type": "text", "text"}], "citations"}
func (in *callReader) searchResult(p *canon.Part, fields []canon.Member) {
	var title, source, content []byte
	for _, f := range fields {
		switch string(f.Name) {
		case "title":
			title = in.text(f.Value, p.Path, ".title")
		case "source":
			source = in.text(f.Value, p.Path, ".source")
		case "content":
			content = f.Value
			in.besideTexts(p, content)
		default:
			in.beside(p, f)
		}
	}
	p.Text = in.make(func(dst []byte) []byte {
		start := len(dst)
		line := func(text []byte) {
			if len(text) > 0 && len(dst) > start {
				dst = append(dst, '\\', 'n')
			}
			dst = append(dst, text...)
		}
		line(title)
		line(source)
		for it := jsonx.Array(content); it.Next(); {
			text, _ := jsonx.Interior(jsonx.Get(it.Value(), "text"))
			line(text)
		}
		return dst
	})
}

func (in *callReader) besideTexts(p *canon.Part, content []byte) {
	i := 0
	for it := jsonx.Array(content); it.Next(); i++ {
		for m := jsonx.Object(it.Value()); m.Next(); {
			switch name := fold.Name(m.Key()); {
			case string(name) == "type", string(name) == "text", jsonx.IsNull(m.Value()):
			default:
				p.Extra = append(p.Extra, canon.Member{Name: name, Value: m.Value(), Path: at(p.Path, ".content", i)})
			}
		}
	}
}

// reasoningBlock reads {"type": "thinking", "thinking", "signature"} and {"type": "redacted_thinking", "data"}. An empty signature is none:
// clients make one up for what was not signed (harness.md 2.15).
func (in *callReader) reasoningBlock(p *canon.Part, fields []canon.Member) {
	for _, f := range fields {
		switch name := string(f.Name); {
		case name == "thinking" && p.Type == canon.ReasoningPart:
			p.Text = in.text(f.Value, p.Path, ".thinking")
		case name == "signature" && p.Type == canon.ReasoningPart, name == "data" && p.Type == canon.RedactedPart:
			if text := in.text(f.Value, p.Path, "."+name); len(text) > 0 {
				p.Signature, p.SignedBy = text, canon.Messages
			}
		default:
			in.beside(p, f)
		}
	}
	if p.Type == canon.ReasoningPart && p.Text == nil {
		in.fail(p.Path+".thinking", "is missing")
	}
}

// callBlock reads {"type": "tool_use", "id", "name", "input"}. Arguments are the bytes of input, as they are; without one they are {}.
func (in *callReader) callBlock(p *canon.Part, fields []canon.Member) {
	for _, f := range fields {
		switch string(f.Name) {
		case "id":
			p.Call.ID = originalCallID(in.text(f.Value, p.Path, ".id"))
		case "name":
			p.Call.Name = in.text(f.Value, p.Path, ".name")
		case "input":
			p.Call.Arguments = in.make(func(dst []byte) []byte { return jsonx.AppendEscaped(dst, f.Value) })
		default:
			in.beside(p, f)
		}
	}
	if p.Call.Arguments == nil {
		p.Call.Arguments = canon.Text("{}")
	}
	switch {
	case p.Call.ID == nil:
		in.fail(p.Path+".id", "is missing")
	case p.Call.Name == nil:
		in.fail(p.Path+".name", "is missing")
	}
}

// resultBlock reads {"type": "tool_result", "tool_use_id", "content", "is_error"}. A content that is absent or null has no parts.
func (in *callReader) resultBlock(p *canon.Part, fields []canon.Member) {
	for _, f := range fields {
		switch string(f.Name) {
		case "tool_use_id":
			p.Result.CallID = originalCallID(in.text(f.Value, p.Path, ".tool_use_id"))
		case "is_error":
			p.Result.Failed = in.flag(f.Value, p.Path, ".is_error")
		case "content":
			in.resultContent(p, f.Value)
		default:
			in.beside(p, f)
		}
	}
	if p.Result.CallID == nil {
		in.fail(p.Path+".tool_use_id", "is missing")
	}
}

func (in *callReader) resultContent(p *canon.Part, raw []byte) {
	p.Result.Parts, p.Result.Plain = in.nested(raw, p.Path, ".content")
}

// nested reads the content of a result or a document: a string, which is plain, or blocks that hold no blocks.
func (in *callReader) nested(raw []byte, path, member string) (parts []canon.Part, plain bool) {
	switch jsonx.KindOf(raw) {
	case jsonx.KindString:
		text, _ := jsonx.Interior(raw)
		return []canon.Part{{Type: canon.TextPart, Text: text, Path: path + member}}, true
	case jsonx.KindArray:
		start := len(in.parts)
		i := 0
		for it := jsonx.Array(raw); it.Next() && in.bad == nil; i++ {
			in.parts = append(in.parts, in.block(it.Value(), at(path, member, i), canon.ToolRole))
		}
		return in.popParts(start), false
	}
	in.fail(path+member, "must be a string or a list of blocks")
	return nil, false
}
