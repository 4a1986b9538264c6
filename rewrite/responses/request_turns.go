package responses

import (
	"strconv"
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// conversation writes instructions and input.
func (w *callWriter) conversation() {
	messages := w.req.Messages
	lead := w.leading()
	w.instructions(messages[:lead])
	messages = messages[lead:]
	if len(messages) == 1 && w.own && messages[0].Path == "input" && messages[0].Plain && len(messages[0].Parts) == 1 {
		w.text("input", messages[0].Parts[0].Text)
		return
	}
	w.open("input", '[')
	for i := range messages {
		w.message(&messages[i])
	}
	w.shut(']')
}

// leading is how many messages become instructions: what was instructions, and of another dialect the system messages in front, unless
// nothing would be left.
func (w *callWriter) leading() int {
	messages := w.req.Messages
	if w.own {
		if len(messages) > 0 && messages[0].Path == "instructions" && messages[0].Role == canon.System {
			return 1
		}
		return 0
	}
	n := 0
	for n < len(messages) && messages[n].Role == canon.System && onlyText(messages[n].Parts) {
		n++
	}
	if n == len(messages) {
		return 0
	}
	return n
}

func onlyText(parts []canon.Part) bool {
	for i := range parts {
		if parts[i].Type != canon.TextPart {
			return false
		}
	}
	return true
}

// instructions are the texts of messages with an empty line between them. The blocks of Messages' system stand in a line each.
func (w *callWriter) instructions(messages []canon.Message) {
	var all canon.Text
	for i := range messages {
		m := &messages[i]
		w.known(m)
		between := `\n\n`
		for k := range m.Parts {
			p := &m.Parts[k]
			w.marks(p)
			if len(p.Text) == 0 {
				continue
			}
			if all == nil {
				all = p.Text[:len(p.Text):len(p.Text)]
			} else {
				all = append(append(all, between...), p.Text...)
			}
			if between = ""; w.req.From == canon.Messages {
				between = `\n`
			}
		}
	}
	w.text("instructions", all)
}

// known notes what a message has that no item has.
func (w *callWriter) known(m *canon.Message) {
	if m.Name != nil && !w.own {
		w.lose(m.Path+".name", canon.NoEquivalent)
	}
	if !w.own {
		w.extra(m.Extra, m.Path)
	}
}

// marks notes what a part has besides its text that is lost where it becomes part of something else.
func (w *callWriter) marks(p *canon.Part) {
	if p.Cache != nil {
		w.lose(p.Path+".cache_control", canon.NoEquivalent)
	}
	if len(p.Cites) > 0 {
		w.lose(p.Path+"."+w.citeWord(), canon.NoEquivalent)
	}
	for _, e := range p.Extra {
		w.lose(inside(e.In(p.Path), string(jsonx.Unquoted(e.Name))), canon.NotKnown)
	}
}

func (w *callWriter) citeWord() string {
	if w.req.From == canon.Messages {
		return "citations"
	}
	return "annotations"
}

func (w *callWriter) message(m *canon.Message) {
	switch m.Role {
	case canon.System:
		w.turn(m, `"system"`)
	case canon.Developer:
		w.turn(m, `"developer"`)
	case canon.User:
		w.turn(m, `"user"`)
	case canon.Assistant:
		w.assistant(m)
	case canon.ToolRole:
		w.known(m)
		for i := range m.Parts {
			w.result(&m.Parts[i])
		}
	}
}

// turn writes a message of somebody else than the model: {"type":"message","id":…,"role":…,"content":…}. An item that is none stands in
// a message of its own.
func (w *callWriter) turn(m *canon.Message, role string) {
	if w.own && isAside(m) {
		w.kept(&m.Parts[0])
		return
	}
	start := len(w.dst)
	w.open("", '{')
	w.word("type", `"message"`)
	if len(m.Parts) > 0 && w.own && len(m.Parts[0].ItemID) > 0 {
		w.text("id", m.Parts[0].ItemID)
	}
	w.word("role", role)
	if w.own {
		w.text("name", m.Name)
	}
	if m.Plain && len(m.Parts) == 1 && m.Parts[0].Type == canon.TextPart {
		w.text("content", m.Parts[0].Text)
		w.marksOfOthers(&m.Parts[0])
	} else {
		w.open("content", '[')
		before := len(w.dst)
		for i := range m.Parts {
			w.part(&m.Parts[i], "input_text")
		}
		if len(w.dst) == before && len(m.Parts) > 0 {
			w.dst = w.dst[:start] // all of it is lost
			w.known(m)
			return
		}
		w.shut(']')
	}
	w.known(m)
	if w.own {
		w.extra(m.Extra, m.Path)
	}
	w.shut('}')
}

func (w *callWriter) marksOfOthers(p *canon.Part) {
	if !w.own {
		w.marks(p)
	}
}

// assistant writes what the model said: reasoning, messages and calls, in order. Texts that were in one item are in one again.
func (w *callWriter) assistant(m *canon.Message) {
	w.known(m)
	if len(m.Parts) == 0 && w.own {
		w.open("", '{')
		w.dst = append(w.dst, `"type":"message","role":"assistant","content":[]}`...)
	}
	for i := 0; i < len(m.Parts); {
		p := &m.Parts[i]
		n := 1
		switch {
		case p.Type == canon.ReasoningPart:
			w.thought(p)
		case p.Type == canon.CallPart:
			w.call(p)
		case p.Type == canon.ResultPart:
			w.result(p)
		case !content(p):
			w.kept(p)
		default:
			for n < len(m.Parts)-i && content(&m.Parts[i+n]) && (!w.own || itemPath(m.Parts[i+n].Path) == itemPath(p.Path)) {
				n++
			}
			w.said(m.Parts[i : i+n])
		}
		i += n
	}
}

// content tells whether a part of what the model said is inside of a message.
func content(p *canon.Part) bool {
	switch p.Type {
	case canon.TextPart, canon.RefusalPart, canon.ImagePart, canon.AudioPart, canon.VideoPart, canon.FilePart:
		return true
	case canon.UnknownPart:
		return itemPath(p.Path) != p.Path
	}
	return false
}

// itemPath is the path of the item that a part is in: "input[3]" of "input[3].content[0]".
func itemPath(path string) string {
	item, _, _ := strings.Cut(path, ".")
	return item
}

// said writes a message of the model. A single text is written as a string, which every server takes without an id.
func (w *callWriter) said(parts []canon.Part) {
	first := &parts[0]
	start := len(w.dst)
	w.open("", '{')
	w.word("type", `"message"`)
	if w.own && len(first.ItemID) > 0 {
		w.text("id", first.ItemID)
		if !hasMember(parts, "status") {
			w.word("status", `"completed"`)
		}
	}
	w.word("role", `"assistant"`)
	if len(parts) == 1 && first.Type == canon.TextPart && (!w.own || jsonx.KindOf(first.Raw) == jsonx.KindString) {
		w.text("content", first.Text)
		w.marksOfOthers(first)
	} else {
		w.open("content", '[')
		before := len(w.dst)
		for i := range parts {
			w.part(&parts[i], "output_text")
		}
		if len(w.dst) == before {
			w.dst = w.dst[:start]
			return
		}
		w.shut(']')
	}
	if w.own {
		for i := range parts {
			for _, e := range parts[i].Extra {
				if !ofPart(e) {
					w.member(e.Name, e.Value)
				}
			}
		}
	}
	w.shut('}')
}

func hasMember(parts []canon.Part, name string) bool {
	for i := range parts {
		for _, e := range parts[i].Extra {
			if string(jsonx.Unquoted(e.Name)) == name && !ofPart(e) {
				return true
			}
		}
	}
	return false
}

// ofPart tells whether an unknown member is one of the part itself; the others in its Extra are those of the item that it is in, whose path they have.
func ofPart(e canon.Member) bool { return e.Path == "" }

// mint is an id for an item that must have one.
func (w *callWriter) mint(prefix string) string {
	w.minted++
	return prefix + "_" + w.id + "_" + strconv.Itoa(w.minted-1)
}
