package chat

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
)

var refusedCalls = []struct{ name, body, param string }{
	{"no messages", `{"model":"m"}`, "messages"},
	{"messages that are no list", `{"messages":{}}`, "messages"},
	{"a message that is no object", `{"messages":["secret"]}`, "messages[0]"},
	{"a model that is no string", `{"model":1,"messages":[]}`, "model"},
	{"a stream that is a word", `{"stream":"false","messages":[]}`, "stream"},
	{"a stream that is a number", `{"stream":1,"messages":[]}`, "stream"},
	{"an unknown role", `{"messages":[{"role":"secret","content":"x"}]}`, "messages[0].role"},
	{"no role", `{"messages":[{"content":"x"}]}`, "messages[0].role"},
	{"content of the wrong type", `{"messages":[{"role":"user","content":1}]}`, "messages[0].content"},
	{"a part that is a number", `{"messages":[{"role":"user","content":[1]}]}`, "messages[0].content[0]"},
	{"a part without a type", `{"messages":[{"role":"user","content":[{"text":"x"}]}]}`, "messages[0].content[0].type"},
	{"a text part without its text", `{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, "messages[0].content[0].text"},
	{"an image without a place", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}`, "messages[0].content[0].image_url"},
	{"a file of two contents", `{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"a","file_data":"b"}}]}]}`, "messages[0].content[0].file"},
	{"a result of no call", `{"messages":[{"role":"tool","content":"x"}]}`, "messages[0].tool_call_id"},
	{"a call without an id", `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]}`, "messages[0].tool_calls[0].id"},
	{"a call without a name", `{"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"arguments":"{}"}}]}]}`, "messages[0].tool_calls[0].function.name"},
	{"arguments that are a number", `{"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":1}}]}]}`, "messages[0].tool_calls[0].function.arguments"},
	{"reasoning that is no string", `{"messages":[{"role":"assistant","reasoning":{}}]}`, "messages[0].reasoning"},
	{"tools that are no list", `{"messages":[],"tools":{}}`, "tools"},
	{"a tool without a name", `{"messages":[],"tools":[{"type":"function","function":{}}]}`, "tools[0].function.name"},
	{"parameters that are a string", `{"messages":[],"tools":[{"type":"function","function":{"name":"f","parameters":"{}"}}]}`, "tools[0].function.parameters"},
	{"a choice of a function without name", `{"messages":[],"tool_choice":{"type":"function"}}`, "tool_choice.function.name"},
	{"an unknown word as choice", `{"messages":[],"tool_choice":"secret"}`, "tool_choice"},
	{"a stop of numbers", `{"messages":[],"stop":[1]}`, "stop"},
	{"a schema that is missing", `{"messages":[],"response_format":{"type":"json_schema","json_schema":{"name":"x"}}}`, "response_format.json_schema.schema"},
	{"a temperature in quotes", `{"messages":[],"temperature":"0.5"}`, "temperature"},
	{"tokens in quotes", `{"messages":[],"max_tokens":"5"}`, "max_tokens"},
	{"logprobs that are a number", `{"messages":[],"logprobs":5}`, "logprobs"},
}

func TestWhatChatWouldNotAcceptNamesItsField(t *testing.T) {
	for _, c := range refusedCalls {
		t.Run(c.name, func(t *testing.T) {
			_, err := chat{}.ReadCall([]byte(c.body), callOptions())
			var p *canon.Problem
			if !errors.As(err, &p) {
				t.Fatalf("got %v, want a problem", err)
			}
			if p.Param != c.param || p.Code != canon.CodeInvalid || p.Status != 400 {
				t.Errorf("got %+v, want param %s", p, c.param)
			}
			if strings.Contains(p.Message, "secret") {
				t.Errorf("the message has what the client sent: %s", p.Message)
			}
		})
	}
}

func TestMembersOfARequestMean(t *testing.T) {
	for _, c := range []struct {
		name, body string
		got        func(*canon.Request) any
		want       any
	}{
		{"null streams nothing", `{"messages":[],"stream":null}`, func(r *canon.Request) any { return r.Stream }, false},
		{"usage is asked for", `{"messages":[],"stream_options":{"include_usage":true}}`, func(r *canon.Request) any { return r.Show.Usage }, true},
		{"the newer limit wins", `{"messages":[],"max_completion_tokens":1,"max_tokens":2}`, func(r *canon.Request) any { return string(r.Params[canon.ParamMaxTokens]) }, "1"},
		{"the older limit is one", `{"messages":[],"max_completion_tokens":null,"max_tokens":2}`, func(r *canon.Request) any { return string(r.Params[canon.ParamMaxTokens]) }, "2"},
		{"one stop", `{"messages":[],"stop":"x"}`, func(r *canon.Request) any { return r.Stop }, []canon.Text{canon.Text("x")}},
		{"text is no format", `{"messages":[],"response_format":{"type":"text"}}`, func(r *canon.Request) any { return r.Format.Kind }, canon.FormatKind(0)},
		{"a format that only vLLM knows", `{"messages":[],"response_format":{"type":"structural_tag"}}`, func(r *canon.Request) any { return string(r.Extra[0].Name) }, "response_format"},
		{"a named choice", `{"messages":[],"tool_choice":{"type":"function","function":{"name":"f"}}}`, func(r *canon.Request) any { return string(r.Choice.Name) }, "f"},
		{"a custom choice", `{"messages":[],"tool_choice":{"type":"custom","custom":{"name":"f"}}}`, func(r *canon.Request) any { return r.Choice.Custom }, true},
		{"allowed tools", `{"messages":[],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}}]}}}`,
			func(r *canon.Request) any { return r.Choice.Allowed }, []canon.ToolRef{{Type: canon.Text("function"), Name: canon.Text("f")}}},
		{"a choice that nobody knows", `{"messages":[],"tool_choice":{"type":"x"}}`, func(r *canon.Request) any { return r.Choice.Mode }, canon.ChoiceAuto},
		{"legacy functions", `{"messages":[],"functions":[{"name":"f"}],"function_call":{"name":"f"}}`,
			func(r *canon.Request) any { return string(r.Tools[0].Name) + string(r.Choice.Name) }, "ff"},
		{"a grammar is flat", `{"messages":[],"tools":[{"type":"custom","custom":{"name":"e","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"x"}}}}]}`,
			func(r *canon.Request) any { return string(r.Tools[0].Grammar) }, `{"type":"grammar","syntax":"lark","definition":"x"}`},
		{"an escaped name is a name", `{"messages":[],"\u0073tream":true}`, func(r *canon.Request) any { return r.Stream }, true},
		{"effort", `{"messages":[],"reasoning_effort":"max","thinking_token_budget":7}`, func(r *canon.Request) any { return r.Thinking },
			canon.Thinking{Effort: canon.Text("max"), Budget: canon.Raw("7"), Path: "reasoning_effort"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.got(readRequest(t, c.body, callOptions())); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// partLines lists the parts of a request's messages, a line each.
func partLines(r *canon.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			b.WriteString(p.Path + " ")
			switch p.Type {
			case canon.ReasoningPart:
				b.WriteString("reasoning " + string(p.Text))
			case canon.TextPart:
				b.WriteString("text " + string(p.Text))
			case canon.RefusalPart:
				b.WriteString("refusal " + string(p.Text))
			case canon.CallPart:
				b.WriteString("call " + string(p.Call.ID) + " " + string(p.Call.Name) + " " + string(p.Call.Arguments))
			case canon.ResultPart:
				b.WriteString("result " + string(p.Result.CallID))
				for _, q := range p.Result.Parts {
					b.WriteString(" " + string(q.Text))
				}
				if p.Result.Custom {
					b.WriteString(" custom")
				}
			default:
				b.WriteString("other")
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func TestMessagesAreRead(t *testing.T) {
	for _, c := range []struct{ name, messages, want string }{
		{"reasoning under both names is one", `{"role":"assistant","content":"t","reasoning":"r","reasoning_content":"r"}`,
			"messages[0].reasoning reasoning r\nmessages[0].content text t\n"},
		{"reasoning that differs is kept", `{"role":"assistant","content":"t","reasoning":"a","reasoning_content":"b"}`,
			"messages[0].reasoning reasoning a\nmessages[0].reasoning reasoning b\nmessages[0].content text t\n"},
		{"what was said is in the order of time", `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}],"refusal":"no","content":[{"type":"text","text":"t"}],"reasoning":"r"}`,
			"messages[0].reasoning reasoning r\nmessages[0].content[0] text t\nmessages[0].refusal refusal no\nmessages[0].tool_calls[0] call a f {}\n"},
		{"nothing is said by empty texts", `{"role":"assistant","content":"","reasoning":"","refusal":""}`, ""},
		{"arguments that came as an object are text", `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"a":"\n"}}}]}`,
			"messages[0].tool_calls[0] call a f " + `{\"a\":\"\\n\"}` + "\n"},
		{"a custom call is answered in kind", `{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":"x"}}]},{"role":"tool","tool_call_id":"a","content":"y"}`,
			"messages[0].tool_calls[0] call a f x\nmessages[1] result a y custom\n"},
		{"a legacy call and its result", `{"role":"user","content":"u"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"1"}`,
			"messages[0].content text u\nmessages[1].function_call call call_function_1 f {}\nmessages[2] result call_function_1 1\n"},
		{"a legacy result of no call", `{"role":"function","name":"f","content":"1"}`, "messages[0] result call_function_0 1\n"},
		{"a bare string is a text part", `{"role":"user","content":["a",{"type":"text","text":"b"}]}`, "messages[0].content[0] text a\nmessages[0].content[1] text b\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := partLines(readRequest(t, `{"messages":[`+c.messages+`]}`, callOptions())); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}
