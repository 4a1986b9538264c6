package responses

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// toolSource is where a list of tools stands.
type toolSource uint8

const (
	ownTools   toolSource = iota
	extraTools            // in an additional_tools item: as good as own ones, and a later definition counts
	foundTools            // in a tool_search_output item, which stays: those that the model can call, unless they are there already
)

func (r *callReader) declared(m *members) error { return r.tools(m.take("tools"), "tools", ownTools) }

func (r *callReader) tools(list canon.Raw, path string, from toolSource) error {
	if list != nil && jsonx.KindOf(list) != jsonx.KindArray {
		return canon.Invalid(path, "must be a list of tools")
	}
	for i, it := 0, jsonx.Array(list); it.Next(); i++ {
		if err := r.tool(it.Value(), canon.At(path, i), from); err != nil {
			return err
		}
	}
	return nil
}

// tool reads one tool (wire.md 3.2.1). A type that nobody knows is a tool of the provider.
func (r *callReader) tool(raw canon.Raw, path string, from toolSource) error {
	if jsonx.KindOf(raw) != jsonx.KindObject {
		return canon.Invalid(path, "must be an object")
	}
	m := r.levels.part.read(raw)
	kind, err := m.text(path, "type")
	if err != nil {
		return err
	}
	switch word := string(jsonx.Unquoted(kind)); {
	case word == "function", word == "" && m.has("name"):
		return r.callable(canon.Tool{Kind: canon.FunctionTool, Raw: raw, Path: path}, m, from)
	case word == "custom":
		return r.callable(canon.Tool{Kind: canon.CustomTool, Raw: raw, Path: path}, m, from)
	case word == "namespace":
		return r.namespace(m, path, from)
	case word == "":
		return canon.Invalid(path+".type", "is missing")
	}
	if from != foundTools {
		r.req.Tools = append(r.req.Tools, canon.Tool{Kind: canon.HostedTool, Type: kind, Raw: raw, Path: path})
	}
	return nil
}

// callable reads a tool that the client runs: {"name":…,"description":…,"parameters":{…},"strict":true}, or with a "format" for a custom one.
func (r *callReader) callable(t canon.Tool, m *members, from toolSource) (err error) {
	if t.Name, err = m.needed(t.Path, "name"); err != nil {
		return err
	}
	if t.Description, err = m.text(t.Path, "description"); err != nil {
		return err
	}
	if t.Kind == canon.CustomTool {
		t.Grammar, err = m.takeOf(jsonx.KindObject, t.Path, "format")
	} else if t.Parameters, err = m.takeOf(jsonx.KindObject, t.Path, "parameters"); err == nil {
		t.Strict, err = m.takeOf(jsonx.KindBool, t.Path, "strict")
	}
	if err != nil {
		return err
	}
	t.Cache = m.take("cache_control")
	t.Extra = append(t.Extra, m.rest()...)
	r.declare(t, from)
	return nil
}

// declare adds a tool that is told by its name.
func (r *callReader) declare(t canon.Tool, from toolSource) {
	if from != ownTools && r.named == nil {
		r.named = map[string]int{}
		for i := range r.req.Tools {
			r.named[toolKey(&r.req.Tools[i])] = i
		}
	}
	if r.named != nil {
		key := toolKey(&t)
		if i, there := r.named[key]; there {
			if from == extraTools {
				r.req.Tools[i] = t
			}
			return
		}
		r.named[key] = len(r.req.Tools)
	}
	r.req.Tools = append(r.req.Tools, t)
}

func toolKey(t *canon.Tool) string { return string(t.Namespace) + "\x00" + string(t.Name) }

// ofNamespace is in front of the names of members of a namespace, which its first tool keeps in its Extra.
const ofNamespace = "namespace."

// namespace reads {"name":…,"description":…,"tools":[…]}. Its tools may lack a type; entries that are none are lost.
func (r *callReader) namespace(m *members, path string, from toolSource) error {
	name, err := m.text(path, "name")
	if err != nil {
		return err
	}
	list, err := m.takeOf(jsonx.KindArray, path, "tools")
	if err != nil {
		return err
	}
	var kept []canon.Member
	for _, e := range m.rest() {
		if string(e.Value) != `""` {
			kept = append(kept, canon.Member{Name: canon.Text(ofNamespace + string(e.Name)), Value: e.Value})
		}
	}
	for i, it := 0, jsonx.Array(list); it.Next(); i++ {
		t := canon.Tool{Kind: canon.FunctionTool, Raw: it.Value(), Path: canon.At(path+".tools", i)}
		if len(name) > 0 {
			t.Namespace = name
		}
		sub := r.levels.inner.read(t.Raw) // of what is no object: none
		if !sub.has("name") {
			r.losses.Add(t.Path, canon.NotKnown)
			continue
		}
		kind, err := sub.text(t.Path, "type")
		if err != nil {
			return err
		}
		switch word := string(jsonx.Unquoted(kind)); word {
		case "function", "":
		case "custom":
			t.Kind = canon.CustomTool
		default:
			r.losses.Add(inside(t.Path, word), canon.NotKnown)
			continue
		}
		t.Extra, kept = kept, nil
		if err := r.callable(t, sub, from); err != nil {
			return err
		}
	}
	for _, e := range kept {
		r.losses.Add(inside(path, string(jsonx.Unquoted(e.Name[len(ofNamespace):]))), canon.NotKnown)
	}
	return nil
}

// choice reads tool_choice: a word, {"type":"function","name":…}, the same with "custom", {"type":"allowed_tools","mode":…,"tools":[…]} or
// {"type":"web_search"}. Without tools it means nothing, nor does parallel_tool_calls.
func (r *callReader) choice(top *members) error {
	const path = "tool_choice"
	raw := top.take(path)
	c := &r.req.Choice
	switch jsonx.KindOf(raw) {
	case jsonx.KindInvalid:
	case jsonx.KindString:
		text, _ := jsonx.Interior(raw)
		if c.Mode = choiceMode(text); c.Mode == 0 {
			return canon.Invalid(path, "must be auto, none or required")
		}
	case jsonx.KindObject:
		if err := r.choiceObject(raw); err != nil {
			return err
		}
	default:
		return canon.Invalid(path, "must be a string or an object")
	}
	if len(r.req.Tools) > 0 {
		return nil
	}
	if c.Mode == canon.ChoiceRequired || c.Mode == canon.ChoiceNamed {
		return canon.Invalid(path, "asks for a tool, but there are none")
	}
	*c = canon.Choice{}
	return nil
}

func choiceMode(word canon.Text) canon.ChoiceMode {
	switch string(jsonx.Unquoted(word)) {
	case "auto":
		return canon.ChoiceAuto
	case "none":
		return canon.ChoiceNone
	case "required":
		return canon.ChoiceRequired
	}
	return 0
}

func (r *callReader) choiceObject(raw canon.Raw) error {
	const path = "tool_choice"
	c := &r.req.Choice
	m := r.levels.item.read(raw)
	kind, err := m.needed(path, "type")
	if err != nil {
		return err
	}
	switch word := string(jsonx.Unquoted(kind)); word {
	case "function", "custom":
		return r.choiceNamed(m)
	case "allowed_tools":
		return r.choiceAllowed(m)
	default:
		for i := range r.req.Tools {
			if t := &r.req.Tools[i]; t.Kind == canon.HostedTool && bytes.Equal(t.Type, kind) && word != "mcp" {
				c.Mode, c.Hosted = canon.ChoiceNamed, kind
				r.lose(m, path)
				return nil
			}
		}
		c.Mode, c.Raw = canon.ChoiceAuto, raw
		return nil
	}
}

// choiceNamed: the tool must be there. Who names no namespace means a tool outside of all, or else the first of that name.
func (r *callReader) choiceNamed(m *members) error {
	const path = "tool_choice"
	name, err := m.needed(path, "name")
	if err != nil {
		return err
	}
	namespace, err := m.text(path, "namespace")
	if err != nil {
		return err
	}
	r.lose(m, path)
	var found *canon.Tool
	for i := range r.req.Tools {
		t := &r.req.Tools[i]
		if t.Kind == canon.HostedTool || !bytes.Equal(t.Name, name) {
			continue
		}
		if bytes.Equal(t.Namespace, namespace) {
			found = t
			break
		}
		if len(namespace) == 0 && found == nil {
			found = t
		}
	}
	if found == nil {
		return canon.Invalid(path, "names a tool that is not among the tools")
	}
	c := &r.req.Choice
	c.Mode, c.Name, c.Namespace, c.Custom = canon.ChoiceNamed, found.Name, found.Namespace, found.Kind == canon.CustomTool
	return nil
}

func (r *callReader) choiceAllowed(m *members) error {
	const path = "tool_choice"
	c := &r.req.Choice
	mode, err := m.text(path, "mode")
	if err != nil {
		return err
	}
	c.Mode = canon.ChoiceAuto
	if mode != nil {
		if c.Mode = choiceMode(mode); c.Mode != canon.ChoiceAuto && c.Mode != canon.ChoiceRequired {
			return canon.Invalid(path+".mode", "must be auto or required")
		}
	}
	list, err := m.takeOf(jsonx.KindArray, path, "tools")
	if err != nil {
		return err
	}
	r.lose(m, path)
	c.Allowed = []canon.ToolRef{}
	for i, it := 0, jsonx.Array(list); it.Next(); i++ {
		var ref canon.ToolRef
		one := r.levels.part.read(it.Value())
		in := canon.At(path+".tools", i)
		if ref.Type, err = one.needed(in, "type"); err != nil {
			return err
		}
		if ref.Name, err = one.text(in, "name"); err != nil {
			return err
		}
		if ref.Namespace, err = one.text(in, "namespace"); err != nil {
			return err
		}
		r.lose(one, in) // the server of an MCP tool
		c.Allowed = append(c.Allowed, ref)
	}
	return nil
}
