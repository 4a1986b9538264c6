package rewrite

import (
	"slices"
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// bridges: custom tools become functions, and come back as what they were. A Responses upstream has custom tools of its own.
func (x *preparation) bridges() bool { return x.p.CustomTools == "bridge" && x.to != canon.Responses }

// tools names, filters and bridges the tools, and settles the choice among them (dialects.md 3.6).
func (x *preparation) tools() error {
	r := x.r
	x.names = newToolNames(r.Tools)
	x.names.bridged = x.bridges()
	offered := r.Tools
	kept := make([]canon.Tool, 0, len(offered))
	for i := range offered {
		t := offered[i]
		if r.Choice.Allowed != nil && !slices.ContainsFunc(r.Choice.Allowed, func(ref canon.ToolRef) bool { return allows(offered, ref, &t) }) {
			continue
		}
		keep, err := x.tool(&t)
		if err != nil {
			return err
		}
		if keep {
			kept = append(kept, t)
		}
	}
	r.Tools, r.Choice.Allowed = kept, nil
	return x.choice(offered)
}

// allows tells whether an entry of allowed_tools means a tool. Entries that name one are read as a named choice is.
func allows(offered []canon.Tool, ref canon.ToolRef, t *canon.Tool) bool {
	kind, name := plainText(ref.Type), plainText(ref.Name)
	switch {
	case kind == "namespace":
		return plainText(t.Namespace) == name
	case name == "" || kind != "function" && kind != "custom" && t.Kind == canon.HostedTool:
		return t.Kind == canon.HostedTool && plainText(t.Type) == kind && (name == "" || plainText(t.Name) == name || len(t.Name) == 0)
	}
	meant := find(offered, ref.Namespace, ref.Name, kind == "custom")
	return meant != nil && meant.Kind == t.Kind && plainText(meant.Name) == plainText(t.Name) && plainText(meant.Namespace) == plainText(t.Namespace)
}

// tool makes t fit for the upstream, or says that it does not go there.
func (x *preparation) tool(t *canon.Tool) (keep bool, err error) {
	policy := ""
	switch t.Kind {
	case canon.HostedTool:
		policy = x.p.HostedTools
	case canon.CustomTool:
		policy = x.p.CustomTools
	}
	switch policy {
	case "drop":
		x.dropped = append(x.dropped, *t)
		x.l.Add(lostAt(t.Path, toolLabel(t)), canon.ByPolicy)
		return false, nil
	case "error":
		kind := "hosted tools"
		if t.Kind == canon.CustomTool {
			kind = "custom tools"
		}
		return false, canon.Unsupported(t.Path, kind+" are refused here")
	}
	if t.Kind == canon.HostedTool {
		if x.r.From == canon.Gemini { // where a tool is a member
			t.Raw = SetMember([]byte("{}"), plainText(t.Type), t.Raw)
		}
		return true, nil
	}
	x.hints(t)
	if x.p.StrictTools == "drop" && t.Strict != nil {
		if jsonx.Truthy(t.Strict) {
			x.l.Add(lostAt(t.Path, "strict"), canon.ByPolicy)
		}
		t.Strict = nil
	}
	custom := t.Kind == canon.CustomTool
	t.Name, t.Namespace = x.names.sent(t.Namespace, t.Name, custom), nil
	if custom && x.bridges() {
		x.bridge(t)
	}
	return true, nil
}

// hints takes from t what is known to have no place beside it in another dialect: what tells its provider how to find or offer it, and what
// its namespace says of itself, which goes with the namespace. Such members of a namespace begin with its prefix and are with the first of
// its tools.
func (x *preparation) hints(t *canon.Tool) {
	var left []canon.Member
	for _, m := range t.Extra {
		switch name := plainText(m.Name); name {
		case "defer_loading", "eager_input_streaming", "input_examples", "allowed_callers", "output_schema", // (wire.md 3.1.1, 3.2.1)
			"behavior", "response", "responseJsonSchema": // Gemini
			if jsonx.Truthy(m.Value) {
				x.l.Add(lostAt(t.Path, name), canon.NoEquivalent)
			}
		case "namespace.description":
			x.l.Add(lostAt(parentPath(t.Path), "description"), canon.NoEquivalent)
		default:
			if name, ok := strings.CutPrefix(name, "namespace."); ok && t.Namespace != nil {
				x.l.Add(lostAt(parentPath(t.Path), short(name)), canon.NotKnown)
				continue
			}
			left = append(left, m)
		}
	}
	t.Extra = left
}

// parentPath is the path of what a tool stands in, "tools[4]" of "tools[4].tools[0]".
func parentPath(path string) string {
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}

// toolLabel tells a lost tool by its name, or what it is.
func toolLabel(t *canon.Tool) string {
	if len(t.Name) > 0 {
		return short(plainText(t.Name))
	}
	return short(plainText(t.Type))
}

// choice settles tool_choice and parallel_tool_calls after the tools.
func (x *preparation) choice(offered []canon.Tool) error {
	c := &x.r.Choice
	if c.Mode == canon.ChoiceNamed {
		switch target := x.target(offered); {
		case target == nil && len(offered) > 0:
			return canon.Invalid(x.choiceName(), "names a tool that is not among the tools")
		case target == nil: // told below
		case x.lost(target):
			x.l.Add(x.choiceName(), canon.ByPolicy)
			*c = canon.Choice{Mode: canon.ChoiceAuto, Parallel: c.Parallel}
		case target.Kind != canon.HostedTool:
			c.Custom = target.Kind == canon.CustomTool
			c.Name, c.Namespace = x.names.sent(target.Namespace, target.Name, c.Custom), nil
			c.Custom = c.Custom && !x.bridges()
		}
	}
	if len(x.r.Tools) > 0 || c.Raw != nil && c.Mode == 0 {
		if x.r.Show.Legacy && c.Parallel == nil { // whose answers hold one call
			c.Parallel = canon.Raw("false")
		}
		return nil
	}
	if c.Mode == canon.ChoiceRequired || c.Mode == canon.ChoiceNamed {
		if len(x.dropped) == 0 {
			return canon.Invalid(x.choiceName(), "a tool has to be called, but there are no tools")
		}
		x.l.Add(x.choiceName(), canon.ByPolicy)
	}
	*c = canon.Choice{}
	return nil
}

// choiceName is how the client calls the choice.
func (x *preparation) choiceName() string {
	if x.r.Show.Legacy {
		return "function_call"
	}
	return x.r.From.Called("tool_choice")
}

// target is the tool that the choice names; nil when it is none of those offered.
func (x *preparation) target(offered []canon.Tool) *canon.Tool {
	c := &x.r.Choice
	if c.Hosted != nil && len(c.Name) == 0 {
		for i := range offered {
			if t := &offered[i]; t.Kind == canon.HostedTool && plainText(t.Type) == plainText(c.Hosted) {
				return t
			}
		}
		return nil
	}
	return find(offered, c.Namespace, c.Name, c.Custom)
}

func (x *preparation) lost(t *canon.Tool) bool {
	return slices.ContainsFunc(x.dropped, func(d canon.Tool) bool {
		return d.Path == t.Path && string(d.Name) == string(t.Name) && string(d.Type) == string(t.Type)
	})
}

// joinAnd is "a", "a and b", "a, b and c".
func joinAnd(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
