package messages

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// tools writes the tools and how free the model is to call them; without a tool there is no choice.
func (w *callWriter) tools() {
	start := len(w.dst)
	w.key("tools")
	w.dst = append(w.dst, '[')
	empty := len(w.dst)
	for i := range w.r.Tools {
		w.tool(&w.r.Tools[i])
	}
	if len(w.dst) == empty {
		w.dst = w.dst[:start]
		if w.own && w.r.Params[canon.ParamMCPServers] != nil {
			w.choice()
		} else if w.r.Choice.Mode == canon.ChoiceRequired || w.r.Choice.Mode == canon.ChoiceNamed {
			w.unsupported(w.r.From.Called("tool_choice"), "there is no tool that can be chosen")
		}
		return
	}
	w.dst = append(w.dst, ']')
	w.choice()
}

func (w *callWriter) tool(t *canon.Tool) {
	switch {
	case t.Kind == canon.HostedTool && (w.own || w.o.Policy.HostedTools == "pass"):
		w.next()
		w.dst = append(w.dst, t.Raw...)
		return
	case t.Kind == canon.HostedTool:
		w.lose(t.Path+"."+string(t.Type), canon.NoEquivalent)
		return
	case t.Kind == canon.CustomTool:
		w.unsupported(t.Path, "the Messages API has no tools that are called with free text")
		return
	case t.Namespace != nil:
		w.unsupported(t.Path, "the Messages API has no namespaces of tools")
		return
	}
	w.next()
	w.dst = append(w.dst, '{')
	w.text("name", t.Name)
	if len(t.Description) > 0 || w.own && t.Description != nil {
		w.text("description", t.Description)
	}
	if jsonx.Truthy(t.Parameters) || w.own && t.Parameters != nil {
		w.raw("input_schema", t.Parameters)
	} else { // it must be there, and be of an object
		w.raw("input_schema", []byte(`{"type":"object","properties":{}}`))
	}
	if string(t.Strict) == "true" || w.own {
		w.raw("strict", t.Strict)
	}
	w.raw("cache_control", t.Cache)
	w.extra(t.Extra, t.Path)
	w.dst = append(w.dst, '}')
}

// choice: calls side by side are forbidden inside of the choice; that nothing may be called at all says so too.
func (w *callWriter) choice() {
	c := &w.r.Choice
	switch {
	case c.Raw != nil && w.own:
		w.raw("tool_choice", c.Raw)
		return
	case c.Raw != nil, c.Allowed != nil:
		w.unsupported(w.r.From.Called("tool_choice"), "the Messages API does not know this choice")
		return
	case c.Custom, c.Namespace != nil:
		w.unsupported(w.r.From.Called("tool_choice"), "the Messages API does not know this kind of tool")
		return
	}
	alone := string(c.Parallel) == "false"
	kind := ""
	switch c.Mode {
	case canon.ChoiceAuto:
		kind = "auto"
	case canon.ChoiceNone:
		kind, alone = "none", false
	case canon.ChoiceRequired:
		kind = "any"
	case canon.ChoiceNamed:
		kind = "tool"
	default:
		if !alone {
			return
		}
		kind = "auto"
	}
	w.key("tool_choice")
	w.dst = append(w.dst, '{')
	w.text("type", canon.Text(kind))
	if c.Mode == canon.ChoiceNamed {
		name := w.chosen(c)
		if name == nil {
			w.unsupported(w.r.From.Called("tool_choice"), "the Messages API does not know this tool")
		}
		w.text("name", name)
	}
	if alone {
		w.raw("disable_parallel_tool_use", []byte("true"))
	}
	w.dst = append(w.dst, '}')
}

// chosen is the name of the tool that is chosen; a hosted one is told by its type.
func (w *callWriter) chosen(c *canon.Choice) canon.Text {
	if c.Hosted == nil {
		return c.Name
	}
	for i := range w.r.Tools {
		if t := &w.r.Tools[i]; t.Kind == canon.HostedTool && string(t.Type) == string(c.Hosted) {
			return t.Name
		}
	}
	return nil
}
