package gemini

import (
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/fold"
)

// tools reads [{"functionDeclarations": […]}, {"googleSearch": {}}]. Each member of an element but the declarations is a tool that Google runs.
func (in *callReader) tools(raw []byte) {
	if raw == nil {
		return
	}
	in.of(jsonx.KindArray, raw, "tools")
	i := 0
	for it := jsonx.Array(raw); it.Next() && in.bad == nil; i++ {
		path := canon.At("tools", i)
		if in.of(jsonx.KindObject, it.Value(), path) == nil {
			return
		}
		for m := jsonx.Object(it.Value()); m.Next(); {
			switch {
			case jsonx.IsNull(m.Value()):
			case string(camel(m.Key())) == "functionDeclarations":
				in.declarations(m.Value(), path+".functionDeclarations")
			default:
				in.r.Tools = append(in.r.Tools, canon.Tool{Kind: canon.HostedTool, Type: fold.Name(m.Key()), Raw: m.Value(), Path: path})
			}
		}
	}
}

func (in *callReader) declarations(raw []byte, path string) {
	in.of(jsonx.KindArray, raw, path)
	i := 0
	for it := jsonx.Array(raw); it.Next() && in.bad == nil; i++ {
		in.declaration(it.Value(), canon.At(path, i))
	}
}

// declaration reads {"name", "description", "parameters" | "parametersJsonSchema"}; the rest are hints: response, behavior.
func (in *callReader) declaration(raw []byte, path string) {
	if in.of(jsonx.KindObject, raw, path) == nil {
		return
	}
	t := canon.Tool{Kind: canon.FunctionTool, Raw: raw, Path: path}
	for it := jsonx.Object(raw); it.Next(); {
		value := it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch word := string(camel(it.Key())); word {
		case "name":
			t.Name = in.text(value, path+".name")
		case "description":
			t.Description = in.text(value, path+".description")
		case "parameters", "parametersJsonSchema":
			at := path + "." + word
			if t.Parameters != nil {
				in.lose(at, canon.NoEquivalent)
			} else if in.of(jsonx.KindObject, value, at) != nil {
				t.Parameters = in.schema(value)
			}
		default:
			t.Extra = append(t.Extra, canon.Member{Name: fold.Name(it.Key()), Value: value})
		}
	}
	if len(t.Name) == 0 {
		in.fail(path+".name", "is missing")
	}
	in.r.Tools = append(in.r.Tools, t)
}

// choice reads {"functionCallingConfig": {"mode", "allowedFunctionNames"}}. VALIDATED is AUTO with arguments that keep to their schema, which
// nobody else can be asked for.
func (in *callReader) choice(raw []byte) {
	if raw == nil {
		return
	}
	in.of(jsonx.KindObject, raw, "toolConfig")
	for it := jsonx.Object(raw); it.Next() && in.bad == nil; {
		value := it.Value()
		switch {
		case jsonx.IsNull(value):
		case string(camel(it.Key())) == "functionCallingConfig":
			in.callingConfig(value, "toolConfig.functionCallingConfig")
		default: // retrievalConfig, includeServerSideToolInvocations
			in.r.Extra = append(in.r.Extra, canon.Member{Name: fold.Name(it.Key()), Value: value, Path: "toolConfig"})
		}
	}
}

func (in *callReader) callingConfig(raw []byte, path string) {
	in.of(jsonx.KindObject, raw, path)
	c := &in.r.Choice
	var names []canon.Text
	for it := jsonx.Object(raw); it.Next(); {
		value := it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch word := string(camel(it.Key())); word {
		case "mode":
			switch strings.ToUpper(in.word(value, path+".mode")) {
			case "AUTO":
				c.Mode = canon.ChoiceAuto
			case "NONE":
				c.Mode = canon.ChoiceNone
			case "ANY":
				c.Mode = canon.ChoiceRequired
			case "VALIDATED":
				c.Mode = canon.ChoiceAuto
				in.lose(path+".mode", canon.NoEquivalent)
			case "MODE_UNSPECIFIED", "":
			default:
				in.fail(path+".mode", "must be AUTO, ANY, NONE or VALIDATED")
			}
		case "allowedFunctionNames":
			in.of(jsonx.KindArray, value, path+"."+word)
			i := 0
			for list := jsonx.Array(value); list.Next(); i++ {
				names = append(names, in.text(list.Value(), canon.At(path+"."+word, i)))
			}
		default:
			in.r.Extra = append(in.r.Extra, canon.Member{Name: fold.Name(it.Key()), Value: value, Path: path})
		}
	}
	in.allowed(names, path+".allowedFunctionNames")
}

// allowed restricts the choice. One function that has to be called is named.
func (in *callReader) allowed(names []canon.Text, path string) {
	c := &in.r.Choice
	for i, name := range names {
		if !in.offers(name) {
			in.fail(canon.At(path, i), "names no function of this request")
		}
		c.Allowed = append(c.Allowed, canon.ToolRef{Type: canon.Text("function"), Name: name})
	}
	if c.Mode == 0 && len(names) > 0 {
		c.Mode = canon.ChoiceAuto
	}
	if c.Mode == canon.ChoiceRequired && len(names) == 1 {
		c.Mode, c.Name, c.Allowed = canon.ChoiceNamed, names[0], nil
	}
}

func (in *callReader) offers(name canon.Text) bool {
	for i := range in.r.Tools {
		if t := &in.r.Tools[i]; t.Kind == canon.FunctionTool && string(fold.Name(t.Name)) == string(fold.Name(name)) {
			return true
		}
	}
	return false
}
