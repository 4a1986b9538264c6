package trajectory

import (
	"slices"
	"strings"

	"rolltap/capture"
	"rolltap/internal/jsonx"
)

// messages writes items as messages of Chat.
type messages struct {
	out  *out
	some bool // there is one
	tell func(reason, detail string)

	role    string // of the run in progress
	pending []Item
	front   bool // nothing but the system's words was there so far
}

func (m *messages) begin(role string) {
	if m.some {
		m.out.buf = append(m.out.buf, ',')
	}
	m.some = true
	m.out.buf = append(m.out.buf, `{"role":"`...)
	m.out.buf = append(append(m.out.buf, role...), '"')
}

func (m *messages) member(name, value string) {
	m.out.buf = append(append(append(m.out.buf, `,"`...), name...), `":`...)
	m.out.buf = capture.AppendText(m.out.buf, value)
}

// element takes what an element of a request says. Answers in it are context: those that stand in a row are one message, as are the
// system's words in front.
func (m *messages) element(e element) {
	for i, it := range e.items(nil) {
		if it.Kind == Strange {
			m.tell(LeftUnknown, it.Text)
			continue
		}
		role := roleOf(it)
		joins := role == m.role && role != "tool" && (i > 0 || role == "assistant" || role == "system" && m.front)
		if !joins {
			m.flush()
			m.front = m.front && role == "system"
		}
		m.role = role
		m.pending = append(m.pending, it)
	}
}

// flush writes the run in progress.
func (m *messages) flush() {
	if len(m.pending) > 0 {
		m.run(m.role, m.pending)
	}
	m.role, m.pending = "", m.pending[:0]
}

func roleOf(it Item) string {
	switch {
	case it.Kind == Returned && it.Hosted:
		return "assistant"
	case it.Kind == Returned:
		return "tool"
	case it.Role == "system", it.Role == "assistant":
		return it.Role
	}
	return "user"
}

func (m *messages) run(role string, items []Item) {
	switch role {
	case "assistant":
		if m.assistant(items, true) {
			m.tell(LeftUnanswered, "")
		}
	case "tool":
		for range items[0].Files {
			m.tell(LeftAttachment, "in the result of a tool")
		}
		m.begin(role)
		m.member("tool_call_id", items[0].ID)
		m.member("content", items[0].Text)
		m.out.buf = append(m.out.buf, '}')
	default:
		m.content(role, items)
	}
}

// content appends a message of the user or the system: a text, or parts where there are images.
func (m *messages) content(role string, items []Item) {
	var texts []string
	var parts []byte
	images := false
	part := func(text string) {
		texts = append(texts, text)
		parts = append(parts, `,{"type":"text","text":`...)
		parts = append(capture.AppendText(parts, text), '}')
	}
	for _, it := range items {
		switch {
		case it.Kind == Attached:
			url := imageURL(it.Raw)
			if url == nil || role != "user" {
				m.tell(LeftAttachment, it.Text)
				part("[" + it.Text + "]")
				continue
			}
			images = true
			parts = append(parts, `,{"type":"image_url","image_url":{"url":`...)
			parts = append(append(parts, url...), "}}"...)
		case role == "system" && strings.HasPrefix(it.Text, "x-anthropic-billing-header"):
			m.tell(LeftBilling, "")
		default:
			part(it.Text)
		}
	}
	if len(parts) == 0 {
		return
	}
	m.begin(role)
	if images {
		m.out.buf = append(append(append(m.out.buf, `,"content":[`...), parts[1:]...), "]}"...)
		return
	}
	m.member("content", strings.Join(texts, "\n\n"))
	m.out.buf = append(m.out.buf, '}')
}

// imageURL is the URL of an image of any dialect as a JSON string, nil when there is none.
func imageURL(block []byte) []byte {
	for _, url := range [][]byte{jsonx.Get(jsonx.Get(block, "image_url"), "url"), jsonx.Get(block, "image_url"), jsonx.Get(jsonx.Get(block, "source"), "url")} {
		if jsonx.KindOf(url) == jsonx.KindString {
			return url
		}
	}
	source := jsonx.Get(block, "source")
	if text(block, "type") != "image" || text(source, "type") != "base64" {
		return nil
	}
	data, ok := jsonx.Interior(jsonx.Get(source, "data"))
	media, known := jsonx.Interior(jsonx.Get(source, "media_type"))
	if !ok || !known {
		return nil
	}
	url := append([]byte(`"data:`), media...)
	url = append(append(url, ";base64,"...), data...)
	return append(url, '"')
}

// ImageURL is the URL of an attached image, a data URL where its bytes are in the record; "" when it is none, or longer
// than so many bytes.
func (it Item) ImageURL(rests *capture.Rests, most int) string {
	if capture.AtMost(it.Raw) > int64(most) {
		return ""
	}
	s, _ := capture.Text(imageURL(it.Raw))
	s, _ = rests.Whole(s, most)
	return s
}

// inChat reports whether a message of the assistant has a place for an item.
func (it Item) inChat() bool {
	switch it.Kind {
	case Thought:
		return !it.Hosted && !it.Hidden && it.Text != ""
	case Said:
		return !it.Hosted && (!it.Bad || it.Text != "")
	}
	return !it.Hosted && it.Kind == Called
}

// assistant appends an answer, unless nothing is left of it; context is not to be learned.
func (m *messages) assistant(items []Item, context bool) bool {
	var texts, thoughts []string
	var calls []byte
	refusal := ""
	for _, it := range items {
		switch {
		case it.Hosted:
			m.tell(LeftHosted, it.Name)
		case it.Kind == Thought && it.Hidden:
			m.tell(LeftHidden, "")
		case it.Kind == Thought && it.Text == "":
		case it.Kind == Thought:
			thoughts = append(thoughts, it.Text)
		case it.Kind == Called:
			calls = append(calls, `,{"id":`...)
			calls = capture.AppendText(calls, it.ID)
			calls = append(calls, `,"type":"function","function":{"name":`...)
			calls = capture.AppendText(calls, it.Name)
			calls = append(calls, `,"arguments":`...)
			calls = append(capture.AppendText(calls, it.Text), "}}"...)
		case it.Kind == Said && it.Bad:
			refusal += it.Text
		case it.Kind == Said:
			texts = append(texts, it.Text)
		case it.Kind == Attached:
			m.tell(LeftAttachment, it.Text)
		default:
			m.tell(LeftUnknown, it.Text)
		}
	}
	if !slices.ContainsFunc(items, Item.inChat) {
		return false
	}
	m.begin("assistant")
	if thoughts != nil {
		m.member("reasoning_content", strings.Join(thoughts, "\n"))
	}
	if texts == nil {
		m.out.buf = append(m.out.buf, `,"content":null`...)
	} else {
		m.member("content", strings.Join(texts, ""))
	}
	if refusal != "" {
		m.member("refusal", refusal)
	}
	if calls != nil {
		m.out.buf = append(append(append(m.out.buf, `,"tool_calls":[`...), calls[1:]...), ']')
	}
	if context {
		m.out.buf = append(m.out.buf, `,"weight":0`...)
	}
	m.out.buf = append(m.out.buf, '}')
	return true
}

// appendTools appends the functions that a request offers, in Chat's form; nil when it offers none. Other tools are told by their types.
func appendTools(dst []byte, dialect string, tools []byte, left func(detail string)) []byte {
	for it := jsonx.Array(tools); it.Next(); {
		t := it.Value()
		kind := text(t, "type")
		f := t
		switch {
		case dialect == "gemini":
			for m := jsonx.Object(t); m.Next(); {
				if key := string(m.Key()); key != "functionDeclarations" && key != "function_declarations" {
					left(key + " ")
				} else if inner := appendTools(nil, "", m.Value(), left); inner != nil {
					dst = append(appendElement(dst), inner[1:len(inner)-1]...)
				}
			}
			continue
		case dialect == "chat" && kind == "function":
			dst = appendElement(dst)
			dst = append(dst, t...)
			continue
		case dialect == "responses" && kind == "namespace":
			inner := appendTools(nil, dialect, jsonx.Get(t, "tools"), left)
			if inner != nil {
				dst = append(appendElement(dst), inner[1:len(inner)-1]...)
			}
			continue
		case dialect == "responses" && kind != "function", dialect == "messages" && kind != "" && kind != "custom", dialect == "chat":
			left(kind + " " + text(t, "name"))
			continue
		}
		dst = appendElement(dst)
		dst = append(dst, `{"type":"function","function":{"name":`...)
		dst = capture.AppendText(dst, text(f, "name"))
		if d := jsonx.Get(f, "description"); jsonx.KindOf(d) == jsonx.KindString {
			dst = append(append(dst, `,"description":`...), d...)
		}
		for _, name := range []string{"parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema"} {
			if p := jsonx.Get(f, name); jsonx.KindOf(p) == jsonx.KindObject {
				dst = append(append(dst, `,"parameters":`...), p...)
			}
		}
		if s := jsonx.Get(f, "strict"); jsonx.KindOf(s) == jsonx.KindBool {
			dst = append(append(dst, `,"strict":`...), s...)
		}
		dst = append(dst, "}}"...)
	}
	if dst != nil {
		dst = append(dst, ']')
	}
	return dst
}

func appendElement(dst []byte) []byte {
	if dst == nil {
		return append(dst, '[')
	}
	return append(dst, ',')
}
