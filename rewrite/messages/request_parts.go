package messages

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// block writes one part of a message of this role, system, user, assistant, or tool for what is inside of a result or a document.
func (w *callWriter) block(p *canon.Part, role string) {
	if w.own && p.Raw != nil && !w.written(p) {
		w.next()
		w.dst = append(w.dst, p.Raw...)
		return
	}
	if role == "system" && p.Type != canon.TextPart && p.Type != canon.RefusalPart && !w.own {
		w.lose(p.Path+nameOf(p.Raw), canon.NoEquivalent)
		return
	}
	switch p.Type {
	case canon.TextPart, canon.RefusalPart:
		if len(p.Text) == 0 && !w.own { // the API refuses empty blocks
			return
		}
		w.begin("text")
		w.text("text", p.Text)
		w.end(p)
	case canon.ReasoningPart:
		w.reasoning(p)
	case canon.RedactedPart:
		if p.SignedBy != canon.Messages {
			w.lose(p.Path+nameOf(p.Raw), canon.Foreign)
			return
		}
		w.begin("redacted_thinking")
		w.text("data", p.Signature)
		w.end(p)
	case canon.CallPart:
		w.call(p)
	case canon.ResultPart:
		w.result(p)
	case canon.ImagePart, canon.FilePart:
		if role == "assistant" && !w.own { // it can say text only
			w.lose(p.Path+nameOf(p.Raw), canon.NoEquivalent)
			return
		}
		w.media(p)
	case canon.AudioPart, canon.VideoPart:
		if role == "assistant" {
			w.lose(p.Path+nameOf(p.Raw), canon.Foreign)
			return
		}
		w.unsupported(p.Path, "the Messages API takes neither sound nor video")
	case canon.ReferencePart:
		w.lose(p.Path+nameOf(p.Raw), canon.Foreign)
	case canon.HostedPart:
		w.lose(p.Path+nameOf(p.Raw), canon.NoEquivalent)
	default:
		w.lose(p.Path+nameOf(p.Raw), canon.NotKnown)
	}
}

// written tells that a part which was read from this dialect is written anew; of the others the block itself is sent: what a provider's
// tool said, what nobody knows, and the two kinds of blocks of which only the text was read.
func (w *callWriter) written(p *canon.Part) bool {
	switch p.Type {
	case canon.HostedPart, canon.UnknownPart:
		return false
	case canon.TextPart:
		name := nameOf(p.Raw)
		return name != ".search_result" && name != ".tool_reference"
	case canon.RedactedPart:
		return p.Signature != nil
	}
	return true
}

func (w *callWriter) begin(kind string) {
	w.next()
	w.dst = append(w.dst, `{"type":"`...)
	w.dst = append(w.dst, kind...)
	w.dst = append(w.dst, '"')
}

// end writes what any block may have.
func (w *callWriter) end(p *canon.Part) {
	if len(p.Cites) > 0 {
		if w.own {
			w.key("citations")
			w.dst = append(w.dst, '[')
			for _, cite := range p.Cites {
				w.next()
				w.dst = append(w.dst, cite...)
			}
			w.dst = append(w.dst, ']')
		} else {
			w.lose(p.Path+".annotations", canon.NoEquivalent)
		}
	}
	w.raw("cache_control", p.Cache)
	w.extra(p.Extra, p.Path)
	w.dst = append(w.dst, '}')
}

// reasoning writes a thinking block. Its signature must be there; where there is none of this dialect it is empty. Nothing is written of
// reasoning that another provider has encrypted.
func (w *callWriter) reasoning(p *canon.Part) {
	signature := p.Signature
	if p.SignedBy != canon.Messages {
		if len(signature) > 0 {
			w.lose(p.Path+"."+p.SignedBy.Called("encrypted_content"), canon.Foreign)
		}
		signature = nil
	}
	text := p.Text
	switch {
	case len(text) == 0:
		text = p.Summary
	case len(p.Summary) > 0:
		w.lose(p.Path+".summary", canon.NoEquivalent)
	}
	if len(text) == 0 && signature == nil && !w.own {
		return
	}
	w.begin("thinking")
	w.text("thinking", text)
	w.text("signature", signature)
	w.end(p)
}

func (w *callWriter) call(p *canon.Part) {
	c := &p.Call
	if c.Namespace != nil {
		w.lose(p.Path+".namespace", canon.NoEquivalent)
	}
	w.begin("tool_use")
	w.callID("id", c.ID)
	w.text("name", c.Name)
	w.key("input")
	w.input(c, p.Path)
	w.end(p)
}

// input writes the arguments as they are. Those that are no object are the one member of one: of a call that was cut _raw, so that the
// conversation can go on (interface.md); of a custom call input, as its tool is bridged.
func (w *callWriter) input(c *canon.Call, path string) {
	if c.Custom {
		w.dst = append(w.dst, `{"input":`...)
		w.quote(c.Arguments)
		w.dst = append(w.dst, '}')
		return
	}
	start := len(w.dst)
	w.dst = jsonx.AppendUnquoted(w.dst, c.Arguments)
	switch input := w.dst[start:]; {
	case jsonx.ValidObject(input):
	case len(bytes.Trim(input, " \t\r\n")) == 0: // many clients write a call without arguments so
		w.dst = append(w.dst[:start], '{', '}')
	default:
		w.dst = append(w.dst[:start], `{"_raw":`...)
		w.quote(c.Arguments)
		w.dst = append(w.dst, '}')
		w.lose(path+".arguments", canon.ByPolicy)
	}
}

// result: a content without blocks is left out.
func (w *callWriter) result(p *canon.Part) {
	r := &p.Result
	w.begin("tool_result")
	w.callID("tool_use_id", r.CallID)
	start := len(w.dst)
	w.key("content")
	if r.Plain && len(r.Parts) == 1 && r.Parts[0].Type == canon.TextPart {
		w.quote(r.Parts[0].Text)
	} else {
		w.dst = append(w.dst, '[')
		empty := len(w.dst)
		for i := range r.Parts {
			w.block(&r.Parts[i], "tool")
		}
		if len(w.dst) == empty {
			w.dst = w.dst[:start]
		} else {
			w.dst = append(w.dst, ']')
		}
	}
	if r.Failed {
		w.raw("is_error", []byte("true"))
	}
	w.end(p)
}

// callID writes an id in the letters that ids may have here.
func (w *callWriter) callID(name string, id canon.Text) {
	w.key(name)
	w.dst = append(w.dst, '"')
	w.dst = appendCallID(w.dst, id)
	w.dst = append(w.dst, '"')
}
