package messages

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/fold"
)

func (in *callReader) tools(raw []byte) {
	switch jsonx.KindOf(raw) {
	case jsonx.KindArray:
	case jsonx.KindInvalid:
		return
	default:
		in.fail("tools", "must be a list")
		return
	}
	i := 0
	for it := jsonx.Array(raw); it.Next() && in.bad == nil; i++ {
		in.tool(it.Value(), at("tools", "", i))
	}
}

// tool reads a tool of the client's own, {"name", "description", "input_schema", "strict", …}, whose type is absent or custom; or one that the
// provider defines, whose type has a date in it: {"type": "web_search_20250305", "name", …}.
func (in *callReader) tool(raw []byte, path string) {
	if in.object(raw, path, "") == nil {
		return
	}
	t := canon.Tool{Kind: canon.FunctionTool, Raw: raw, Path: path}
	if kind := in.text(jsonx.Get(raw, "type"), path, ".type"); kind != nil && string(fold.Name(kind)) != "custom" {
		t.Kind, t.Type = canon.HostedTool, kind
	}
	hosted := t.Kind == canon.HostedTool
	for it := jsonx.Object(raw); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch word := string(name); {
		case word == "type":
		case word == "name":
			t.Name = in.text(value, path, ".name")
		case word == "cache_control":
			t.Cache = in.object(value, path, ".cache_control")
		case hosted: // its members are its type's; they are in Raw
		case word == "description":
			t.Description = in.text(value, path, ".description")
		case word == "input_schema":
			t.Parameters = in.object(value, path, ".input_schema")
		case word == "strict":
			in.flag(value, path, ".strict")
			t.Strict = value
		default: // defer_loading, input_examples, allowed_callers, eager_input_streaming and what is new
			t.Extra = append(t.Extra, canon.Member{Name: name, Value: value})
		}
	}
	if t.Name == nil && !hosted {
		in.fail(path+".name", "is missing")
	}
	in.r.Tools = append(in.r.Tools, t)
}

// choice reads {"type": "auto" | "any" | "tool" | "none", "name", "disable_parallel_tool_use"}.
func (in *callReader) choice(raw []byte) {
	if raw == nil || in.object(raw, "tool_choice", "") == nil {
		return
	}
	c := &in.r.Choice
	kind := in.word(jsonx.Get(raw, "type"), "tool_choice.type", "")
	switch string(kind) {
	case "":
		in.fail("tool_choice.type", "is missing")
	case "auto":
		c.Mode = canon.ChoiceAuto
	case "none":
		c.Mode = canon.ChoiceNone
	case "any":
		c.Mode = canon.ChoiceRequired
		if len(in.r.Tools) == 0 && in.r.Params[canon.ParamMCPServers] == nil {
			in.fail("tool_choice", "there are no tools")
		}
	case "tool":
		c.Mode = canon.ChoiceNamed
	default:
		c.Mode, c.Raw = canon.ChoiceAuto, raw
		return
	}
	for it := jsonx.Object(raw); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch word := string(name); {
		case word == "type":
		case word == "name" && c.Mode == canon.ChoiceNamed:
			in.named(in.text(value, "tool_choice.name", ""))
		case word == "disable_parallel_tool_use":
			if in.flag(value, "tool_choice.disable_parallel_tool_use", "") {
				c.Parallel = canon.Raw("false")
			}
		default:
			in.o.Losses.Add("tool_choice."+word, canon.NotKnown)
		}
	}
	if c.Mode == canon.ChoiceNamed && c.Name == nil && c.Hosted == nil {
		in.fail("tool_choice.name", "is missing")
	}
}

// named finds the tool that the choice names.
func (in *callReader) named(name canon.Text) {
	for i := range in.r.Tools {
		t := &in.r.Tools[i]
		if name == nil || t.Name == nil || string(fold.Name(t.Name)) != string(fold.Name(name)) {
			continue
		}
		if t.Kind == canon.HostedTool {
			in.r.Choice.Hosted = t.Type
		} else {
			in.r.Choice.Name = name
		}
		return
	}
	in.fail("tool_choice.name", "names no tool of this request")
}
