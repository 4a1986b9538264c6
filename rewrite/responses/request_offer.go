package responses

import (
	"bytes"
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// tools writes the tools; those of one namespace, in one place, stand in it again.
func (w *callWriter) tools() {
	start := len(w.dst)
	w.open("tools", '[')
	before := len(w.dst)
	tools := w.req.Tools
	for i := 0; i < len(tools); {
		n := 1
		for i+n < len(tools) && len(tools[i].Namespace) > 0 && string(tools[i+n].Namespace) == string(tools[i].Namespace) &&
			parentPath(tools[i+n].Path) == parentPath(tools[i].Path) {
			n++
		}
		w.group(tools[i : i+n])
		i += n
	}
	if len(w.dst) == before {
		w.dst = w.dst[:start]
		return
	}
	w.shut(']')
}

func (w *callWriter) group(tools []canon.Tool) {
	first := &tools[0]
	if w.own && w.found(first.Path) {
		w.offered = true
		return
	}
	if len(first.Namespace) == 0 {
		w.tool(first)
		return
	}
	w.open("", '{')
	w.word("type", `"namespace"`)
	w.text("name", first.Namespace)
	described := false
	for _, e := range first.Extra {
		if name, ok := bytes.CutPrefix(e.Name, []byte(ofNamespace)); ok && w.own {
			described = described || string(name) == "description"
			w.member(name, e.Value)
		}
	}
	if !described {
		w.word("description", `""`)
	}
	w.open("tools", '[')
	for i := range tools {
		w.tool(&tools[i])
	}
	w.shut(']')
	w.shut('}')
}

// found tells whether a tool is defined in an item that is written too, as it came.
func (w *callWriter) found(path string) bool {
	if !strings.HasPrefix(path, "input[") {
		return false
	}
	if w.asides == nil {
		w.asides = map[string]bool{}
		for i := range w.req.Messages {
			if m := &w.req.Messages[i]; isAside(m) {
				w.asides[m.Path] = true
			}
		}
	}
	return w.asides[itemPath(path)]
}

// parentPath is the path of what a tool is in: "tools[4]" of "tools[4].tools[0]", "" of "tools[0]".
func parentPath(path string) string {
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)]
}

// tool writes one tool. Here strict must be there; who leaves it out elsewhere means false.
func (w *callWriter) tool(t *canon.Tool) {
	if t.Kind == canon.HostedTool {
		if !w.hosted || t.Raw == nil {
			w.lose(inside(t.Path, string(jsonx.Unquoted(t.Type))), canon.NoEquivalent)
			return
		}
		w.offered = true
		w.comma()
		w.dst = append(w.dst, t.Raw...)
		return
	}
	w.offered = true
	w.open("", '{')
	if t.Kind == canon.CustomTool {
		w.word("type", `"custom"`)
		w.text("name", t.Name)
		w.text("description", t.Description)
		w.grammar(t.Grammar)
	} else {
		w.word("type", `"function"`)
		w.text("name", t.Name)
		w.text("description", t.Description)
		w.raw("parameters", t.Parameters)
		w.raw("strict", t.Strict)
		if t.Parameters == nil && !w.own {
			w.word("parameters", `{"type":"object","properties":{}}`)
		}
		if t.Strict == nil && !w.own {
			w.word("strict", "false")
		}
	}
	if t.Cache != nil && !w.own {
		w.lose(t.Path+".cache_control", canon.NoEquivalent)
	} else {
		w.raw("cache_control", t.Cache)
	}
	for i, e := range t.Extra {
		if !w.own || !bytes.HasPrefix(e.Name, []byte(ofNamespace)) { // those are written already
			w.extra(t.Extra[i:i+1], t.Path)
		}
	}
	w.shut('}')
}

// grammar writes the format of a custom tool, which Chat nests: {"type":"grammar","grammar":{"syntax":…,"definition":…}}.
func (w *callWriter) grammar(format canon.Raw) {
	nested := jsonx.Get(format, "grammar")
	if jsonx.KindOf(nested) != jsonx.KindObject {
		w.raw("format", format)
		return
	}
	w.open("format", '{')
	w.word("type", `"grammar"`)
	for it := jsonx.Object(nested); it.Next(); {
		w.member(it.Key(), it.Value())
	}
	w.shut('}')
}

// choice writes tool_choice and parallel_tool_calls, which there are with tools only.
func (w *callWriter) choice() {
	c := &w.req.Choice
	if !w.offered {
		if c.Mode == canon.ChoiceRequired || c.Mode == canon.ChoiceNamed {
			w.fail(canon.Invalid(w.req.From.Called("tool_choice"), "asks for a tool, but there are none"))
		}
		return
	}
	mode := ""
	switch c.Mode {
	case canon.ChoiceAuto:
		mode = `"auto"`
	case canon.ChoiceNone:
		mode = `"none"`
	case canon.ChoiceRequired:
		mode = `"required"`
	}
	switch {
	case c.Raw != nil && w.own:
		w.raw("tool_choice", c.Raw)
	case c.Raw != nil:
		w.lose(w.req.From.Called("tool_choice"), canon.NotKnown)
	case c.Allowed != nil && c.Mode != canon.ChoiceNone:
		w.allowed(mode)
	case mode != "":
		w.word("tool_choice", mode)
	case c.Mode == canon.ChoiceNamed && c.Name != nil:
		w.open("tool_choice", '{')
		kind := `"function"`
		if c.Custom {
			kind = `"custom"`
		}
		w.word("type", kind)
		w.text("name", c.Name)
		if len(c.Namespace) > 0 {
			w.text("namespace", c.Namespace)
		}
		w.shut('}')
	case c.Mode == canon.ChoiceNamed && w.hosted && c.Hosted != nil:
		w.open("tool_choice", '{')
		w.text("type", c.Hosted)
		w.shut('}')
	case c.Mode == canon.ChoiceNamed:
		w.fail(canon.Unsupported(w.req.From.Called("tool_choice"), "names a tool that the upstream does not have"))
	}
	w.raw("parallel_tool_calls", c.Parallel)
}

func (w *callWriter) allowed(mode string) {
	if mode == "" {
		mode = `"auto"`
	}
	w.open("tool_choice", '{')
	w.word("type", `"allowed_tools"`)
	w.word("mode", mode)
	w.open("tools", '[')
	for i := range w.req.Choice.Allowed {
		ref := &w.req.Choice.Allowed[i]
		w.open("", '{')
		w.text("type", ref.Type)
		w.text("name", ref.Name)
		if len(ref.Namespace) > 0 {
			w.text("namespace", ref.Namespace)
		}
		w.shut('}')
	}
	w.shut(']')
	w.shut('}')
}
