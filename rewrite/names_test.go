package rewrite

import (
	"regexp"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
)

func function(namespace, name string) canon.Tool {
	return canon.Tool{Kind: canon.FunctionTool, Namespace: optional(namespace), Name: canon.Text(name), Path: "tools[0]"}
}

func custom(namespace, name string) canon.Tool {
	t := function(namespace, name)
	t.Kind = canon.CustomTool
	return t
}

func optional(s string) canon.Text {
	if s == "" {
		return nil
	}
	return canon.Text(s)
}

func TestToolNames(t *testing.T) {
	long := strings.Repeat("a", 65)
	tools := []canon.Tool{
		function("mcp__weather", "get_weather"), function("", "f"), function("a", "b__c"), function("a__b", "c"), function("", "x__y"), function("x", "y"),
		function("", "a.b"), function("", `a\u002eb`), function("", long), function(long, "f"), custom("", "f"), custom("", "exec"), function("", "café"),
	}
	names := newToolNames(tools)
	valid := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	taken := map[string]int{}
	for i, tool := range tools {
		sent := string(names.sent(tool.Namespace, tool.Name, tool.Kind == canon.CustomTool))
		if !valid.MatchString(sent) {
			t.Errorf("%s is no name", sent)
		}
		if other, ok := taken[sent]; ok && !(other == 6 && i == 7) {
			t.Errorf("%d and %d are both called %s", other, i, sent)
		}
		taken[sent] = i
		back, ok := names.restore(canon.Text(sent))
		if same := sent == string(tool.Name) && tool.Namespace == nil && tool.Kind == canon.FunctionTool; same == ok {
			t.Errorf("%s: restored %v", sent, ok)
		} else if ok && i != 7 && i != 6 && (string(back.Name) != string(tool.Name) || string(back.Namespace) != string(tool.Namespace) || back.Custom != (tool.Kind == canon.CustomTool)) {
			t.Errorf("%s is restored as %q %q %v", sent, back.Namespace, back.Name, back.Custom)
		}
	}
	for _, want := range []string{"mcp__weather__get_weather", "f", "x__y", "exec"} {
		if _, ok := taken[want]; !ok {
			t.Errorf("nothing is called %s: %v", want, taken)
		}
	}
	// The order of the tools does not matter.
	reversed := make([]canon.Tool, 0, len(tools))
	for i := range tools {
		reversed = append(reversed, tools[len(tools)-1-i])
	}
	again := newToolNames(reversed)
	for _, tool := range tools {
		is := tool.Kind == canon.CustomTool
		if a, b := names.sent(tool.Namespace, tool.Name, is), again.sent(tool.Namespace, tool.Name, is); string(a) != string(b) && string(tool.Name) != "f" {
			t.Errorf("%s or %s, by the order of the tools", a, b)
		}
	}
}

func TestNamesOfEarlierCalls(t *testing.T) {
	names := newToolNames([]canon.Tool{function("n", "f"), function("", "g")})
	for _, tc := range []struct {
		namespace, name string
		custom          bool
		want            string
	}{
		{"n", "f", false, "n__f"},
		{"", "n__f", false, "n__f"}, // a client that has lost the namespace
		{"", "gone", false, "gone"},
		{"m", "gone", false, "m__gone"},
		{"", "exec", true, "exec"},
	} {
		if got := names.sent(optional(tc.namespace), canon.Text(tc.name), tc.custom); string(got) != tc.want {
			t.Errorf("%s %s: %s; want %s", tc.namespace, tc.name, got, tc.want)
		}
	}
	if c, ok := names.restore(canon.Text("m__gone")); !ok || string(c.Namespace) != "m" || string(c.Name) != "gone" {
		t.Errorf("an earlier tool that is called again: %+v", c)
	}
	if c, ok := names.restore(canon.Text(`n__\u0066`)); !ok || string(c.Name) != "f" {
		t.Errorf("a name with escapes: %+v", c)
	}
	if _, ok := names.restore(canon.Text("nobody")); ok {
		t.Error("a name that nobody has")
	}
	var none *toolNames
	if _, ok := none.restore(canon.Text("f")); ok || none.needed() {
		t.Error("no names change nothing")
	}
}
