package responses

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// thought writes a reasoning item. Reasoning whose maker is somebody else goes as text; its seal means nothing here.
func (w *callWriter) thought(p *canon.Part) {
	sealed := len(p.Signature) > 0 && p.SignedBy == canon.Responses
	if len(p.Signature) > 0 && !sealed {
		w.lose(p.Path+"."+p.SignedBy.Called("encrypted_content"), canon.Foreign)
	}
	if !w.own && !sealed && len(p.Text) == 0 && len(p.Summary) == 0 {
		w.marks(p)
		return
	}
	w.open("", '{')
	w.word("type", `"reasoning"`)
	switch {
	case len(p.ItemID) > 0 && w.own:
		w.text("id", p.ItemID)
	case !w.own && !sealed:
		w.string("id", w.mint("rs"))
	}
	w.texts("summary", "summary_text", p, p.Summary, summaryGap)
	if p.Text != nil {
		w.texts("content", "reasoning_text", p, p.Text, "")
	}
	if sealed {
		w.text("encrypted_content", p.Signature)
	}
	if w.own {
		for i, e := range p.Extra {
			if e.Path == "" { // others are in the parts of summary and content
				w.extra(p.Extra[i:i+1], p.Path)
			}
		}
	} else {
		w.marks(p)
	}
	w.shut('}')
}

// texts writes a list of parts that are a text each: the one that came, as long as it says the same.
func (w *callWriter) texts(name, kind string, p *canon.Part, text canon.Text, gap string) {
	if raw := jsonx.Get(p.Raw, name); w.own && jsonx.KindOf(raw) == jsonx.KindArray && bytes.Equal(joinTexts(raw, gap), text) {
		w.raw(name, raw)
		return
	}
	w.open(name, '[')
	if text != nil {
		w.open("", '{')
		w.string("type", kind)
		w.text("text", text)
		w.shut('}')
	}
	w.shut(']')
}

// call writes a function_call or a custom_tool_call item.
func (w *callWriter) call(p *canon.Part) {
	kind, text := "function_call", "arguments"
	if p.Call.Custom {
		kind, text = "custom_tool_call", "input"
	}
	w.open("", '{')
	w.string("type", kind)
	if w.own && len(p.ItemID) > 0 {
		w.text("id", p.ItemID)
	}
	w.text("call_id", p.Call.ID)
	w.text("name", p.Call.Name)
	if len(p.Call.Namespace) > 0 {
		w.text("namespace", p.Call.Namespace)
	}
	w.name(text)
	if p.Call.Custom || w.own {
		w.quote(p.Call.Arguments)
	} else {
		w.arguments(p)
	}
	if w.own {
		w.extra(p.Extra, p.Path)
	} else {
		w.marks(p)
	}
	w.shut('}')
}

// arguments writes the arguments of a call that was made elsewhere. Servers read them as JSON: what is no object, as the call was cut, is
// wrapped into one.
func (w *callWriter) arguments(p *canon.Part) {
	text := bytes.TrimSpace(jsonx.Unquoted(p.Call.Arguments))
	switch {
	case len(text) == 0:
		w.quote(canon.Text("{}"))
	case text[0] == '{' && jsonx.Valid(text):
		w.quote(p.Call.Arguments)
	default:
		w.lose(p.Path+".arguments", canon.ByPolicy)
		w.dst = append(w.dst, `"{\"_raw\": \"`...)
		w.dst = jsonx.AppendEscaped(w.dst, p.Call.Arguments)
		w.dst = append(w.dst, `\"}"`...)
	}
}

// failedMark stands in front of the output of a call that failed, as there is no member to say it.
const failedMark = "Error: "

// result writes a function_call_output or a custom_tool_call_output item.
func (w *callWriter) result(p *canon.Part) {
	r := &p.Result
	kind := "function_call_output"
	if r.Custom {
		kind = "custom_tool_call_output"
	}
	w.open("", '{')
	w.string("type", kind)
	if w.own && len(p.ItemID) > 0 {
		w.text("id", p.ItemID)
	}
	w.text("call_id", r.CallID)
	mark := ""
	if r.Failed {
		mark = failedMark
	}
	switch {
	case len(r.Parts) == 0:
		w.word("output", `"`+mark+`"`)
	case len(r.Parts) == 1 && r.Parts[0].Type == canon.TextPart && (r.Plain || !w.own):
		w.name("output")
		w.dst = append(append(append(append(w.dst, '"'), mark...), r.Parts[0].Text...), '"')
		w.marksOfOthers(&r.Parts[0])
	default:
		w.open("output", '[')
		if mark != "" {
			w.plainPart("input_text", canon.Text(mark))
		}
		for i := range r.Parts {
			w.part(&r.Parts[i], "input_text")
		}
		w.shut(']')
	}
	if w.own {
		w.extra(p.Extra, p.Path)
	} else {
		w.marks(p)
	}
	w.shut('}')
}

// kept writes an item that is not understood, as it came; from another dialect it is lost.
func (w *callWriter) kept(p *canon.Part) {
	if w.own && p.Raw != nil {
		w.comma()
		w.dst = append(w.dst, p.Raw...)
		return
	}
	reason := canon.NoEquivalent
	switch p.Type {
	case canon.UnknownPart:
		reason = canon.NotKnown
	case canon.ReferencePart:
		reason = canon.Foreign
	}
	kind, ok := jsonx.Text(jsonx.Get(p.Raw, "type"))
	switch {
	case p.Type == canon.RedactedPart:
		kind, reason = "redacted_thinking", canon.Foreign
	case p.Type == canon.ReferencePart:
		kind = "item_reference"
	case !ok:
		kind = "part"
	}
	w.lose(inside(p.Path, kind), reason)
}
