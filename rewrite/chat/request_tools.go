package chat

import (
	"slices"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

func (in *callReader) tools(v []byte) {
	if jsonx.KindOf(v) != jsonx.KindArray {
		in.fail("tools", "must be a list of tools")
	}
	i := 0
	for it := jsonx.Array(v); it.Next(); i++ {
		in.req.Tools = append(in.req.Tools, in.tool(it.Value(), canon.At("tools", i)))
	}
}

// functions reads the tools of the legacy interface.
func (in *callReader) functions(v []byte) {
	if jsonx.KindOf(v) != jsonx.KindArray {
		in.fail("functions", "must be a list of functions")
	}
	i := 0
	for it := jsonx.Array(v); it.Next(); i++ {
		t := canon.Tool{Kind: canon.FunctionTool, Raw: it.Value(), Path: canon.At("functions", i)}
		in.function(&t, it.Value(), t.Path)
		in.req.Tools = append(in.req.Tools, t)
	}
}

// tool reads an element of tools: {"type":"function","function":{…}}, {"type":"custom","custom":{…}}, or a tool that the provider runs.
func (in *callReader) tool(v []byte, path string) canon.Tool {
	t := canon.Tool{Raw: v, Path: path}
	if jsonx.KindOf(v) != jsonx.KindObject {
		in.fail(path, "must be an object")
		return t
	}
	var kind, function, custom []byte
	for it := jsonx.Object(v); it.Next(); {
		v := it.Value()
		if jsonx.IsNull(v) {
			continue
		}
		switch string(jsonx.Unquoted(it.Key())) {
		case "type":
			t.Type = in.text(v, path+".type")
			kind = jsonx.Unquoted(t.Type)
		case "function":
			function = v
		case "custom":
			custom = v
		case "cache_control":
			t.Cache = v
		default:
			t.Extra = append(t.Extra, canon.Member{Name: it.Key(), Value: v})
		}
	}
	switch {
	case string(kind) == "function", kind == nil && function != nil:
		t.Kind, t.Type = canon.FunctionTool, nil
		in.function(&t, function, path+".function")
	case string(kind) == "custom":
		t.Kind, t.Type = canon.CustomTool, nil
		in.function(&t, custom, path+".custom")
	case kind == nil:
		in.fail(path+".type", "must be a string")
	default:
		return canon.Tool{Kind: canon.HostedTool, Type: t.Type, Raw: v, Path: path}
	}
	return t
}

// function reads what a function or custom tool says of itself. Members that nobody knows join those of the tool around it.
func (in *callReader) function(t *canon.Tool, v []byte, path string) {
	if jsonx.KindOf(v) != jsonx.KindObject {
		in.fail(path, "must be an object")
		return
	}
	custom := t.Kind == canon.CustomTool
	var name []byte
	for it := jsonx.Object(v); it.Next(); {
		v := it.Value()
		if jsonx.IsNull(v) {
			continue
		}
		switch word := string(jsonx.Unquoted(it.Key())); {
		case word == "name":
			name = v
		case word == "description":
			t.Description = in.text(v, path+".description")
		case word == "parameters" && !custom:
			if t.Parameters = v; jsonx.KindOf(v) != jsonx.KindObject {
				in.fail(path+".parameters", "must be an object")
			}
		case word == "strict" && !custom:
			in.bool(v, path+".strict")
			t.Strict = v
		case word == "format" && custom:
			t.Grammar = flatGrammar(v)
		default:
			t.Extra = append(t.Extra, canon.Member{Name: it.Key(), Value: v, Path: path})
		}
	}
	if t.Name = in.text(name, path+".name"); len(t.Name) == 0 {
		in.fail(path+".name", "must not be empty")
	}
}

// flatGrammar makes {"type":"grammar","grammar":{syntax, definition}} flat, as Responses has it: canon's tools have one shape.
func flatGrammar(v []byte) canon.Raw {
	inner := jsonx.Get(v, "grammar")
	if jsonx.KindOf(inner) != jsonx.KindObject {
		return v
	}
	flat := append(make([]byte, 0, len(v)), `{"type":"grammar"`...)
	for it := jsonx.Object(inner); it.Next(); {
		flat = append(append(append(flat, ',', '"'), it.Key()...), '"', ':')
		flat = append(flat, it.Value()...)
	}
	return append(flat, '}')
}

// choice reads tool_choice. What nobody knows stays whole.
func (in *callReader) choice(v []byte) {
	c := &in.req.Choice
	switch jsonx.KindOf(v) {
	case jsonx.KindString:
		if c.Mode = in.mode(v); c.Mode == 0 {
			in.fail("tool_choice", "must be auto, none, required or an object")
		}
		return
	case jsonx.KindObject:
	default:
		in.fail("tool_choice", "must be a string or an object")
		return
	}
	switch kind := string(in.word(jsonx.Get(v, "type"), "tool_choice.type")); kind {
	case "function", "custom":
		c.Mode, c.Custom = canon.ChoiceNamed, kind == "custom"
		c.Name = in.text(refName(v, kind), "tool_choice."+kind+".name")
		in.strangersOfRef(v, kind, "tool_choice")
	case "allowed_tools":
		in.allowed(c, v)
	default:
		c.Mode, c.Raw = canon.ChoiceAuto, v
	}
}

func (in *callReader) mode(v []byte) canon.ChoiceMode {
	switch string(in.word(v, "tool_choice")) {
	case "auto":
		return canon.ChoiceAuto
	case "none":
		return canon.ChoiceNone
	case "required":
		return canon.ChoiceRequired
	}
	return 0
}

// allowed reads {"type":"allowed_tools","allowed_tools":{"mode","tools"}}.
func (in *callReader) allowed(c *canon.Choice, v []byte) {
	const path = "tool_choice.allowed_tools"
	if nested := jsonx.Get(v, "allowed_tools"); jsonx.KindOf(nested) == jsonx.KindObject {
		in.strangers(v, "tool_choice", "type", "allowed_tools")
		in.strangers(nested, path, "mode", "tools")
		v = nested
	} else {
		in.strangers(v, "tool_choice", "type", "mode", "tools")
	}
	c.Mode = canon.ChoiceAuto
	if mode := jsonx.Get(v, "mode"); !jsonx.IsNull(mode) {
		if c.Mode = in.mode(mode); c.Mode == 0 {
			in.fail(path+".mode", "must be auto or required")
		}
	}
	tools := jsonx.Get(v, "tools")
	if jsonx.KindOf(tools) != jsonx.KindArray {
		in.fail(path+".tools", "must be a list of tools")
	}
	c.Allowed = []canon.ToolRef{}
	i := 0
	for it := jsonx.Array(tools); it.Next(); i++ {
		ref := canon.ToolRef{Type: in.text(jsonx.Get(it.Value(), "type"), path+".tools")}
		if name := refName(it.Value(), string(jsonx.Unquoted(ref.Type))); name != nil {
			ref.Name = in.text(name, path+".tools")
		}
		in.strangersOfRef(it.Value(), string(jsonx.Unquoted(ref.Type)), canon.At(path+".tools", i))
		c.Allowed = append(c.Allowed, ref)
	}
}

// refName is the name in {"type":kind,kind:{"name"}}, or in the flat form of Responses.
func refName(v []byte, kind string) []byte {
	if nested := jsonx.Get(v, kind); jsonx.KindOf(nested) == jsonx.KindObject {
		return jsonx.Get(nested, "name")
	}
	return jsonx.Get(v, "name")
}

// strangers tells as lost what an object holds besides the members that are read.
func (in *callReader) strangers(v []byte, path string, known ...string) {
	for it := jsonx.Object(v); it.Next(); {
		if name := string(jsonx.Unquoted(it.Key())); !jsonx.IsNull(it.Value()) && !slices.Contains(known, name) {
			in.o.Losses.Add(path+"."+name, canon.NotKnown)
		}
	}
}

// strangersOfRef is strangers of what refName reads.
func (in *callReader) strangersOfRef(v []byte, kind, path string) {
	if nested := jsonx.Get(v, kind); jsonx.KindOf(nested) == jsonx.KindObject {
		in.strangers(v, path, "type", kind)
		in.strangers(nested, path+"."+kind, "name")
		return
	}
	in.strangers(v, path, "type", "name")
}

// functionChoice reads the legacy function_call: "auto", "none" or {"name"}.
func (in *callReader) functionChoice(v []byte) {
	c := &in.req.Choice
	if jsonx.KindOf(v) == jsonx.KindObject {
		c.Mode, c.Name = canon.ChoiceNamed, in.text(jsonx.Get(v, "name"), "function_call.name")
		return
	}
	if c.Mode = in.mode(v); c.Mode == 0 {
		in.fail("function_call", "must be auto, none or an object")
	}
}
