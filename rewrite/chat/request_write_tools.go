package chat

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// tools writes tools, tool_choice and parallel_tool_calls. Without tools none of them goes up (dialects.md 1.3.4), and a client that
// wants one called anyway is told so.
func (w *callWriter) tools() {
	r := w.r
	if len(r.Tools) == 0 {
		if r.Choice.Mode == canon.ChoiceRequired || r.Choice.Mode == canon.ChoiceNamed {
			w.fail(canon.Invalid(w.r.From.Called("tool_choice"), "there is no tool to choose"))
		}
		return
	}
	w.member("tools")
	w.write("[")
	for i := range r.Tools {
		w.element()
		w.tool(&r.Tools[i])
	}
	w.write("]")
	w.choice()
	w.rawMember("parallel_tool_calls", r.Choice.Parallel)
}

func (w *callWriter) tool(t *canon.Tool) {
	switch {
	case t.Kind != canon.HostedTool:
	case w.same || w.o.Policy.HostedTools == "pass":
		w.dst = append(w.dst, t.Raw...)
		return
	default:
		w.fail(canon.Unsupported(t.Path, "a tool that its provider runs cannot be run here"))
		return
	}
	if t.Namespace != nil {
		w.lose(t.Path, "namespace", canon.NoEquivalent)
	}
	kind := "function"
	if t.Kind == canon.CustomTool {
		kind = "custom"
	}
	w.write(`{"type":"` + kind + `","` + kind + `":{`)
	w.textMember("name", t.Name)
	w.textMember("description", t.Description)
	if t.Kind == canon.CustomTool {
		if t.Grammar != nil {
			w.member("format")
			w.grammar(t.Grammar)
		}
	} else {
		switch {
		case t.Parameters != nil:
			w.rawMember("parameters", t.Parameters)
		case !w.same:
			w.rawMember("parameters", canon.Raw(`{"type":"object","properties":{}}`))
		}
		w.strict(t)
	}
	if !w.same {
		w.write("}}")
		w.extra(t.Extra, t.Path)
		if t.Cache != nil {
			w.lose(t.Path, "cache_control", canon.NoEquivalent)
		}
		return
	}
	// Each member goes back to where it was.
	var outside []canon.Member
	for _, m := range t.Extra {
		if m.Path == "" && jsonx.Get(t.Raw, kind) != nil {
			outside = append(outside, m)
			continue
		}
		w.rawMember(string(m.Name), m.Value)
	}
	w.write("}")
	w.rawMember("cache_control", t.Cache)
	w.extra(outside, t.Path)
	w.write("}")
}

// strict: false is what Chat does when nothing is said, so that only a true one can be lost.
func (w *callWriter) strict(t *canon.Tool) {
	if w.same || w.o.Policy.StrictTools != "drop" {
		w.rawMember("strict", t.Strict)
	} else if string(t.Strict) == "true" {
		w.lose(t.Path, "strict", canon.ByPolicy)
	}
}

// grammar writes Responses' flat {"type":"grammar",syntax, definition} as Chat nests it.
func (w *callWriter) grammar(v canon.Raw) {
	if kind, _ := jsonx.Text(jsonx.Get(v, "type")); kind != "grammar" || jsonx.Get(v, "grammar") != nil {
		w.dst = append(w.dst, v...)
		return
	}
	w.write(`{"type":"grammar","grammar":{`)
	for it := jsonx.Object(v); it.Next(); {
		if string(jsonx.Unquoted(it.Key())) != "type" {
			w.rawMember(string(it.Key()), it.Value())
		}
	}
	w.write("}}")
}

func (w *callWriter) choice() {
	c := &w.r.Choice
	mode := ""
	switch {
	case c.Raw != nil && w.same:
		w.rawMember("tool_choice", c.Raw)
		return
	case c.Mode == canon.ChoiceNamed && c.Name == nil:
		w.fail(canon.Unsupported(w.r.From.Called("tool_choice"), "a tool that its provider runs cannot be chosen here"))
		return
	case c.Mode == canon.ChoiceNamed:
		kind := "function"
		if c.Custom {
			kind = "custom"
		}
		w.member("tool_choice")
		w.ref(kind, c.Name)
		return
	case c.Mode == canon.ChoiceAuto:
		mode = "auto"
	case c.Mode == canon.ChoiceNone:
		mode = "none"
	case c.Mode == canon.ChoiceRequired:
		mode = "required"
	default:
		return
	}
	if c.Raw != nil {
		w.lose("", w.r.From.Called("tool_choice"), canon.NotKnown)
	}
	w.member("tool_choice")
	if c.Allowed == nil {
		w.text(canon.Text(mode))
		return
	}
	w.write(`{"type":"allowed_tools","allowed_tools":{"mode":"` + mode + `","tools":[`)
	for i := range c.Allowed {
		w.element()
		w.ref(string(c.Allowed[i].Type), c.Allowed[i].Name)
	}
	w.write("]}}")
}

// ref writes {"type":kind,kind:{"name"}}.
func (w *callWriter) ref(kind string, name canon.Text) {
	if name == nil {
		w.write(`{"type":"` + kind + `"}`)
		return
	}
	w.write(`{"type":"` + kind + `","` + kind + `":{"name":`)
	w.text(name)
	w.write("}}")
}
