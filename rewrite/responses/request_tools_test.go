package responses

import (
	"fmt"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
)

// toldTools is a tool a line.
func toldTools(tools []canon.Tool) string {
	var lines []string
	for _, t := range tools {
		kind := []string{"?", "function", "custom", "hosted"}[t.Kind]
		lines = append(lines, fmt.Sprintf("%s: %s %s%s/%s %q params=%s strict=%s format=%s", t.Path, kind, t.Type, t.Namespace, t.Name, t.Description, t.Parameters, t.Strict, t.Grammar)+toldExtra(t.Extra))
	}
	return strings.Join(lines, "\n")
}

func TestReadCallReadsTools(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"a function", `{"input":"h","tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true,"defer_loading":true}]}`,
			`tools[0]: function /f "d" params={"type":"object"} strict=true format= +defer_loading=true`},
		{"a function with nulls, and one without a type", `{"input":"h","tools":[{"type":"function","name":"f","description":null,"parameters":null,"strict":null},{"name":"g"}]}`,
			"tools[0]: function /f \"\" params= strict= format=\ntools[1]: function /g \"\" params= strict= format="},
		{"a custom tool", `{"input":"h","tools":[{"type":"custom","name":"exec","format":{"type":"grammar","syntax":"lark","definition":"x"}}]}`,
			`tools[0]: custom /exec "" params= strict= format={"type":"grammar","syntax":"lark","definition":"x"}`},
		{"hosted tools", `{"input":"h","tools":[{"type":"web_search","external_web_access":true},{"type":"apply_patch"},{"type":"brand_new"}]}`,
			"tools[0]: hosted web_search/ \"\" params= strict= format=\ntools[1]: hosted apply_patch/ \"\" params= strict= format=\ntools[2]: hosted brand_new/ \"\" params= strict= format="},
		{"a namespace, taken apart", `{"input":"h","tools":[{"type":"namespace","name":"n","description":"N","tools":[{"name":"f","x":1},{"type":"custom","name":"g"}]}]}`,
			"tools[0].tools[0]: function n/f \"\" params= strict= format= +namespace.description=\"N\" +x=1\ntools[0].tools[1]: custom n/g \"\" params= strict= format="},
		{"tools that items bring", `{"tools":[{"type":"function","name":"f"}],"input":[{"type":"additional_tools","tools":[{"type":"namespace","name":"n","tools":[{"type":"custom","name":"exec"}]},{"type":"function","name":"f","description":"later"}]},` +
			`{"type":"tool_search_output","tools":[{"type":"function","name":"g"},{"type":"function","name":"f"},{"type":"web_search"}]}]}`,
			"input[0].tools[1]: function /f \"later\" params= strict= format=\ninput[0].tools[0].tools[0]: custom n/exec \"\" params= strict= format=\ninput[1].tools[0]: function /g \"\" params= strict= format="},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, losses := readCall(t, c.body)
			if got := toldTools(r.Tools); got != c.want || len(losses) > 0 {
				t.Errorf("got\n%s\nwant\n%s\nlosses %v", got, c.want, losses)
			}
		})
	}
}

func TestReadCallReadsToolChoice(t *testing.T) {
	const tools = `"tools":[{"type":"function","name":"f"},{"type":"custom","name":"c"},{"type":"web_search"},{"type":"namespace","name":"n","tools":[{"name":"f"},{"name":"g"}]}]`
	for _, c := range []struct{ choice, want string }{
		{`"auto"`, "1 / hosted= allowed= raw="},
		{`"none"`, "2 / hosted= allowed= raw="},
		{`"required"`, "3 / hosted= allowed= raw="},
		{`{"type":"function","name":"f"}`, "4 /f hosted= allowed= raw="},
		{`{"type":"function","name":"f","namespace":"n"}`, "4 n/f hosted= allowed= raw="},
		{`{"type":"function","name":"g"}`, "4 n/g hosted= allowed= raw="},
		{`{"type":"custom","name":"c"}`, "4 /c custom hosted= allowed= raw="},
		{`{"type":"web_search"}`, "4 / hosted=web_search allowed= raw="},
		{`{"type":"mcp","server_label":"s"}`, `1 / hosted= allowed= raw={"type":"mcp","server_label":"s"}`},
		{`{"type":"brand_new"}`, `1 / hosted= allowed= raw={"type":"brand_new"}`},
		{`{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"},{"type":"function","name":"g","namespace":"n"},{"type":"web_search"}]}`,
			"3 / hosted= allowed= function:/f function:n/g web_search:/ raw="},
	} {
		r, _ := readCall(t, `{"input":"h",`+tools+`,"parallel_tool_calls":false,"tool_choice":`+c.choice+`}`)
		ch := r.Choice
		custom, allowed := "", ""
		if ch.Custom {
			custom = " custom"
		}
		for _, a := range ch.Allowed {
			allowed += fmt.Sprintf(" %s:%s/%s", a.Type, a.Namespace, a.Name)
		}
		if got := fmt.Sprintf("%d %s/%s%s hosted=%s allowed=%s raw=%s", ch.Mode, ch.Namespace, ch.Name, custom, ch.Hosted, allowed, ch.Raw); got != c.want {
			t.Errorf("%s: got %s, want %s", c.choice, got, c.want)
		}
		if string(ch.Parallel) != "false" {
			t.Errorf("parallel: %s", ch.Parallel)
		}
	}
}
