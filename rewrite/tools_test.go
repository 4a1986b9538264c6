package rewrite

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rolltap/rewrite/canon"
)

func hosted(path, kind string) canon.Tool {
	return canon.Tool{Kind: canon.HostedTool, Type: canon.Text(kind), Path: path}
}

// toolsOf are the names of the tools, and what kind they are.
func toolsOf(r *canon.Request) string {
	var all []string
	for _, t := range r.Tools {
		s := string(t.Name)
		switch t.Kind {
		case canon.CustomTool:
			s += " custom"
		case canon.HostedTool:
			s = string(t.Type) + " hosted"
		}
		all = append(all, s)
	}
	return strings.Join(all, ",")
}

func TestHostedTools(t *testing.T) {
	request := func(c canon.Choice) *canon.Request { // vectors 10 and 51
		return &canon.Request{Tools: []canon.Tool{function("", "f"), hosted("tools[1]", "web_search")}, Choice: c}
	}
	lost := canon.Loss{Path: "tools[1].web_search", Reason: canon.ByPolicy}
	r := request(canon.Choice{Mode: canon.ChoiceAuto})
	_, losses, _ := prepareFor(t, DefaultPolicy(), canon.Responses, canon.Chat, r, Call{})
	if toolsOf(r) != "f" || r.Choice.Mode != canon.ChoiceAuto || !cmp.Equal(losses, []canon.Loss{lost}) {
		t.Errorf("drop: %s %+v %v", toolsOf(r), r.Choice, losses)
	}
	for _, choice := range []canon.Choice{{Mode: canon.ChoiceNamed, Hosted: canon.Text("web_search")}, {Mode: canon.ChoiceNamed, Name: canon.Text("web_search")}} {
		r = request(choice)
		r.Tools[1].Type, r.Tools[1].Name = canon.Text("web_search"), canon.Text("web_search")
		_, losses, _ = prepareFor(t, DefaultPolicy(), canon.Messages, canon.Chat, r, Call{})
		if r.Choice.Mode != canon.ChoiceAuto || r.Choice.Name != nil || r.Choice.Hosted != nil || !cmp.Equal(losses, []canon.Loss{lost, {Path: "tool_choice", Reason: canon.ByPolicy}}) {
			t.Errorf("drop, chosen: %+v %v", r.Choice, losses)
		}
	}
	r = request(canon.Choice{Mode: canon.ChoiceRequired, Parallel: canon.Raw("true")})
	r.Tools = r.Tools[1:]
	_, losses, problem := prepareFor(t, DefaultPolicy(), canon.Responses, canon.Chat, r, Call{})
	if problem != nil || len(r.Tools) > 0 || !cmp.Equal(r.Choice, canon.Choice{}) || len(losses) != 2 {
		t.Errorf("drop, the only one and required: %v %+v %v", problem, r.Choice, losses)
	}
	r = request(canon.Choice{Mode: canon.ChoiceNamed, Hosted: canon.Text("web_search")})
	_, losses, _ = prepareFor(t, policyWith(func(p *Policy) { p.HostedTools = "pass" }), canon.Responses, canon.Messages, r, Call{})
	if toolsOf(r) != "f,web_search hosted" || r.Choice.Mode != canon.ChoiceNamed || len(losses) > 0 {
		t.Errorf("pass: %s %+v %v", toolsOf(r), r.Choice, losses)
	}
	if _, _, problem := prepareFor(t, policyWith(func(p *Policy) { p.HostedTools = "error" }), canon.Responses, canon.Chat, request(canon.Choice{}), Call{}); problem == nil || problem.Param != "tools[1]" || problem.Code != canon.CodeUnsupported {
		t.Errorf("error: %v", problem)
	}
}

func TestToolChoice(t *testing.T) {
	ref := func(kind, namespace, name string) canon.ToolRef {
		return canon.ToolRef{Type: canon.Text(kind), Namespace: optional(namespace), Name: optional(name)}
	}
	named := func(namespace, name string) canon.Choice {
		return canon.Choice{Mode: canon.ChoiceNamed, Namespace: optional(namespace), Name: canon.Text(name)}
	}
	offered := []canon.Tool{function("", "f"), function("n", "f"), function("n", "g"), custom("", "exec"), hosted("tools[4]", "web_search")}
	only := func(mode canon.ChoiceMode, refs ...canon.ToolRef) canon.Choice {
		return canon.Choice{Mode: mode, Allowed: refs}
	}
	auto := canon.Choice{Mode: canon.ChoiceAuto}
	for _, tc := range []struct {
		name   string
		tools  []canon.Tool
		in     canon.Choice
		tools2 string
		want   canon.Choice
	}{
		{"named", offered, named("", "f"), "f,n__f,n__g,exec", named("", "f")}, // vector 7
		{"in a namespace", offered, named("n", "f"), "f,n__f,n__g,exec", named("", "n__f")},
		{"without its namespace", offered, named("", "g"), "f,n__f,n__g,exec", named("", "n__g")},
		{"custom", offered, canon.Choice{Mode: canon.ChoiceNamed, Name: canon.Text("exec"), Custom: true}, "f,n__f,n__g,exec", named("", "exec")},
		{"allowed", offered, only(canon.ChoiceAuto, ref("function", "", "f"), ref("function", "n", "g")), "f,n__g", auto},
		{"allowed and required", offered, only(canon.ChoiceRequired, ref("custom", "", "exec")), "exec", canon.Choice{Mode: canon.ChoiceRequired}},
		{"a whole namespace", offered, only(canon.ChoiceAuto, ref("namespace", "", "n")), "n__f,n__g", auto},
		{"allowed, one that is dropped", offered, only(canon.ChoiceRequired, ref("web_search", "", "")), "", canon.Choice{}},
		{"allowed, nothing", offered, canon.Choice{Mode: canon.ChoiceAuto, Allowed: []canon.ToolRef{}}, "", canon.Choice{}},
		{"no tools", nil, canon.Choice{Mode: canon.ChoiceAuto, Parallel: canon.Raw("true")}, "", canon.Choice{}}, // vector 13
		{"no tools and none", nil, canon.Choice{Mode: canon.ChoiceNone}, "", canon.Choice{}},
	} {
		r := &canon.Request{Tools: tc.tools, Choice: tc.in}
		if _, _, problem := prepareFor(t, DefaultPolicy(), canon.Responses, canon.Chat, r, Call{}); problem != nil {
			t.Errorf("%s: %v", tc.name, problem)
			continue
		}
		if d := cmp.Diff(tc.want, r.Choice); toolsOf(r) != tc.tools2 || d != "" {
			t.Errorf("%s: %s; want %s; %s", tc.name, toolsOf(r), tc.tools2, d)
		}
	}
	for _, choice := range []canon.Choice{{Mode: canon.ChoiceRequired}, named("", "f")} { // vector 12
		if _, _, problem := prepareFor(t, DefaultPolicy(), canon.Responses, canon.Chat, &canon.Request{Choice: choice}, Call{}); problem == nil || problem.Param != "tool_choice" {
			t.Errorf("no tools, %+v: %v", choice, problem)
		}
	}
}

func TestCustomTools(t *testing.T) {
	request := func() *canon.Request { // vectors 9 and 52
		exec := custom("", "exec")
		exec.Path, exec.Description = "input[0].tools[0]", canon.Text(`Runs \"it\"`)
		exec.Grammar = canon.Raw(`{"type":"grammar","syntax":"lark","definition":"start: \"a\"\n"}`)
		return &canon.Request{Tools: []canon.Tool{exec, function("", "f"), function("n", "f")}, Messages: []canon.Message{
			message(canon.Assistant, "input[1]",
				canon.Part{Type: canon.CallPart, Path: "input[1]", Call: canon.Call{ID: canon.Text("c1"), Name: canon.Text("exec"), Custom: true, Arguments: canon.Text(`a \"b\"\n`)}},
				canon.Part{Type: canon.CallPart, Path: "input[2]", Call: canon.Call{ID: canon.Text("c2"), Name: canon.Text("f"), Namespace: canon.Text("n"), Arguments: canon.Text("{}")}}),
			message(canon.ToolRole, "input[3]", canon.Part{Type: canon.ResultPart, Path: "input[3]", Result: canon.Result{CallID: canon.Text("c1"), Custom: true, Plain: true, Parts: []canon.Part{textPart("done")}}}),
			message(canon.ToolRole, "input[4]", canon.Part{Type: canon.ResultPart, Path: "input[4]", Result: canon.Result{CallID: canon.Text("c2"), Parts: []canon.Part{textPart("2")}}}),
		}}
	}
	with := func(word string) Policy { return policyWith(func(p *Policy) { p.CustomTools = word }) }

	r := request()
	names, losses, _ := prepareFor(t, with("bridge"), canon.Responses, canon.Chat, r, Call{})
	if got := toolsOf(r); got != "exec,f,n__f" {
		t.Errorf("bridge: %s", got)
	}
	tool := r.Tools[0]
	if string(tool.Description) != `Runs \"it\"\n\nThe input has to match this grammar (lark):\nstart: \"a\"\n` ||
		string(tool.Parameters) != `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}` || tool.Grammar != nil || tool.Raw != nil {
		t.Errorf("bridge: %s %s", tool.Description, tool.Parameters)
	}
	if d := cmp.Diff([]string{`assistant:call exec{\"input\":\"a \\\"b\\\"\\n\"}|call n__f{}|`, "tool:result done|", "tool:result 2|"}, roles(r.Messages)); d != "" {
		t.Errorf("bridge: %s", d)
	}
	if r.Messages[0].Parts[0].Call.Custom || r.Messages[1].Parts[0].Result.Custom || string(r.Messages[0].Parts[0].Call.ID) != "c1" {
		t.Errorf("bridge: %+v", r.Messages)
	}
	if !cmp.Equal(losses, []canon.Loss{{Path: "input[0].tools[0].format", Reason: canon.NoEquivalent}}) {
		t.Errorf("bridge: %v", losses)
	}
	if c, ok := names.restore(canon.Text("exec")); !ok || !c.Custom {
		t.Errorf("bridge: %+v", c)
	}

	r = request()
	if _, losses, _ = prepareFor(t, with("native"), canon.Responses, canon.Chat, r, Call{}); toolsOf(r) != "exec custom,f,n__f" || !r.Messages[0].Parts[0].Call.Custom || !r.Messages[1].Parts[0].Result.Custom || len(losses) > 0 {
		t.Errorf("native: %s %v", toolsOf(r), losses)
	}
	r = request()
	if prepareFor(t, with("bridge"), canon.Chat, canon.Responses, r, Call{}); toolsOf(r) != "exec custom,f,n__f" {
		t.Errorf("a Responses upstream has custom tools: %s", toolsOf(r))
	}

	r = request()
	_, losses, _ = prepareFor(t, with("drop"), canon.Responses, canon.Chat, r, Call{})
	if d := cmp.Diff([]string{`assistant:[Called the tool exec with this input]\na \"b\"\n|call n__f{}|`, "tool:result 2|", `user:[Result of the tool]\ndone|`}, roles(r.Messages)); toolsOf(r) != "f,n__f" || d != "" {
		t.Errorf("drop: %s %s", toolsOf(r), d)
	}
	if d := cmp.Diff([]canon.Loss{{Path: "input[0].tools[0].exec", Reason: canon.ByPolicy}, {Path: "input[1].custom_tool_call", Reason: canon.ByPolicy}}, losses); d != "" {
		t.Errorf("drop: %s", d)
	}

	if _, _, problem := prepareFor(t, with("error"), canon.Responses, canon.Chat, request(), Call{}); problem == nil || problem.Param != "input[0].tools[0]" {
		t.Errorf("error: %v", problem)
	}
	r = request()
	r.Tools = nil
	if _, _, problem := prepareFor(t, with("error"), canon.Responses, canon.Chat, r, Call{}); problem == nil || problem.Param != "input[1]" {
		t.Errorf("error in the history: %v", problem)
	}
}

func TestStrictTools(t *testing.T) {
	request := func() *canon.Request { // vector 8
		a, b := function("", "a"), function("", "b")
		a.Strict, b.Strict, a.Path = canon.Raw("true"), canon.Raw("false"), "tools[0]"
		return &canon.Request{Tools: []canon.Tool{a, b}}
	}
	r := request()
	if _, losses, _ := prepareFor(t, DefaultPolicy(), canon.Responses, canon.Chat, r, Call{}); string(r.Tools[0].Strict) != "true" || len(losses) > 0 {
		t.Errorf("keep: %s %v", r.Tools[0].Strict, losses)
	}
	r = request()
	asked := r.Tools
	_, losses, _ := prepareFor(t, policyWith(func(p *Policy) { p.StrictTools = "drop" }), canon.Responses, canon.Chat, r, Call{})
	if r.Tools[0].Strict != nil || r.Tools[1].Strict != nil || !cmp.Equal(losses, []canon.Loss{{Path: "tools[0].strict", Reason: canon.ByPolicy}}) || asked[0].Strict == nil {
		t.Errorf("drop: %v", losses)
	}
}
