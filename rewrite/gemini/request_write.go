package gemini

import (
	"bytes"
	"slices"
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

// AppendCall writes a request that was read from this dialect: the same but for the spelling of names, where the signature of reasoning stands,
// and texts of the model that follow each other. One of another dialect is refused, as no upstream is spoken to in this one.
func (gemini) AppendCall(dst []byte, r *canon.Request, o dialect.Options) ([]byte, error) {
	if r.From != canon.Gemini {
		return nil, canon.Unsupported("", "the Gemini API is spoken to clients only")
	}
	w := callWriter{dst: append(slices.Grow(dst, len(r.Body)+256), '{'), r: r}
	if r.Model != nil {
		w.text("model", append(canon.Text(modelPrefix), r.Model...))
	}
	w.conversation()
	w.tools()
	w.choice()
	w.config()
	w.extra("")
	return append(w.dst, '}'), nil
}

// callWriter writes one request.
type callWriter struct {
	dst []byte
	r   *canon.Request
}

func (w *callWriter) key(name string) {
	w.dst = append(append(append(comma(w.dst), '"'), name...), '"', ':')
}

func (w *callWriter) raw(name string, value []byte) {
	if value != nil {
		w.key(name)
		w.dst = append(w.dst, value...)
	}
}

func (w *callWriter) text(name string, text canon.Text) {
	w.key(name)
	w.dst = append(append(append(w.dst, '"'), text...), '"')
}

func (w *callWriter) open(name string, bracket byte) {
	w.key(name)
	w.dst = append(w.dst, bracket)
}

// shut closes what open has opened; empty: it may be so, else it goes again.
func (w *callWriter) shut(bracket byte, from int, empty bool) {
	if last := w.dst[len(w.dst)-1]; !empty && (last == '{' || last == '[') {
		w.dst = w.dst[:from]
		return
	}
	w.dst = append(w.dst, bracket)
}

func (w *callWriter) members(list []canon.Member) {
	for i := range list {
		w.raw(string(list[i].Name), list[i].Value)
	}
}

// extra writes the members of the request that nobody knows and that were in the object of this path.
func (w *callWriter) extra(path string) {
	for _, m := range w.r.Extra {
		if m.Path == path {
			w.raw(string(m.Name), m.Value)
		}
	}
}

// conversation writes the messages; those of one content go into one again.
func (w *callWriter) conversation() {
	ms := w.r.Messages
	if len(ms) > 0 && ms[0].Role == canon.System {
		w.open("systemInstruction", '{')
		w.content(ms[:1])
		ms = ms[1:]
	}
	w.open("contents", '[')
	for len(ms) > 0 {
		n := 1
		for n < len(ms) && ms[n].Path == ms[0].Path {
			n++
		}
		w.dst = append(comma(w.dst), '{')
		role := "user"
		if ms[0].Role == canon.Assistant {
			role = "model"
		}
		w.text("role", canon.Text(role))
		w.content(ms[:n])
		ms = ms[n:]
	}
	w.dst = append(w.dst, ']')
}

func (w *callWriter) content(ms []canon.Message) {
	w.open("parts", '[')
	var seal canon.Text
	for i := range ms {
		for j := range ms[i].Parts {
			seal = w.part(&ms[i].Parts[j], seal)
		}
	}
	if seal != nil {
		w.dst = append(comma(w.dst), '{')
		w.text("text", nil)
		w.text("thoughtSignature", appendSignature(nil, seal))
		w.dst = append(w.dst, '}')
	}
	w.dst = append(w.dst, ']')
	for i := range ms {
		w.members(ms[i].Extra)
	}
	w.dst = append(w.dst, '}')
}

// part writes a part, and on it the signature of the reasoning in front; it returns the signature that the next one has to have.
func (w *callWriter) part(p *canon.Part, seal canon.Text) canon.Text {
	if p.Type == canon.ReasoningPart {
		if seal != nil { // of reasoning that no part follows
			w.dst = append(comma(w.dst), '{')
			w.text("text", nil)
			w.text("thoughtSignature", appendSignature(nil, seal))
			w.dst = append(w.dst, '}')
		}
		if len(p.Text) > 0 || p.Extra != nil {
			w.dst = append(comma(w.dst), '{')
			w.text("text", p.Text)
			w.raw("thought", []byte("true"))
			w.members(p.Extra)
			w.dst = append(w.dst, '}')
		}
		return p.Signature
	}
	w.dst = append(comma(w.dst), '{')
	var beside []canon.Member
	switch p.Type {
	case canon.TextPart:
		w.text("text", p.Text)
		beside = p.Extra
	case canon.CallPart:
		w.open("functionCall", '{')
		w.text("id", p.Call.ID)
		w.text("name", p.Call.Name)
		w.key("args")
		w.dst = jsonx.AppendUnquoted(w.dst, p.Call.Arguments)
		for _, m := range p.Extra {
			if strings.HasSuffix(m.Path, ".functionCall") {
				w.raw(string(m.Name), m.Value)
			} else {
				beside = append(beside, m)
			}
		}
		w.dst = append(w.dst, '}')
	default:
		for it := jsonx.Object(p.Raw); it.Next(); {
			if string(camel(it.Key())) != "thoughtSignature" {
				w.raw(string(it.Key()), it.Value())
			}
		}
	}
	w.members(beside)
	if seal != nil {
		w.text("thoughtSignature", appendSignature(nil, seal))
	}
	w.dst = append(w.dst, '}')
	return nil
}

// tools writes an element for each that the request had.
func (w *callWriter) tools() {
	tools := w.r.Tools
	if len(tools) == 0 {
		return
	}
	element := func(t *canon.Tool) string {
		path, _, _ := strings.Cut(t.Path, ".")
		return path
	}
	w.open("tools", '[')
	for len(tools) > 0 {
		n := 1
		for n < len(tools) && element(&tools[n]) == element(&tools[0]) {
			n++
		}
		w.dst = append(comma(w.dst), '{')
		functions := false
		for i := range tools[:n] {
			if t := &tools[i]; t.Kind == canon.HostedTool {
				w.raw(string(t.Type), t.Raw)
			}
			functions = functions || tools[i].Kind == canon.FunctionTool
		}
		if functions {
			w.open("functionDeclarations", '[')
			for i := range tools[:n] {
				if tools[i].Kind == canon.FunctionTool {
					w.declaration(&tools[i])
				}
			}
			w.dst = append(w.dst, ']')
		}
		w.dst = append(w.dst, '}')
		tools = tools[n:]
	}
	w.dst = append(w.dst, ']')
}

func (w *callWriter) declaration(t *canon.Tool) {
	w.dst = append(comma(w.dst), '{')
	w.text("name", t.Name)
	if t.Description != nil {
		w.text("description", t.Description)
	}
	w.raw("parametersJsonSchema", t.Parameters)
	w.members(t.Extra)
	w.dst = append(w.dst, '}')
}

func (w *callWriter) choice() {
	c := &w.r.Choice
	start := len(w.dst)
	w.open("toolConfig", '{')
	inner := len(w.dst)
	w.open("functionCallingConfig", '{')
	mode := ""
	switch c.Mode {
	case canon.ChoiceAuto:
		mode = "AUTO"
	case canon.ChoiceNone:
		mode = "NONE"
	case canon.ChoiceRequired, canon.ChoiceNamed:
		mode = "ANY"
	}
	if mode != "" {
		w.text("mode", canon.Text(mode))
	}
	if c.Allowed != nil || c.Mode == canon.ChoiceNamed {
		w.open("allowedFunctionNames", '[')
		if c.Mode == canon.ChoiceNamed {
			w.dst = append(append(append(w.dst, '"'), c.Name...), '"')
		}
		for _, ref := range c.Allowed {
			w.dst = append(append(append(comma(w.dst), '"'), ref.Name...), '"')
		}
		w.dst = append(w.dst, ']')
	}
	w.extra("toolConfig.functionCallingConfig")
	w.shut('}', inner, false)
	w.extra("toolConfig")
	w.shut('}', start, false)
}

func (w *callWriter) config() {
	const path = "generationConfig"
	r := w.r
	start := len(w.dst)
	w.open(path, '{')
	for param := range canon.NumParams {
		if name, ok := strings.CutPrefix(canon.Gemini.Called(param.String()), path+"."); ok {
			w.raw(name, r.Params[param])
		}
	}
	if len(r.Stop) > 0 {
		w.open("stopSequences", '[')
		for _, stop := range r.Stop {
			w.dst = append(append(append(comma(w.dst), '"'), stop...), '"')
		}
		w.dst = append(w.dst, ']')
	}
	if r.Format.Kind != 0 {
		w.text("responseMimeType", canon.Text("application/json"))
		w.raw("responseJsonSchema", r.Format.Schema)
	}
	w.thinking()
	w.extra(path)
	w.shut('}', start, false)
}

func (w *callWriter) thinking() {
	t := &w.r.Thinking
	start := len(w.dst)
	w.open("thinkingConfig", '{')
	if !w.r.Show.Unthought {
		w.raw("includeThoughts", []byte("true"))
	}
	if t.Mode == canon.ThinkingOff {
		w.raw("thinkingBudget", []byte("0"))
	}
	w.raw("thinkingBudget", t.Budget)
	if t.Effort != nil {
		w.text("thinkingLevel", bytes.ToUpper(fold.Name(t.Effort)))
	}
	w.extra("generationConfig.thinkingConfig")
	w.shut('}', start, false)
}
