package messages

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// callOptions are those of a configuration without rewrite keys.
func callOptions(losses *canon.Losses) dialect.Options {
	p := dialect.DefaultPolicy()
	return dialect.Options{Policy: &p, Losses: losses, ID: "x"}
}

func recordedCalls(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/requests/*.json")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d requests, %v", len(names), err)
	}
	bodies := map[string][]byte{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		bodies[filepath.Base(name)] = bytes.TrimSpace(b)
	}
	return bodies
}

// mustRead reads a body in which nothing is wrong.
func mustRead(t testing.TB, body string) (*canon.Request, []canon.Loss) {
	t.Helper()
	var losses canon.Losses
	r, err := messages{}.ReadCall([]byte(body), callOptions(&losses))
	if err != nil {
		t.Fatal(err)
	}
	return r, losses.List()
}

func TestRecordedCallsAreReadAndWrittenBack(t *testing.T) {
	for name, body := range recordedCalls(t) {
		t.Run(name, func(t *testing.T) {
			r, losses := mustRead(t, string(body))
			if len(losses) > 0 {
				t.Errorf("losses: %v", losses)
			}
			var written canon.Losses
			out, err := messages{}.AppendCall(nil, r, callOptions(&written))
			if err != nil {
				t.Fatal(err)
			}
			if len(written.List()) > 0 {
				t.Errorf("losses: %v", written.List())
			}
			if got, want := sameCall(t, out), sameCall(t, body); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %s\nwant %s", asJSON(t, got), asJSON(t, want))
			}
		})
	}
}

func asJSON(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sameCall is a request without what makes no difference: null and the defaults that may be left out, and the place of results in their turn.
func sameCall(t testing.TB, body []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	for name, value := range v {
		if value == nil || name == "stream" && value == false {
			delete(v, name)
		}
	}
	tools, _ := v["tools"].([]any)
	if len(tools) == 0 {
		delete(v, "tools")
	}
	for _, tool := range tools {
		if tool := tool.(map[string]any); tool["type"] == "custom" {
			delete(tool, "type")
		}
	}
	for _, m := range v["messages"].([]any) {
		content, ok := m.(map[string]any)["content"].([]any)
		if !ok {
			continue
		}
		for _, block := range content {
			if block := block.(map[string]any); block["is_error"] == false {
				delete(block, "is_error")
			}
		}
		slices.SortStableFunc(content, func(a, b any) int {
			return resultRank(a) - resultRank(b)
		})
	}
	return v
}

func resultRank(block any) int {
	if block.(map[string]any)["type"] == "tool_result" {
		return 0
	}
	return 1
}

func TestATurnIsTakenApart(t *testing.T) {
	r, _ := mustRead(t, `{"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[
		{"role":"user","content":"q"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"a"},
			{"type":"tool_use","id":"t_1","name":"f","input":{ "a" : "\u00e9\"" }},{"type":"tool_use","id":"t_2","name":"f"}]},
		{"role":"user","x":1,"content":[{"type":"text","text":"note"},{"type":"tool_result","tool_use_id":"t_1","content":"ok","is_error":true},
			{"type":"tool_result","tool_use_id":"t_2","content":null}]},
		{"role":"system","content":"late"}]}`)
	var got []string
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			got = append(got, strings.Join([]string{m.Path, p.Path, string("?SDUAT"[m.Role]), string(p.Text) + string(p.Call.ID) + string(p.Call.Arguments) + string(p.Result.CallID), string(p.Signature)}, " "))
		}
	}
	want := []string{
		"system system[0] S s ",
		"messages[0] messages[0].content U q ",
		"messages[1] messages[1].content[0] A hm sig",
		"messages[1] messages[1].content[1] A a ",
		`messages[1] messages[1].content[2] A t_1{ \"a\" : \"\\u00e9\\\"\" } `,
		"messages[1] messages[1].content[3] A t_2{} ",
		"messages[2] messages[2].content[1] T t_1 ",
		"messages[2] messages[2].content[2] T t_2 ",
		"messages[2] messages[2].content[0] U note ",
		"messages[3] messages[3].content S late ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if string(r.Messages[0].Parts[0].Cache) != `{"type":"ephemeral"}` {
		t.Errorf("cache %s", r.Messages[0].Parts[0].Cache)
	}
	if first := r.Messages[3].Parts[0].Result; !first.Failed || !first.Plain || string(first.Parts[0].Text) != "ok" {
		t.Errorf("first result %+v", first)
	}
	if second := r.Messages[4].Parts[0].Result; second.Failed || len(second.Parts) > 0 {
		t.Errorf("second result %+v", second)
	}
	if extra := r.Messages[5].Extra; len(extra) != 1 || len(r.Messages[3].Extra)+len(r.Messages[4].Extra) > 0 {
		t.Errorf("extra %v", extra)
	}
}

func TestBlocksBecomeParts(t *testing.T) {
	for _, c := range []struct {
		name, role, block string
		want              canon.Part // Raw and Path are not compared
	}{
		{"an unsigned thought", "assistant", `{"type":"thinking","thinking":"t","signature":""}`, canon.Part{Type: canon.ReasoningPart, Text: canon.Text("t")}},
		{"a sealed one", "assistant", `{"type":"redacted_thinking","data":"D"}`, canon.Part{Type: canon.RedactedPart, Signature: canon.Text("D"), SignedBy: canon.Messages}},
		{"citations", "user", `{"type":"text","text":"a","citations":[{"x":1},{}]}`, canon.Part{Type: canon.TextPart, Text: canon.Text("a"), Cites: []canon.Raw{canon.Raw(`{"x":1}`), canon.Raw("{}")}}},
		{"citations that are null", "user", `{"type":"text","text":"a","citations":null}`, canon.Part{Type: canon.TextPart, Text: canon.Text("a")}},
		{"an image of the wrong name", "user", `{"type":"image","source":{"type":"base64","media_type":"image/jpg","data":"aA=="}}`,
			canon.Part{Type: canon.ImagePart, Media: canon.Media{MediaType: canon.Text("image/jpeg"), Data: canon.Text("aA==")}}},
		{"a document as text", "user", `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a\n"},"title":"T","context":"c"}`,
			canon.Part{Type: canon.FilePart, Media: canon.Media{MediaType: canon.Text("text/plain"), Inline: canon.Text(`a\n`), Title: canon.Text("T")},
				Extra: []canon.Member{{Name: canon.Text("context"), Value: canon.Raw(`"c"`)}}}},
		{"a document of blocks", "user", `{"type":"document","source":{"type":"content","content":"a"}}`,
			canon.Part{Type: canon.FilePart, Media: canon.Media{Parts: []canon.Part{{Type: canon.TextPart, Text: canon.Text("a"), Path: "messages[0].content[0].source.content"}}}}},
		{"a search result", "user", `{"type":"search_result","source":"S","title":"T","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			canon.Part{Type: canon.TextPart, Text: canon.Text(`T\nS\na\nb`)}},
		{"a tool of the provider", "assistant", `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`, canon.Part{Type: canon.HostedPart}},
		{"its result", "assistant", `{"type":"bash_code_execution_tool_result","tool_use_id":"s"}`, canon.Part{Type: canon.HostedPart}},
		{"something new", "user", `{"type":"hologram","text":7}`, canon.Part{Type: canon.UnknownPart}},
		{"a type with an escape", "user", `{"type":"te\u0078t","\u0074ext":"a"}`, canon.Part{Type: canon.TextPart, Text: canon.Text("a")}},
		{"members that nobody knows", "user", `{"type":"text","text":"a","new":[1],"old":null}`, canon.Part{Type: canon.TextPart, Text: canon.Text("a"), Extra: []canon.Member{{Name: canon.Text("new"), Value: canon.Raw("[1]")}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := mustRead(t, `{"messages":[{"role":"`+c.role+`","content":[`+c.block+`]}]}`)
			got := r.Messages[0].Parts[0]
			if string(got.Raw) != c.block || got.Path != "messages[0].content[0]" {
				t.Errorf("raw %s, path %s", got.Raw, got.Path)
			}
			got.Raw, got.Path = nil, ""
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestCallsThatAreWrongNameTheField(t *testing.T) {
	user := func(blocks string) string { return `{"messages":[{"role":"user","content":[` + blocks + `]}]}` }
	for _, c := range []struct{ name, body, param string }{
		{"no messages", `{}`, "messages"},
		{"messages null", `{"messages":null}`, "messages"},
		{"messages as text", `{"messages":"hi"}`, "messages"},
		{"a message that is none", `{"messages":[7]}`, "messages[0]"},
		{"no role", `{"messages":[{"content":"x"}]}`, "messages[0].role"},
		{"an unknown role", `{"messages":[{"role":"user","content":"x"},{"role":"tool","content":"x"}]}`, "messages[1].role"},
		{"a role that is a number", `{"messages":[{"role":1,"content":"x"}]}`, "messages[0].role"},
		{"no content", `{"messages":[{"role":"user"}]}`, "messages[0].content"},
		{"content null", `{"messages":[{"role":"user","content":null}]}`, "messages[0].content"},
		{"a block as text", user(`"x"`), "messages[0].content[0]"},
		{"a block without type", user(`{"text":"x"}`), "messages[0].content[0].type"},
		{"a text block without text", user(`{"type":"text"}`), "messages[0].content[0].text"},
		{"a text that is a list", user(`{"type":"text","text":[]}`), "messages[0].content[0].text"},
		{"citations as a number", user(`{"type":"text","text":"a","citations":1}`), "messages[0].content[0].citations"},
		{"an image without source", user(`{"type":"image"}`), "messages[0].content[0].source"},
		{"an unknown media type", user(`{"type":"image","source":{"type":"base64","media_type":"image/tiff","data":"aA=="}}`), "messages[0].content[0].source.media_type"},
		{"an unknown source", user(`{"type":"image","source":{"type":"ftp","url":"x"}}`), "messages[0].content[0].source.type"},
		{"a source without type", user(`{"type":"image","source":{"url":"x"}}`), "messages[0].content[0].source.type"},
		{"a source without what it says", user(`{"type":"image","source":{"type":"url","data":"x"}}`), "messages[0].content[0].source"},
		{"an image of blocks", user(`{"type":"image","source":{"type":"content","content":"x"}}`), "messages[0].content[0].source.type"},
		{"a call of the user", user(`{"type":"tool_use","id":"t","name":"f","input":{}}`), "messages[0].content[0].type"},
		{"a thought of the user", user(`{"type":"thinking","thinking":"t"}`), "messages[0].content[0].type"},
		{"a result of the model", `{"messages":[{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"t"}]}]}`, "messages[0].content[0].type"},
		{"a call without id", `{"messages":[{"role":"assistant","content":[{"type":"tool_use","name":"f"}]}]}`, "messages[0].content[0].id"},
		{"a call without name", `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"f"}]}]}`, "messages[0].content[0].name"},
		{"a result without id", user(`{"type":"tool_result","content":"x"}`), "messages[0].content[0].tool_use_id"},
		{"a result in a result", user(`{"type":"tool_result","tool_use_id":"t","content":[{"type":"tool_result","tool_use_id":"u"}]}`), "messages[0].content[0].content[0].type"},
		{"a result as object", user(`{"type":"tool_result","tool_use_id":"t","content":{}}`), "messages[0].content[0].content"},
		{"is_error as text", user(`{"type":"tool_result","tool_use_id":"t","is_error":"no"}`), "messages[0].content[0].is_error"},
		{"an image in the system prompt", `{"system":[{"type":"image","source":{"type":"url","url":"x"}}],"messages":[]}`, "system[0].type"},
		{"a system prompt as object", `{"system":{},"messages":[]}`, "system"},
		{"max_tokens as text", `{"max_tokens":"9","messages":[]}`, "max_tokens"},
		{"max_tokens below 0", `{"max_tokens":-1,"messages":[]}`, "max_tokens"},
		{"temperature as text", `{"temperature":"hot","messages":[]}`, "temperature"},
		{"stream as text", `{"stream":"true","messages":[]}`, "stream"},
		{"stream as number", `{"stream":1,"messages":[]}`, "stream"},
		{"a stop sequence that is none", `{"stop_sequences":["a",1],"messages":[]}`, "stop_sequences[1]"},
		{"stop_sequences as text", `{"stop_sequences":"a","messages":[]}`, "stop_sequences"},
		{"metadata as text", `{"metadata":"a","messages":[]}`, "metadata"},
		{"thinking as boolean", `{"thinking":true,"messages":[]}`, "thinking"},
		{"thinking without type", `{"thinking":{},"messages":[]}`, "thinking.type"},
		{"a budget as text", `{"thinking":{"type":"enabled","budget_tokens":"many"},"messages":[]}`, "thinking.budget_tokens"},
		{"an effort as number", `{"output_config":{"effort":3},"messages":[]}`, "output_config.effort"},
		{"a format that is unknown", `{"output_config":{"format":{"type":"xml"}},"messages":[]}`, "output_config.format.type"},
		{"a format without schema", `{"output_format":{"type":"json_schema"},"messages":[]}`, "output_format.schema"},
		{"tools as object", `{"tools":{},"messages":[]}`, "tools"},
		{"a tool without name", `{"tools":[{"name":"f"},{"input_schema":{}}],"messages":[]}`, "tools[1].name"},
		{"a schema as text", `{"tools":[{"name":"f","input_schema":"x"}],"messages":[]}`, "tools[0].input_schema"},
		{"strict as text", `{"tools":[{"name":"f","strict":"x"}],"messages":[]}`, "tools[0].strict"},
		{"a choice as text", `{"tools":[{"name":"f"}],"tool_choice":"auto","messages":[]}`, "tool_choice"},
		{"a choice without type", `{"tools":[{"name":"f"}],"tool_choice":{},"messages":[]}`, "tool_choice.type"},
		{"a choice of a tool that is not there", `{"tools":[{"name":"f"}],"tool_choice":{"type":"tool","name":"g"},"messages":[]}`, "tool_choice.name"},
		{"a choice without name", `{"tools":[{"name":"f"}],"tool_choice":{"type":"tool"},"messages":[]}`, "tool_choice.name"},
		{"any of no tools", `{"tool_choice":{"type":"any"},"messages":[]}`, "tool_choice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := messages{}.ReadCall([]byte(c.body), callOptions(nil))
			var p *canon.Problem
			if !errors.As(err, &p) || r != nil {
				t.Fatalf("got %v, %v", r, err)
			}
			if p.Status != 400 || p.Code != canon.CodeInvalid || p.Param != c.param || p.Message == "" {
				t.Errorf("got %+v, want %s", *p, c.param)
			}
		})
	}
}

func TestToolsAndChoice(t *testing.T) {
	const tools = `"tools":[{"type":"custom","name":"f","input_schema":{"type":"object"},"strict":true,"defer_loading":true},{"type":"bash_20250124","name":"bash"}]`
	r, _ := mustRead(t, `{`+tools+`,"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true},"messages":[]}`)
	f, bash := r.Tools[0], r.Tools[1]
	if f.Kind != canon.FunctionTool || f.Type != nil || string(f.Parameters) != `{"type":"object"}` || string(f.Strict) != "true" || f.Description != nil || f.Path != "tools[0]" ||
		len(f.Extra) != 1 || string(f.Extra[0].Name) != "defer_loading" {
		t.Errorf("function %+v", f)
	}
	if bash.Kind != canon.HostedTool || string(bash.Type) != "bash_20250124" || string(bash.Name) != "bash" || string(bash.Raw) != `{"type":"bash_20250124","name":"bash"}` {
		t.Errorf("hosted %+v", bash)
	}
	if c := r.Choice; c.Mode != canon.ChoiceNamed || string(c.Name) != "f" || string(c.Parallel) != "false" {
		t.Errorf("choice %+v", c)
	}
	r, _ = mustRead(t, `{`+tools+`,"tool_choice":{"type":"tool","name":"bash"},"messages":[]}`)
	if c := r.Choice; c.Mode != canon.ChoiceNamed || c.Name != nil || string(c.Hosted) != "bash_20250124" || c.Parallel != nil {
		t.Errorf("hosted choice %+v", c)
	}
	r, _ = mustRead(t, `{`+tools+`,"tool_choice":{"type":"some"},"messages":[]}`)
	if c := r.Choice; c.Mode != canon.ChoiceAuto || string(c.Raw) != `{"type":"some"}` {
		t.Errorf("unknown choice %+v", c)
	}
}

func TestWishes(t *testing.T) {
	r, losses := mustRead(t, `{"thinking":{"type":"between_tools"},"output_config":{"effort":"high","budget":1},"output_format":{"type":"json_schema","schema":{"a":1}},
		"stream":null,"max_tokens":null,"speed":"fast","messages":[]}`)
	if r.Thinking.Mode != 0 || string(r.Thinking.Effort) != "high" || r.Thinking.Path != "output_config" {
		t.Errorf("thinking %+v", r.Thinking)
	}
	if r.Format.Kind != canon.FormatSchema || string(r.Format.Schema) != `{"a":1}` || r.Format.Path != "output_format" {
		t.Errorf("format %+v", r.Format)
	}
	var extra []string
	for _, m := range r.Extra {
		extra = append(extra, string(m.Name))
	}
	if !slices.Equal(extra, []string{"thinking", "speed", "output_config.budget"}) || len(losses) > 0 || r.Stream || r.Params[canon.ParamMaxTokens] != nil {
		t.Errorf("extra %v, losses %v", extra, losses)
	}
	_, losses = mustRead(t, `{"output_config":{"format":{"type":"json_schema","schema":{},"name":"n"}},"output_format":{"type":"json_schema","schema":{}},
		"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"x","alt":"a"}}]}]}`)
	want := []canon.Loss{{Path: "output_config.format.name", Reason: canon.NotKnown}, {Path: "output_format", Reason: canon.NoEquivalent}, {Path: "messages[0].content[0].source.alt", Reason: canon.NotKnown}}
	if !slices.Equal(losses, want) {
		t.Errorf("losses %v", losses)
	}
}
